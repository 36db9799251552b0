import type { ContainerRuntimeConfig } from '../../api/container-runtime-config.js';
import { containerRuntimeOf, type ContainerRuntime, type ControllerConfig } from '../../api/controller-config.js';
import type { ApiFlavour } from '../../api/flavour.js';
import type { MachineConfig } from '../../api/machine-config.js';
import type { MachineConfigPool } from '../../api/machine-config-pool.js';
import { parseContainerRuntimeConfig, type Problem } from '../../api/parse.js';
import { compareText } from '../../render/select.js';
import { generatedConfig } from '../generated-config.js';
import { filesAround } from '../kubelet/present-files.js';
import { generatedName, poolsOf, suffixesOf, tooManySources } from '../naming.js';
import type { Generate, SourceProblem, SourceResult } from '../source.js';
import { UnreadableTomlError } from '../toml.js';
import { checkContainerRuntime } from './check.js';
import { containerdFiles, crioFiles, STORAGE_CONF } from './files.js';
import { runtimeWarnings, whyNodesCannot, type NodeRuntime } from './node-runtimes.js';

const KIND = 'ContainerRuntimeConfig';
const WHAT = 'containerruntime';

export interface ContainerRuntimeInputs {
  readonly flavour: ApiFlavour;
  /** As the API has them: also those that are being deleted. */
  readonly containerRuntimeConfigs: readonly ContainerRuntimeConfig[];
  readonly controllerConfig: ControllerConfig | undefined;
  readonly pools: readonly MachineConfigPool[];
  /** All that there are, those generated before included. */
  readonly machineConfigs: readonly MachineConfig[];
  /** Of the nodes that are known; one that is not is taken for suitable. */
  readonly nodes: readonly NodeRuntime[];
}

interface Candidate {
  readonly object: ContainerRuntimeConfig;
  readonly suffix: string;
  readonly pools: readonly MachineConfigPool[];
}

/**
 * `99-<pool>-generated-containerruntime` for every pool that a ContainerRuntimeConfig chooses. Several of a pool add up,
 * the one with the highest suffix wins where they say different things.
 */
export const generateContainerRuntime: Generate<ContainerRuntimeInputs> = (inputs) => {
  const { containerRuntimeConfigs: objects, pools, flavour, controllerConfig, nodes } = inputs;
  const runtime = containerRuntimeOf(controllerConfig);
  const suffixes = suffixesOf(objects, pools, flavour);
  const results = new Map<string, SourceResult>();
  const candidates: Candidate[] = [];
  for (const object of objects) {
    const { name, uid = '', generation = 0, deletionTimestamp } = object.metadata;
    const suffix = suffixes.get(name);
    const result: SourceResult = {
      source: { kind: KIND, name, uid, generation },
      configs: [],
      warnings: [],
      ...(suffix === undefined ? {} : { suffix }),
    };
    const chosen = poolsOf(object, pools);
    const problem = deletionTimestamp === undefined ? whyNot(object, { suffix, chosen, runtime, nodes }) : undefined;
    results.set(name, problem === undefined ? result : { ...result, problem });
    if (problem !== undefined || deletionTimestamp !== undefined || suffix === undefined) continue;
    candidates.push({ object, suffix, pools: chosen });
  }
  for (const [name, drafted] of draftAll(inputs, candidates, runtime)) {
    const result = results.get(name);
    if (result !== undefined) results.set(name, { ...result, ...drafted });
  }
  return [...results.values()].sort((one, other) => compareText(one.source.name, other.source.name));
};

function whyNot(
  object: ContainerRuntimeConfig,
  facts: {
    suffix: string | undefined;
    chosen: readonly MachineConfigPool[];
    runtime: ContainerRuntime;
    nodes: readonly NodeRuntime[];
  },
): SourceProblem | undefined {
  const { suffix, chosen, runtime, nodes } = facts;
  const problems = problemsOf(object, runtime);
  if (problems.length > 0) return invalid(problems);
  if (suffix === undefined) return tooManySources(KIND);
  if (chosen.length === 0) {
    const message =
      'spec.machineConfigPoolSelector matches the labels of no pool; see them with kubectl get machineconfigpools --show-labels';
    return { reason: 'NoPool', message };
  }
  return whyNodesCannot(object.spec.containerRuntimeConfig, runtime, { chosen, nodes });
}

/** All that is wrong with an object by itself, for nodes of that container runtime. Never throws. */
export function problemsOf(object: unknown, runtime: ContainerRuntime): readonly Problem[] {
  const parsed = parseContainerRuntimeConfig(object);
  return parsed.ok ? checkContainerRuntime(parsed.value.spec.containerRuntimeConfig, runtime) : parsed.problems;
}

/** One line for all that is wrong: the first in words, the others by number. */
function invalid([first, ...others]: readonly Problem[]): SourceProblem {
  const more = others.length === 0 ? '' : ` (and ${others.length} more: ${others.map(({ path }) => path).join(', ')})`;
  return { reason: 'InvalidField', message: `${first?.path ?? ''}: ${first?.message ?? ''}${more}` };
}

type Drafted = Pick<SourceResult, 'configs' | 'warnings' | 'problem'>;

/** In the order in which they win, since a storage.conf is a whole: each builds on the one before. */
function draftAll(
  inputs: ContainerRuntimeInputs,
  candidates: readonly Candidate[],
  runtime: ContainerRuntime,
): Map<string, Drafted> {
  const anew = new Set(candidates.map(({ object }) => object.metadata.uid));
  const known = inputs.machineConfigs.filter(({ metadata }) => {
    const owner = metadata.ownerReferences?.find(({ kind }) => kind === KIND);
    return owner === undefined || !anew.has(owner.uid);
  });
  const drafts = new Map<string, Drafted>();
  const inOrder = candidates.toSorted(
    (one, other) =>
      Number(one.suffix) - Number(other.suffix) || compareText(one.object.metadata.name, other.object.metadata.name),
  );
  for (const { object, suffix, pools } of inOrder) {
    const drafted = draft(object, { ...inputs, suffix, runtime, chosen: pools, known });
    drafts.set(object.metadata.name, drafted);
    known.push(...drafted.configs);
  }
  return drafts;
}

interface DraftInputs extends ContainerRuntimeInputs {
  readonly suffix: string;
  readonly runtime: ContainerRuntime;
  readonly chosen: readonly MachineConfigPool[];
  readonly known: readonly MachineConfig[];
}

function draft({ spec }: ContainerRuntimeConfig, inputs: DraftInputs): Drafted {
  const { flavour, suffix, runtime, chosen, known, nodes } = inputs;
  const settings = spec.containerRuntimeConfig;
  const configFor = (pool: MachineConfigPool): MachineConfig => {
    const name = generatedName({ priority: '99', pool: pool.metadata.name, what: WHAT, suffix });
    const files =
      runtime === 'crio'
        ? crioFiles(settings, filesAround({ pool, name, path: STORAGE_CONF }, known, flavour).before)
        : containerdFiles(settings);
    return generatedConfig(flavour, { name, pool: pool.metadata.name, files });
  };
  try {
    return { configs: chosen.map(configFor), warnings: runtimeWarnings(runtime, { chosen, nodes }) };
  } catch (error) {
    if (!(error instanceof UnreadableTomlError)) throw error;
    return { configs: [], warnings: [], problem: { reason: 'UnreadablePresent', message: error.message } };
  }
}
