import { apiVersionOf, type ApiFlavour } from '../../machine-config/api/flavour.js';
import type {
  MachineConfigPoolCondition,
  MachineConfigPoolStatus,
} from '../../machine-config/api/machine-config-pool.js';
import type { MembershipConflict } from '../../machine-config/pool/conflicts.js';
import { statusEvents, type PoolEvent } from '../../machine-config/pool/status-events.js';
import type { KubernetesClient } from '../kubernetes/client.js';
import { EventWriter } from '../kubernetes/event-writer.js';
import type { PoolResource } from './control-dependencies.js';

export interface PoolEventsOptions {
  readonly client: KubernetesClient;
  readonly flavour: ApiFlavour;
  /** Which of the control workers this is. */
  readonly instance: string;
  /** Epoch milliseconds. */
  readonly now: () => number;
  /** Told of each Event that could not be written. */
  readonly onError?: (error: unknown) => void;
}

const COMPONENT = 'drydock-control';
/** Of so many objects, a hundred pools and their nodes, the last Events are remembered. */
const CAPACITY = 500;
/** What lasts shorter is no news: a rollout waits for something at every step. */
const WORTH_TELLING_MS = 60_000;

interface Standstill {
  /** Of the condition Waiting; undefined: it goes on. */
  readonly reason: string | undefined;
  readonly since: number;
  /** The reason that was told last. */
  readonly told: string | undefined;
}

function standstillOf(
  waiting: MachineConfigPoolCondition | undefined,
  known: Standstill | undefined,
  now: number,
): Standstill {
  const reason = waiting?.status === 'True' ? waiting.reason : undefined;
  return {
    reason,
    since: known !== undefined && known.reason === reason ? known.since : now,
    // With the end of a rollout what was told of it is over.
    told: waiting?.reason === 'NothingToDo' ? undefined : known?.told,
  };
}

/** That everything was stopped is told at once, with the status. */
function isWorthTelling({ reason, since, told }: Standstill, now: number): boolean {
  return reason !== undefined && reason !== told && reason !== 'Stopped' && now - since >= WORTH_TELLING_MS;
}

/**
 * Tells what happens to pools as Events. What a status shows is told by whoever wrote that status, so once, with any
 * number of control workers. Never waits, never fails.
 */
export class PoolEvents {
  readonly #options: PoolEventsOptions;
  readonly #writer: EventWriter;
  readonly #standstills = new Map<string, Standstill>();
  /** By node, what was told of it and by which of its pools. */
  readonly #conflicts = new Map<string, { readonly pool: string; readonly sentence: string }>();

  constructor(options: PoolEventsOptions) {
    this.#options = options;
    const { client, instance, now, onError } = options;
    this.#writer = new EventWriter({
      client,
      component: COMPONENT,
      instance,
      now: () => new Date(now()),
      capacity: CAPACITY,
      ...(onError === undefined ? {} : { onError }),
    });
  }

  /** The status was written over the one before. */
  written(pool: PoolResource, status: MachineConfigPoolStatus): void {
    for (const event of statusEvents(pool.status, status)) this.#tell(pool, event);
  }

  rendered(pool: PoolResource, config: string, sources: number): void {
    const message = `${config} was rendered from ${sources} MachineConfig${sources === 1 ? '' : 's'}`;
    this.#tell(pool, { type: 'Normal', reason: 'RenderedConfigGenerated', message });
  }

  /**
   * The status as it is now, written or not. A standstill is told once it has lasted a minute, and again when it is for
   * something else.
   */
  looked(pool: PoolResource, status: MachineConfigPoolStatus): void {
    const { name } = pool.metadata;
    const waiting = status.conditions?.find(({ type }) => type === 'Waiting');
    const standstill = standstillOf(waiting, this.#standstills.get(name), this.#options.now());
    const isNews = isWorthTelling(standstill, this.#options.now());
    if (isNews) this.#tell(pool, { type: 'Normal', reason: 'Waiting', message: waiting?.message ?? '' });
    this.#standstills.set(name, isNews ? { ...standstill, told: standstill.reason } : standstill);
  }

  /** Nodes that the pool and others select: told of the Node too, by the first of its pools. */
  conflicts(pool: PoolResource, conflicts: readonly MembershipConflict[]): void {
    const { name } = pool.metadata;
    const ours = conflicts.filter(({ pools }) => pools[0] === name);
    this.#forgetResolved(name, new Set(ours.map(({ node }) => node)));
    for (const { node, sentence } of ours) {
      if (this.#conflicts.get(node)?.sentence === sentence) continue;
      this.#conflicts.set(node, { pool: name, sentence });
      // As the kubelet does: a Node's Events carry its name for a uid, and are found by either.
      const about = { apiVersion: 'v1', kind: 'Node', name: node, uid: node };
      this.#writer.tell({ about, type: 'Warning', reason: 'MembershipConflict', message: sentence });
    }
  }

  /** The pool is gone. */
  forget(pool: string): void {
    this.#standstills.delete(pool);
    this.#forgetResolved(pool, new Set());
  }

  /** Resolves when what was told so far is written or given up. */
  flushed(): Promise<void> {
    return this.#writer.flushed();
  }

  /** So that a conflict which comes again is told again. */
  #forgetResolved(pool: string, present: ReadonlySet<string>): void {
    for (const [node, told] of this.#conflicts) {
      if (told.pool === pool && !present.has(node)) this.#conflicts.delete(node);
    }
  }

  #tell({ metadata }: PoolResource, event: PoolEvent): void {
    const { flavour } = this.#options;
    const { name, uid = '' } = metadata;
    const about = { apiVersion: apiVersionOf(flavour), kind: flavour.machineConfigPool.kind, name, uid };
    this.#writer.tell({ about, ...event });
  }
}
