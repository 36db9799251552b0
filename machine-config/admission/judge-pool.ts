import { parseMachineConfigPool, type Problem } from '../api/parse.js';
import type { MachineConfigPool } from '../api/machine-config-pool.js';
import { quote } from '../ignition/findings.js';
import { conflictsOf } from '../pool/conflicts.js';
import { resolveMaxUnavailable } from '../pool/max-unavailable.js';
import { zonedTime } from '../pool/policy/zoned-time.js';
import { nameSome } from '../pool/sentences.js';
import { formatProblems } from './problems.js';
import type { AdmissionContext, AdmissionQuestion, AdmissionVerdict } from './question.js';

/**
 * A pool is refused for what the schema refuses, for a limit or a time zone that means nothing, and where it would take
 * nodes that another custom pool has: those would be held until somebody decides.
 */
export function judgePool({ kind, object }: AdmissionQuestion, context: AdmissionContext): AdmissionVerdict {
  const parsed = parseMachineConfigPool(object);
  const problems = parsed.ok ? problemsOf(parsed.value, context) : parsed.problems;
  return problems.length === 0 ? { warnings: [] } : { refusal: formatProblems(kind, object, problems), warnings: [] };
}

function problemsOf(pool: MachineConfigPool, context: AdmissionContext): Problem[] {
  const problems: Problem[] = [];
  const limit = resolveMaxUnavailable(pool.spec.maxUnavailable, 1, pool.metadata.name);
  // 0 is a stop that is shown as such, and no mistake.
  if (!limit.ok && limit.code === 'MaxUnavailableInvalid') {
    problems.push({ path: 'spec.maxUnavailable', message: limit.sentence });
  }
  const { windows } = pool.spec.rollout ?? {};
  if (windows !== undefined && zonedTime(windows.timeZone) === undefined) {
    const message = `${quote(windows.timeZone)} is no time zone that the control worker knows; write for example Europe/Berlin or UTC`;
    problems.push({ path: 'spec.rollout.windows.timeZone', message });
  }
  return [...problems, ...sharedNodes(pool, context)];
}

function sharedNodes(pool: MachineConfigPool, { nodes, pools }: AdmissionContext): Problem[] {
  const { name } = pool.metadata;
  const selectors = pools
    .filter(({ metadata }) => metadata.name !== name)
    .map(({ metadata, spec }) => ({ name: metadata.name, nodeSelector: spec.nodeSelector }));
  const conflicts = conflictsOf(name, nodes, [...selectors, { name, nodeSelector: pool.spec.nodeSelector }]);
  if (conflicts.length === 0) return [];
  const others = new Set(conflicts.flatMap((conflict) => conflict.pools).filter((other) => other !== name));
  const shared = nameSome(
    conflicts.map(({ node }) => node),
    3,
  );
  return [
    {
      path: 'spec.nodeSelector',
      message: `also selects nodes of the custom pool ${[...others].sort().join(', ')} (${shared}), and a node can follow one alone: select by a label that only this pool's nodes have`,
    },
  ];
}
