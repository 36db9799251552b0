import { castOf } from './cast.js';
import { converge, NotConverged, type Ending } from './converge.js';
import { describeFault, type Fault, type PlannedFault, type Revision } from './fault.js';
import { inflict } from './inflict.js';
import type { Seen, Violation } from './observer/observer.js';
import { MOST_CORDONED, planFaults } from './plan.js';
import { setStage, type ChaosStage } from './stage.js';

/** Builds of the control worker with a fault in them, by name. */
export const PLANTS = { 'no-throttle': 'test/chaos/no-throttle-control.ts' } as const;
export type Plant = keyof typeof PLANTS;

export interface ChaosOptions {
  readonly seed: number;
  readonly durationMs: number;
  /** Default 30. */
  readonly nodes?: number;
  /** A fault of the product's own that the observer has to find: then the run ends as soon as it has. */
  readonly plant?: Plant;
  /** Leaves processes and connections alone. Default false. */
  readonly onlyCluster?: boolean;
  /** Where data and logs are kept. Default: nowhere. */
  readonly directory?: string;
  readonly say: (line: string) => void;
}

export interface ChaosResult {
  readonly seed: number;
  readonly seconds: number;
  readonly plant: Plant | null;
  readonly nodes: number;
  /** How often each sort of fault was played. */
  readonly faults: Readonly<Record<string, number>>;
  readonly seen: Seen;
  /** What the proxy did to calls. */
  readonly calls: Readonly<Record<string, number>>;
  /** Processes that ended without being killed, and how often. */
  readonly endedByThemselves: Readonly<Record<string, number>>;
  readonly violations: readonly Violation[];
  readonly converged: boolean;
  /** Why not. */
  readonly unconverged: string | null;
  /** Zero violations, and converged. */
  readonly ok: boolean;
}

const DEFAULT_NODES = 30;
/** Whatever is still cordoned by somebody, the others get a slot. */
const MAX_UNAVAILABLE_AT_THE_END = MOST_CORDONED + 3;

/** The whole test: sets the stage, plays the faults, lets everything end well, and says what the observer saw. */
export async function runChaos(options: ChaosOptions): Promise<ChaosResult> {
  const startedAt = Date.now();
  const say = (line: string) => options.say(`${((Date.now() - startedAt) / 1000).toFixed(1).padStart(7)}s  ${line}`);
  const { seed, durationMs, plant, onlyCluster = false, nodes = DEFAULT_NODES } = options;
  const cast = castOf(nodes);
  const plan = planFaults({ seed, durationMs, cast, onlyCluster });
  const stage = await setStage({
    cast,
    seed,
    say,
    ...(plant === undefined ? {} : { controlProgram: PLANTS[plant] }),
    ...(options.directory === undefined ? {} : { directory: options.directory }),
  });
  try {
    const run = new Run(stage, plan, say);
    await run.play(plant !== undefined);
    const ending = {
      observer: stage.observer,
      nodes: Object.keys(cast.nodes),
      revisions: run.revisions,
      rootOf: stage.rootOf,
    };
    const unconverged = plant === undefined ? await endWell(stage, ending, say) : null;
    await stage.watch.caughtUp();
    const { violations, seen } = stage.observer;
    return {
      seed,
      seconds: Math.round((Date.now() - startedAt) / 1000),
      plant: plant ?? null,
      nodes,
      faults: run.played,
      seen,
      calls: { ...stage.apiProxy.counts },
      endedByThemselves: stage.keeper.ended,
      violations,
      converged: plant === undefined && unconverged === null,
      unconverged,
      ok: violations.length === 0 && unconverged === null,
    };
  } finally {
    await stage.stop();
  }
}

class Run {
  readonly played: Record<string, number> = {};
  /** What each pool's config says by now. */
  readonly revisions = new Map<string, Revision>();
  readonly #stage: ChaosStage;
  readonly #plan: readonly PlannedFault[];
  readonly #say: (line: string) => void;

  constructor(stage: ChaosStage, plan: readonly PlannedFault[], say: (line: string) => void) {
    this.#stage = stage;
    this.#plan = plan;
    this.#say = say;
  }

  async play(untilViolation: boolean): Promise<void> {
    this.#say(`Everything has joined; ${this.#plan.length} faults begin`);
    const { observer, watch } = this.#stage;
    const ending = new AbortController();
    const look = setInterval(() => {
      if (untilViolation && observer.violations.length > 0) ending.abort();
    }, 200);
    watch.finished.catch(() => ending.abort());
    try {
      const onFault = (fault: Fault) => this.#note(fault);
      await inflict({ stage: this.#stage, plan: this.#plan, onFault, signal: ending.signal });
    } finally {
      clearInterval(look);
    }
  }

  #note(fault: Fault): void {
    this.played[fault.kind] = (this.played[fault.kind] ?? 0) + 1;
    if (fault.kind === 'config') this.revisions.set(fault.pool, fault.revision);
    this.#say(describeFault(fault));
  }
}

/** No more faults: first everything that nobody keeps back has to get there, then, let go, the rest. Says why it did not. */
async function endWell(stage: ChaosStage, ending: Ending, say: (line: string) => void): Promise<string | null> {
  const { hand, apiProxy, temporalLink, observer } = stage;
  apiProxy.clear();
  temporalLink.mend();
  say('The faults are over; waiting until everything has converged');
  for (const pool of observer.world.pools.keys()) {
    if (pool !== 'master') await hand.setPool(pool, { paused: false, maxUnavailable: MAX_UNAVAILABLE_AT_THE_END });
  }
  try {
    await converge(ending);
    say('Converged; letting go the nodes that are cordoned or held by somebody');
    for (const { name, hold, unschedulable } of observer.world.nodes.values()) {
      if (hold !== '') await hand.release(name);
      if (unschedulable) await hand.uncordon(name);
    }
    await converge(ending);
    say('Converged');
    return null;
  } catch (error) {
    if (!(error instanceof NotConverged)) throw error;
    say(error.message);
    return error.message;
  }
}
