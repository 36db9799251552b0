import { defineQuery, defineSignal, defineUpdate } from '@temporalio/workflow';
import type { Turn } from '../../machine-config/pool/turn.js';
import type { UpdateNodeResult, UpdateStep } from './inputs.js';

/** To `pool/<pool>`: something that its render or its rollout depends on has changed. A hint, never the truth. */
export interface PoolChanged {
  /** `config`: render again. `nodes`: look whether a rollout has something to do. */
  readonly what: 'config' | 'nodes';
}
export const poolChanged = defineSignal<[PoolChanged]>('poolChanged');

/**
 * To `pool/<pool>`, by people: render and look at the nodes now. A hint as well, but one that is answered: the validator
 * refuses at once, in one sentence, what this workflow cannot do.
 */
export interface LookNow {
  readonly cluster: string;
  readonly pool: string;
}
export interface LookNowAnswer {
  /** What it will do. */
  readonly sentence: string;
}
export const lookNow = defineUpdate<LookNowAnswer, [LookNow]>('lookNow');

/** To `source/<kind>`: an object of the kind, or something that it is generated from, has changed. A hint. */
export const sourcesChanged = defineSignal('sourcesChanged');

/** To `rollout/<pool>`: take a turn soon. */
export const wake = defineSignal('wake');

/** To `rollout/<pool>`, by each update that was told to announce its end, as it ends. Idempotent by node and run id. */
export interface Settled {
  readonly node: string;
  readonly runId: string;
  readonly outcome: UpdateNodeResult['outcome'];
  /** How long the node is to be left alone; absent: as the outcome says. */
  readonly restSeconds?: number;
}
export const settled = defineSignal<[Settled]>('settled');

/** To `node/<node>`: the pool may want something else of you; ask `assign` again if you have not begun to apply. */
export const reconsider = defineSignal('reconsider');

/** To `node/<node>`: whoever awaited your result goes, or never did; send `settled` to your rollout when you end. */
export const announceEnd = defineSignal('announceEnd');

export interface RolloutStatus {
  readonly pool: string;
  readonly turn: Turn | null;
  readonly inFlight: readonly string[];
}
export const rolloutStatus = defineQuery<RolloutStatus>('rolloutStatus');

export interface NodeUpdateStatus {
  readonly node: string;
  readonly target: string;
  readonly step: UpdateStep;
  /** One sentence: what it does, or what it waits for. */
  readonly sentence: string;
}
export const nodeUpdateStatus = defineQuery<NodeUpdateStatus>('nodeUpdateStatus');
