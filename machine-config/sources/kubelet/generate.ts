import type { NodeFlavour } from '../../api/controller-config.js';
import type { ApiFlavour } from '../../api/flavour.js';
import type { KubeletConfig } from '../../api/kubelet-config.js';
import type { MachineConfig } from '../../api/machine-config.js';
import type { MachineConfigPool } from '../../api/machine-config-pool.js';
import type { Problem } from '../../api/parse.js';
import { compareText } from '../../render/select.js';
import { generatedName, poolsOf, suffixesOf, tooManySources } from '../naming.js';
import type { Generate, SourceProblem, SourceResult } from '../source.js';
import { configFor } from './config-for-pool.js';
import { readOwnSettings, type OwnSettings } from './own-settings.js';

export interface KubeletInputs {
  readonly flavour: ApiFlavour;
  readonly nodeFlavour: NodeFlavour;
  /** As the API has them: also those that a schema would refuse, and those that are being deleted. */
  readonly kubeletConfigs: readonly KubeletConfig[];
  readonly pools: readonly MachineConfigPool[];
  /** All that there are, those generated before included. */
  readonly machineConfigs: readonly MachineConfig[];
}

const KIND = 'KubeletConfig';

/** An object that takes part: what it says, where, and under which suffix. */
interface Candidate {
  readonly object: KubeletConfig;
  readonly own: OwnSettings;
  readonly suffix: string;
  readonly pools: readonly string[];
}

interface Draft {
  readonly configs: MachineConfig[];
  readonly warnings: string[];
}

/**
 * Turns all KubeletConfigs into MachineConfigs. Within a pool each builds on those with a lower suffix, and all of them
 * on what the pool's other configs say, so the last one is what the kubelet runs with.
 */
export const generateKubeletConfigs: Generate<KubeletInputs> = (inputs) => {
  const { flavour, nodeFlavour, kubeletConfigs, pools } = inputs;
  const suffixes = suffixesOf(kubeletConfigs, pools, flavour);
  const problems = new Map<KubeletConfig, SourceProblem>();
  const candidates: Candidate[] = [];
  for (const object of kubeletConfigs) {
    if (object.metadata.deletionTimestamp !== undefined) continue;
    const own = readOwnSettings(object, nodeFlavour);
    const suffix = suffixes.get(object.metadata.name);
    const named = own.problems.length === 0 ? poolsOf(object, pools) : [];
    const problem = whyNot(own, suffix, named.length, pools);
    if (problem !== undefined) problems.set(object, problem);
    else candidates.push({ object, own, suffix: suffix ?? '', pools: named.map(({ metadata }) => metadata.name) });
  }
  const drafts = draftAll(inputs, candidates, problems);
  return kubeletConfigs
    .toSorted((one, other) => compareText(one.metadata.name, other.metadata.name))
    .map((object) =>
      resultOf(object, {
        problem: problems.get(object),
        draft: drafts.get(object),
        suffix: suffixes.get(object.metadata.name),
      }),
    );
};

function resultOf(
  { metadata }: KubeletConfig,
  outcome: { problem: SourceProblem | undefined; draft: Draft | undefined; suffix: string | undefined },
): SourceResult {
  const { problem, draft, suffix } = outcome;
  return {
    source: { kind: KIND, name: metadata.name, uid: metadata.uid ?? '', generation: metadata.generation ?? 0 },
    configs: problem === undefined ? (draft?.configs ?? []) : [],
    ...(problem === undefined ? {} : { problem }),
    warnings: problem === undefined ? (draft?.warnings ?? []) : [],
    ...(suffix === undefined ? {} : { suffix }),
  };
}

function whyNot(
  own: OwnSettings,
  suffix: string | undefined,
  chosen: number,
  pools: readonly MachineConfigPool[],
): SourceProblem | undefined {
  if (own.problems.length > 0) return invalid(own.problems);
  if (suffix === undefined) return tooManySources(KIND);
  if (chosen > 0) return undefined;
  const names = pools.map(({ metadata }) => metadata.name).join(', ');
  const message = `spec.machineConfigPoolSelector matches the labels of no pool (there are ${names}); see them with kubectl get machineconfigpools --show-labels`;
  return { reason: 'NoPool', message };
}

/** One line for all that is wrong: the first in words, the others by number. */
function invalid([first, ...others]: readonly Problem[]): SourceProblem {
  const more = others.length === 0 ? '' : ` (and ${others.length} more: ${others.map(({ path }) => path).join(', ')})`;
  return { reason: 'InvalidField', message: `${first?.path ?? ''}: ${first?.message ?? ''}${more}` };
}

/**
 * Drafts the configs pool by pool. Who turns out not to fit a pool leaves everything as it is, also in the other pools,
 * and what others built on is then what it generated before: so once more from the beginning.
 */
function draftAll(
  inputs: KubeletInputs,
  candidates: readonly Candidate[],
  problems: Map<KubeletConfig, SourceProblem>,
): Map<KubeletConfig, Draft> {
  for (;;) {
    const attempt = draftOnce(
      inputs,
      candidates.filter(({ object }) => !problems.has(object)),
    );
    if (attempt.refused === undefined) return attempt.drafts;
    problems.set(attempt.refused.object, attempt.refused.problem);
  }
}

function draftOnce(
  inputs: KubeletInputs,
  candidates: readonly Candidate[],
): { drafts: Map<KubeletConfig, Draft>; refused?: { object: KubeletConfig; problem: SourceProblem } } {
  const drafts = new Map<KubeletConfig, Draft>();
  const known = keptConfigs(inputs, candidates);
  for (const pool of workersFirst(inputs.pools)) {
    for (const { object, own, suffix } of bySuffix(candidates, pool.metadata.name)) {
      const name = generatedName({ priority: '99', pool: pool.metadata.name, what: 'kubelet', suffix });
      const made = configFor({ ...inputs, pool, name, known, own });
      if (!made.ok) return { drafts, refused: { object, problem: made.problem } };
      const draft = drafts.get(object) ?? { configs: [], warnings: [] };
      draft.configs.push(made.config);
      draft.warnings.push(...made.warnings);
      drafts.set(object, draft);
      known.push(made.config);
    }
  }
  return { drafts };
}

/** Without what is about to be written anew, and without what is about to be deleted. */
function keptConfigs(
  { machineConfigs, kubeletConfigs }: KubeletInputs,
  candidates: readonly Candidate[],
): MachineConfig[] {
  const anew = new Set(candidates.map(({ object }) => object.metadata.uid));
  const alive = kubeletConfigs.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  const refused = new Set(alive.map(({ metadata }) => metadata.uid).filter((uid) => !anew.has(uid)));
  return machineConfigs.filter(({ metadata }) => {
    const owner = metadata.ownerReferences?.find(({ kind }) => kind === KIND);
    return owner === undefined || refused.has(owner.uid);
  });
}

/** Custom pools build on what is generated for the pool `worker`, whose configs they have too. */
function workersFirst(pools: readonly MachineConfigPool[]): MachineConfigPool[] {
  const isOther = ({ metadata }: MachineConfigPool) => (metadata.name === 'worker' ? 0 : 1);
  return pools.toSorted(
    (one, other) => isOther(one) - isOther(other) || compareText(one.metadata.name, other.metadata.name),
  );
}

/** Two can have the same suffix where annotations were written by hand; the order of names decides then. */
function bySuffix(candidates: readonly Candidate[], pool: string): Candidate[] {
  return candidates
    .filter(({ pools }) => pools.includes(pool))
    .toSorted(
      (one, other) =>
        Number(one.suffix) - Number(other.suffix) || compareText(one.object.metadata.name, other.object.metadata.name),
    );
}
