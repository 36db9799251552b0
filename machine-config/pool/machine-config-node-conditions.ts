import type {
  MachineConfigNodeCondition,
  MachineConfigNodeStatus,
  NodeConditionType,
} from '../api/machine-config-node.js';
import { currentConfig, hasOurCordon, isApplying, isDegraded, isGranted, isManaged } from './availability.js';
import type { NodeFacts } from './facts.js';
import { clip } from './sentences.js';

/** What a condition says, without the time of it. */
export type NodeVerdict = Pick<MachineConfigNodeCondition, 'status' | 'reason' | 'message'>;
type Verdicts = Record<NodeConditionType, NodeVerdict>;
type Stage = Exclude<NodeConditionType, 'Updated' | 'NodeDegraded'>;

/** How far the update of a node is, as its Node shows it. */
export type NodePhase = 'unmanaged' | 'settled' | 'granted' | 'cordoned' | 'applying' | 'rebooted';

/** `bootBefore`: the boot in which the update was granted; undefined: not known. */
export function phaseOf(node: NodeFacts, bootBefore: string | undefined): NodePhase {
  if (!isManaged(node)) return 'unmanaged';
  if (isApplying(node)) return bootBefore === undefined || bootBefore === node.bootId ? 'applying' : 'rebooted';
  if (hasOurCordon(node)) return 'cordoned';
  return isGranted(node) ? 'granted' : 'settled';
}

/** The reason of Updated from the grant to the end of an update, also while it fails. */
const UPDATE_NEEDED = 'UpdateNeeded';
const LONGEST_REASON = 4_000;

/** What each stage of an update is when it is over, in words. */
const DONE: Record<Stage, string> = {
  UpdatePrepared: 'The update was planned and could be made',
  UpdateExecuted: 'The change is on the disk',
  Cordoned: 'The node was cordoned',
  Drained: 'The node was drained',
  AppliedFilesAndOS: 'Files, units and operating system are as the config says',
  RebootedNode: 'The node was rebooted',
  UpdatePostActionComplete: 'Services took the change over',
  Resumed: 'The node works again',
  UpdateComplete: 'The update is complete',
  Uncordoned: 'The cordon was lifted',
};
const STAGES = Object.keys(DONE) as Stage[];
/** The parts of an update that not every update has. */
const OPTIONAL: ReadonlySet<Stage> = new Set(['Cordoned', 'Drained', 'RebootedNode', 'Uncordoned']);

const notYet = (stage: Stage): NodeVerdict => ({
  status: 'False',
  reason: 'NotYetOccurred',
  message: `The node has not come to ${stage} in this update`,
});
const isDone = (stage: Stage): NodeVerdict => ({ status: 'True', reason: stage, message: DONE[stage] });
const goesOn = (stage: Stage, message: string): NodeVerdict => ({ status: 'Unknown', reason: stage, message });

function drained({ noDrain, desired }: NodeFacts): NodeVerdict {
  if (noDrain === undefined || noDrain !== desired) return isDone('Drained');
  return { status: 'False', reason: 'NotNeeded', message: 'No other node takes pods: cordoned, and not drained' };
}

/** What has begun or happened in a phase of an update; all other stages are still to come. */
function stagesOf(phase: NodePhase, node: NodeFacts): Partial<Record<Stage, NodeVerdict>> {
  const cordoned = hasOurCordon(node) ? { Cordoned: isDone('Cordoned'), Drained: drained(node) } : {};
  const prepared = { UpdatePrepared: isDone('UpdatePrepared') };
  switch (phase) {
    case 'cordoned': {
      const isDraining = drained(node).status === 'True';
      return {
        ...prepared,
        UpdateExecuted: goesOn('UpdateExecuted', 'The node is made ready for the change'),
        ...cordoned,
        ...(isDraining ? { Drained: goesOn('Drained', 'The node is being drained') } : {}),
      };
    }
    case 'applying':
      return {
        ...prepared,
        UpdateExecuted: goesOn('UpdateExecuted', 'The disk is being changed'),
        ...cordoned,
        AppliedFilesAndOS: goesOn('AppliedFilesAndOS', 'Files, units and operating system are being changed'),
      };
    case 'rebooted':
      return {
        ...prepared,
        UpdateExecuted: isDone('UpdateExecuted'),
        ...cordoned,
        AppliedFilesAndOS: isDone('AppliedFilesAndOS'),
        RebootedNode: isDone('RebootedNode'),
      };
    default:
      return {};
  }
}

/** False with what happened: the stages of the update that has just ended. */
function past(stage: Stage, { node, previous, ended }: VerdictContext): NodeVerdict {
  const before = previous(stage);
  const wasCordoned = previous('Cordoned')?.status === 'True';
  const isSure = !OPTIONAL.has(stage) || (stage === 'Uncordoned' && wasCordoned && node.heldCordon !== true);
  if (!isBegun(before) && !(ended.reached && isSure)) return notYet(stage);
  const words = ended.reached ? DONE[stage] : (before?.message ?? DONE[stage]);
  return { status: 'False', reason: 'LastUpdate', message: `During the update to ${ended.target}: ${words}` };
}

function isBegun(verdict: NodeVerdict | undefined): boolean {
  return verdict !== undefined && verdict.status !== 'False';
}

/** The update that the status before tells of, for a node on which none is on its way any more. */
function endedUpdate({ node, previous, versions }: Omit<VerdictContext, 'ended'>): VerdictContext['ended'] {
  const { current, desired } = versions ?? {};
  const isAnother = node.current !== current;
  const wasApplied = isBegun(previous('AppliedFilesAndOS')) && desired === node.current;
  const reached = isAnother || wasApplied;
  return { target: reached ? currentConfig(node) : (desired ?? currentConfig(node)), reached };
}

export interface VerdictContext {
  readonly node: NodeFacts;
  readonly phase: NodePhase;
  /** The condition as it stands; undefined: there is none of that type. */
  readonly previous: (type: NodeConditionType) => NodeVerdict | undefined;
  /** The config that the node was granted. */
  readonly target: string;
  /** status.configVersion as it stands. */
  readonly versions: MachineConfigNodeStatus['configVersion'];
  /** The update that was on its way before: to which config, and whether the node runs it now. */
  readonly ended: { readonly target: string; readonly reached: boolean };
}

function stageVerdict(stage: Stage, context: VerdictContext): NodeVerdict {
  const { node, phase, previous } = context;
  const before = previous(stage);
  // What failed is shown where it failed, until the next attempt.
  if (isDegraded(node) || phase === 'unmanaged') return before ?? notYet(stage);
  if (phase !== 'settled') return stagesOf(phase, node)[stage] ?? notYet(stage);
  const hasEnded = previous('Updated')?.reason === UPDATE_NEEDED || isBegun(before);
  return hasEnded ? past(stage, context) : (before ?? notYet(stage));
}

function updated({ node, phase, target }: VerdictContext): NodeVerdict {
  const no = (reason: string, message: string): NodeVerdict => ({ status: 'False', reason, message });
  const { name } = node;
  if (phase === 'unmanaged') return no('NoWorker', `No node worker has registered on ${name}: install it there`);
  if (phase !== 'settled') return no(UPDATE_NEEDED, `Node ${name} is to run ${target} and runs ${currentConfig(node)}`);
  if (isDegraded(node)) return no('NotAsConfigured', `Node ${name} is not as ${target} says`);
  if (node.current !== target) return no('NothingGranted', `Node ${name} was not granted a config yet`);
  return { status: 'True', reason: 'Updated', message: `Node ${name} runs ${target}` };
}

function nodeDegraded({ node }: VerdictContext): NodeVerdict {
  if (!isDegraded(node)) return { status: 'False', reason: 'AsExpected', message: '' };
  const why = node.reason ?? 'no reason given';
  return {
    status: 'True',
    reason: node.state ?? 'Degraded',
    message: `Node ${node.name}: ${clip(why, LONGEST_REASON)}`,
  };
}

/** What every condition of a MachineConfigNode says, in a fixed order. */
export function nodeVerdicts(facts: Omit<VerdictContext, 'ended'>): Verdicts {
  const context = { ...facts, ended: endedUpdate(facts) };
  const stages = Object.fromEntries(STAGES.map((stage) => [stage, stageVerdict(stage, context)]));
  return { ...stages, Updated: updated(context), NodeDegraded: nodeDegraded(context) } as Verdicts;
}
