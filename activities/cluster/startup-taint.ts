import pMap from 'p-map';
import { poolOf } from '../../machine-config/pool/membership.js';
import { hasStartupTaint, isConfigured, withoutStartupTaint } from '../../machine-config/pool/startup-taint.js';
import { KINDS } from '../kubernetes/client.js';
import type { ControlDependencies, NodeResource } from './control-dependencies.js';
import { factsOf, poolFacts, poolSelectors } from './pool-view.js';

const WRITES_AT_ONCE = 5;

export interface StartupTaintOptions extends Pick<ControlDependencies, 'client' | 'flavour' | 'pools'> {
  /** Key of the taint. */
  readonly taint: string;
}

/**
 * Takes the taint with which a node came off it, once it runs the config of its pool. Other taints stay, and the write
 * names the version that it is made of: one that fails is made when the node is looked at again. Never rejects.
 *
 * @returns the names of the nodes that lost it.
 */
export async function removeStartupTaints(
  nodes: readonly NodeResource[],
  options: StartupTaintOptions,
): Promise<string[]> {
  const { client, flavour, pools, taint } = options;
  const tainted = nodes.filter(({ spec }) => hasStartupTaint(spec?.taints, taint));
  if (tainted.length === 0) return [];
  const selectors = poolSelectors(pools.list());
  const configured = tainted.filter((node) => {
    const facts = factsOf(node, flavour);
    const membership = poolOf(facts, selectors);
    const pool = membership.kind === 'pool' ? pools.get(membership.pool) : undefined;
    return isConfigured(facts, pool && poolFacts(pool));
  });
  const removed = await pMap(
    configured,
    async ({ metadata: { name, resourceVersion }, spec }) => {
      const taints = withoutStartupTaint(spec?.taints ?? [], taint);
      const patch = { metadata: { resourceVersion }, spec: { taints: taints.length === 0 ? null : taints } };
      return client.patch(KINDS.node, { name }, patch).then(
        () => name,
        () => undefined,
      );
    },
    { concurrency: WRITES_AT_ONCE },
  );
  return removed.filter((name) => name !== undefined);
}
