import { castOf } from './cast.js';
import { converge, NotConverged, type Ending } from './converge.js';
import { describeFault, type Fault, type PlannedFault, type Revision } from './fault.js';
import { inflict } from './inflict.js';
import type { Seen, Violation } from './observer/observer.js';
import { MOST_CORDONED, planFaults } from './plan.js';
import { setStage, type ChaosStage } from './stage.js';
import { withState } from './state.js';
import { within } from './within.js';

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
  /** The run fails when it is not over after this time, from the beginning. Default: long after the faults. */
  readonly limitMs?: number;
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
/** More than all that is waited for before and after the faults may take. */
const DEFAULT_LIMIT_MS = 30 * 60_000;
/** Whatever is still cordoned by somebody, the others get a slot. */
const MAX_UNAVAILABLE_AT_THE_END = MOST_CORDONED + 3;

/** The whole test: sets the stage, plays the faults, lets everything end well, and says what the observer saw. */
export async function runChaos(options: ChaosOptions): Promise<ChaosResult> {
  const startedAt = Date.now();
  const say = (line: string) => options.say(`${((Date.now() - startedAt) / 1000).toFixed(1).padStart(7)}s  ${line}`);
  const { seed, durationMs, plant, onlyCluster = false, nodes = DEFAULT_NODES } = options;
  const deadline = startedAt + (options.limitMs ?? durationMs + DEFAULT_LIMIT_MS);
  const cast = castOf(nodes);
  const plan = planFaults({ seed, durationMs, cast, onlyCluster });
  const stage = await setStage({
    cast,
    seed,
    say,
    deadline,
    ...(plant === undefined ? {} : { controlProgram: PLANTS[plant] }),
    ...(options.directory === undefined ? {} : { directory: options.directory }),
  });
  const run = new Run({ stage, plan, nodes: Object.keys(cast.nodes), plant: plant ?? null, say });
  try {
    const unconverged = await within(deadline - Date.now(), 'the whole run to end', run.toItsEnd());
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
  } catch (error) {
    throw await withState(`${describeError(error)}; in the middle of: ${run.doing}`, stage);
  } finally {
    run.abandon();
    await stage.stop();
  }
}

const describeError = (error: unknown): string => (error instanceof Error ? error.message : String(error));

interface RunOptions {
  readonly stage: ChaosStage;
  readonly plan: readonly PlannedFault[];
  /** Names of all nodes that there must be at the end. */
  readonly nodes: readonly string[];
  readonly plant: Plant | null;
  readonly say: (line: string) => void;
}

class Run {
  readonly played: Record<string, number> = {};
  readonly #options: RunOptions;
  /** What each pool's config says by now. */
  readonly #revisions = new Map<string, Revision>();
  /** Faults that are not mended yet. */
  readonly #underWay = new Set<Fault>();
  readonly #ending = new AbortController();
  #phase = 'setting the stage';

  constructor(options: RunOptions) {
    this.#options = options;
  }

  /** What is going on just now. */
  get doing(): string {
    const faults = [...this.#underWay].map(describeFault);
    return [this.#phase, ...faults].join('; ');
  }

  /** Ends the faults that are under way. */
  abandon(): void {
    this.#ending.abort();
  }

  /** @returns why not everything converged; null: it did, or nobody waited for that. */
  async toItsEnd(): Promise<string | null> {
    const { stage, plan, plant } = this.#options;
    this.#begin(`Everything has joined; ${plan.length} faults begin`);
    await this.#play();
    const unconverged = plant === null ? await this.#endWell() : null;
    this.#phase = 'the observer reads what is left';
    await stage.watch.caughtUp();
    return unconverged;
  }

  async #play(): Promise<void> {
    const { stage, plan, plant } = this.#options;
    const look = setInterval(() => {
      if (plant !== null && stage.observer.violations.length > 0) this.abandon();
    }, 200);
    stage.watch.finished.catch(() => this.abandon());
    try {
      await inflict({
        stage,
        plan,
        onFault: (fault) => this.#note(fault),
        onMended: (fault) => this.#underWay.delete(fault),
        signal: this.#ending.signal,
      });
    } finally {
      clearInterval(look);
    }
  }

  #begin(phase: string): void {
    this.#phase = phase;
    this.#options.say(phase);
  }

  #note(fault: Fault): void {
    this.#underWay.add(fault);
    this.played[fault.kind] = (this.played[fault.kind] ?? 0) + 1;
    if (fault.kind === 'config') this.#revisions.set(fault.pool, fault.revision);
    this.#options.say(describeFault(fault));
  }

  /** No more faults: first everything that nobody keeps back has to get there, then, let go, the rest. */
  async #endWell(): Promise<string | null> {
    const { stage, nodes } = this.#options;
    const { hand, apiProxy, temporalLink, observer, rootOf } = stage;
    const ending: Ending = { observer, nodes, revisions: this.#revisions, rootOf };
    apiProxy.clear();
    temporalLink.mend();
    this.#begin('The faults are over; waiting until everything has converged');
    for (const pool of observer.world.pools.keys()) {
      if (pool !== 'master') await hand.setPool(pool, { paused: false, maxUnavailable: MAX_UNAVAILABLE_AT_THE_END });
    }
    try {
      await converge(ending);
      this.#begin('Converged; letting go the nodes that are cordoned or held by somebody');
      for (const { name, hold, unschedulable } of observer.world.nodes.values()) {
        if (hold !== '') await hand.release(name);
        if (unschedulable) await hand.uncordon(name);
      }
      await converge(ending);
      this.#begin('Converged');
      return null;
    } catch (error) {
      if (!(error instanceof NotConverged)) throw error;
      const { message } = await withState(error, stage);
      this.#options.say(message);
      return message;
    }
  }
}
