/** Inputs and results of the workflows. New fields are optional. */

import type { SourceKind } from './activities.js';

/** Tuning values travel as inputs: a changed constant would be a changed history. Seconds throughout. */
export interface NodeTuning {
  /** "Is this node's worker there?" Longer than a restart of the worker. */
  readonly workerPresentSeconds: number;
  /** Longest honest attempt of a quick step. At most 30. */
  readonly stepSeconds: number;
  /** A long step is lost when it has not been heard of for this long. */
  readonly heartbeatSeconds: number;
  readonly drainFirstSliceSeconds: number;
  readonly drainMaxSliceSeconds: number;
  /** Patience with apply over all attempts. */
  readonly applyLimitSeconds: number;
  /** Patience with a node that was told to reboot. */
  readonly rebootLimitSeconds: number;
  /** How often confirm looks whether the reboot has happened. */
  readonly confirmEverySeconds: number;
  /** Patience with undoing a cordon. */
  readonly cleanUpSeconds: number;
  /** A node that may not reboot yet asks again after this time, then after twice of it and so on. Default 15. */
  readonly clearanceFirstSeconds?: number;
  /** The longest time between two such questions. Default 600. */
  readonly clearanceMaxSeconds?: number;
}

export interface PoolTuning {
  /** Changes that come within this time are rendered once. */
  readonly debounceSeconds: number;
  /** At most one turn in this time. */
  readonly turnSeconds: number;
  /** A turn is repeated after this time even if nothing was heard. */
  readonly tickSeconds: number;
  /** A node whose worker did not answer is left alone for this long. */
  readonly restSeconds: number;
  /** A node whose update has just ended is left alone for this long, so that the watches can catch up. */
  readonly settleSeconds: number;
  /** The pool's status is at most this old while a rollout runs. Default 5. */
  readonly statusSeconds?: number;
  /** Continue as new from this many events on, besides when the server suggests it. Tests set it. */
  readonly maxEvents?: number;
  readonly node: NodeTuning;
}

export const DEFAULT_TUNING: PoolTuning = {
  debounceSeconds: 5,
  turnSeconds: 1,
  tickSeconds: 60,
  restSeconds: 60,
  settleSeconds: 10,
  node: {
    workerPresentSeconds: 120,
    stepSeconds: 30,
    heartbeatSeconds: 30,
    drainFirstSliceSeconds: 60,
    drainMaxSliceSeconds: 3600,
    applyLimitSeconds: 3600,
    rebootLimitSeconds: 2700,
    confirmEverySeconds: 5,
    cleanUpSeconds: 30,
  },
};

export interface ManagePoolInput {
  readonly cluster: string;
  readonly pool: string;
  readonly tuning: PoolTuning;
}

export interface ManageSourcesInput {
  readonly cluster: string;
  readonly kind: SourceKind;
  readonly tuning: Pick<PoolTuning, 'debounceSeconds' | 'turnSeconds' | 'maxEvents'>;
}

export interface RenderPoolInput {
  readonly cluster: string;
  readonly pool: string;
}

/** A running update of a node, as its rollout knows it. */
export interface InFlight {
  /** Empty when it was started by somebody else: then only its workflow id is known. */
  readonly runId: string;
  readonly nodeUid: string;
}

export interface RollOutPoolInput {
  readonly cluster: string;
  readonly pool: string;
  readonly tuning: PoolTuning;
  /** Carried over continue-as-new, by node name. */
  readonly inFlight?: Readonly<Record<string, InFlight>>;
  /** Carried: nodes not to be started before the given epoch milliseconds. */
  readonly resting?: Readonly<Record<string, number>>;
}

export interface RollOutPoolResult {
  readonly target: string | null;
  readonly updated: number;
  readonly machines: number;
  readonly degraded: number;
}

export interface UpdateNodeInput {
  readonly cluster: string;
  readonly pool: string;
  readonly node: string;
  readonly nodeUid: string;
  /** What the pool wanted when the update was started; `assign` decides what is granted. */
  readonly target: string;
  readonly current: string;
  readonly tuning: NodeTuning;
  /** Whether it asks, between apply and reboot, if it may reboot; absent in what was started before version 0.2. */
  readonly asksBeforeReboot?: boolean;
  /** Whether it asks by local activities if it may go on; absent in what was started before version 0.2. */
  readonly asksInPassing?: boolean;
  /** Whether it signals its end only once it was told to; absent in what was started before version 0.2: always. */
  readonly endsQuietly?: boolean;
}

/** The step of an update, for people and for results. */
export type UpdateStep = 'assign' | 'prepare' | 'cordon' | 'drain' | 'apply' | 'reboot' | 'confirm' | 'uncordon';

export type UpdateNodeResult =
  | { readonly outcome: 'updated'; readonly from: string; readonly to: string; readonly rebooted: boolean }
  | { readonly outcome: 'degraded'; readonly step: UpdateStep; readonly code: string; readonly reason: string }
  | { readonly outcome: 'unreachable'; readonly step: UpdateStep }
  | { readonly outcome: 'superseded'; readonly reason: string }
  /** Given back before anything was applied, since its drain took too long; not tried again before the time is over. */
  | { readonly outcome: 'postponed'; readonly reason: string; readonly retryAfterSeconds: number }
  | { readonly outcome: 'cancelled'; readonly step: UpdateStep };

export interface KeepBootstrapTokenInput {
  readonly cluster: string;
  /** How often the Secrets are looked at, at least. Default 3600. */
  readonly lookEverySeconds?: number;
  /** As in PoolTuning. */
  readonly maxEvents?: number;
}
