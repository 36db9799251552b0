import { WorkflowExecutionAlreadyStartedError } from '@temporalio/common';
import {
  CancellationScope,
  ChildWorkflowCancellationType,
  condition,
  getExternalWorkflowHandle,
  log,
  ParentClosePolicy,
  patched,
  setHandler,
  startChild,
} from '@temporalio/workflow';
import type { NodeStart } from '../machine-config/pool/turn.js';
import { control } from './activity-proxies.js';
import { updateNodeId } from './contract/ids.js';
import type { InFlight, RollOutPoolInput } from './contract/inputs.js';
import { announceEnd, reconsider, settled, wake, type Settled } from './contract/messages.js';
import { SEARCH_ATTRIBUTES } from './contract/search-attributes.js';
import { restOf } from './node-run.js';
import { updateSummary } from './progress.js';
import { updateNode } from './update-node.js';

type UpdateEnd = Pick<Settled, 'outcome' | 'restSeconds'>;

/** A update started by somebody else: only its workflow id is known. */
const ADOPTED = '';

/**
 * Tied to the rollout's scope, an abandoned child counts as ended for the SDK the moment that scope is cancelled. A
 * cancellation in the middle of a turn then found nothing left to cancel. To be removed when no rollout runs that began
 * before version 0.2.
 */
const OUTLIVES_CANCELLATION = 'updates-outlive-cancellation';

/**
 * Before, every update signalled its end, also to the run that awaits its result: nine events a node for nothing. To be
 * removed when no rollout runs that began before version 0.2.
 */
const ENDS_QUIETLY = 'updates-end-quietly';

/** What it costs the history to hand one over: the signal is asked for and sent, and its end may come in between. */
const EVENTS_PER_HANDOVER = 4;

/**
 * The updates that are running for a rollout. It learns of an end in three ways: the result, in the run that started the
 * update; the `settled` signal, in every later run, and of those that it adopted; and, for those that end without a word
 * (terminated), by asking. All three lead to `settle`, which is idempotent by node and run id.
 */
export class Fleet {
  readonly #input: RollOutPoolInput;
  readonly #inFlight: Map<string, InFlight>;
  readonly #resting: Map<string, number>;
  /** Those whose result this run awaits; all others have to be asked for. */
  readonly #awaited = new Set<string>();
  readonly #endsQuietly = patched(ENDS_QUIETLY);
  #news = true;
  #askedAt = Date.now();

  constructor(input: RollOutPoolInput) {
    this.#input = input;
    this.#inFlight = new Map(Object.entries(input.inFlight ?? {}));
    this.#resting = new Map(Object.entries(input.resting ?? {}));
    setHandler(settled, ({ node, runId, ...end }) => this.#settle(node, runId, end), {
      description: 'An update of a node has ended',
    });
    setHandler(wake, () => void (this.#news = true), { description: 'Something changed: take a turn soon' });
  }

  get size(): number {
    return this.#inFlight.size;
  }

  /** How many nodes run, or are left alone for a while. */
  get pending(): number {
    return this.size + Object.keys(this.resting()).length;
  }

  /** Something was heard since the last `takeNews`. */
  get hasNews(): boolean {
    return this.#news;
  }

  takeNews(): void {
    this.#news = false;
  }

  nodes(): string[] {
    return [...this.#inFlight.keys()];
  }

  nodeUids(): Record<string, string> {
    return Object.fromEntries([...this.#inFlight].map(([node, { nodeUid }]) => [node, nodeUid]));
  }

  /** Nodes to leave alone, with those whose time is over dropped. */
  resting(): Record<string, number> {
    const now = Date.now();
    for (const [node, until] of this.#resting) if (until <= now) this.#resting.delete(node);
    return Object.fromEntries(this.#resting);
  }

  /** How many events of this run's history are to be kept for `handOver`. */
  get eventsToHandOver(): number {
    return this.#endsQuietly ? EVENTS_PER_HANDOVER * this.#awaited.size : 0;
  }

  /**
   * To be called before this run ends for the next one: nobody awaits results from then on, so the updates are told to
   * signal their ends. One that cannot be told has ended by itself, and its result is on its way to this run, which
   * waits for it: the next one would not hear of it.
   */
  async askForSignals(): Promise<void> {
    if (!this.#endsQuietly) return;
    await Promise.all([...this.#awaited].map((node) => this.#askForSignal(node)));
  }

  async #askForSignal(node: string): Promise<void> {
    const before = this.#inFlight.get(node);
    if (await this.#tell(node, (update) => update.signal(announceEnd))) return;
    await condition(() => this.#inFlight.get(node) !== before, this.#input.tuning.tickSeconds * 1000);
  }

  /** What the next run has to know. */
  handOver(): Pick<RollOutPoolInput, 'inFlight' | 'resting'> {
    return { inFlight: Object.fromEntries(this.#inFlight), resting: this.resting() };
  }

  /** Starts the update of a node, or adopts the one that runs already. */
  async start({ node, nodeUid, target, current, rebootLimitSeconds }: NodeStart): Promise<void> {
    if (this.#inFlight.has(node)) return;
    const { cluster, pool, tuning } = this.#input;
    const nodeTuning = rebootLimitSeconds === undefined ? tuning.node : { ...tuning.node, rebootLimitSeconds };
    const begin = () =>
      startChild(updateNode, {
        workflowId: updateNodeId(node),
        args: [
          {
            cluster,
            pool,
            node,
            nodeUid,
            target,
            current,
            tuning: nodeTuning,
            asksBeforeReboot: true,
            asksInPassing: true,
            ...(this.#endsQuietly ? { endsQuietly: true } : {}),
          },
        ],
        // Handed over, not ended, when this run continues as new; cancelled through its id, by whichever run is current.
        parentClosePolicy: ParentClosePolicy.ABANDON,
        cancellationType: ChildWorkflowCancellationType.ABANDON,
        staticSummary: updateSummary(node, current, target),
        typedSearchAttributes: [
          { key: SEARCH_ATTRIBUTES.pool, value: pool },
          { key: SEARCH_ATTRIBUTES.node, value: node },
          { key: SEARCH_ATTRIBUTES.rendered, value: target },
        ],
      });
    try {
      const update = await (patched(OUTLIVES_CANCELLATION) ? CancellationScope.nonCancellable(begin) : begin());
      const runId = update.firstExecutionRunId;
      this.#inFlight.set(node, { runId, nodeUid });
      this.#awaited.add(node);
      void update.result().then(
        (result) => this.#settle(node, runId, { outcome: result.outcome, ...restOf(result) }),
        () => this.#settle(node, runId, { outcome: 'degraded' }),
      );
    } catch (error) {
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
      log.info('An update of this node runs already; adopted', { node });
      this.#inFlight.set(node, { runId: ADOPTED, nodeUid });
      await this.#hearOfAdopted(node);
    }
  }

  /** An adopted update may think that somebody awaits its result. */
  async #hearOfAdopted(node: string): Promise<void> {
    if (!this.#endsQuietly) return;
    const tell = () => this.#tell(node, (update) => update.signal(announceEnd));
    if (await CancellationScope.nonCancellable(tell)) return;
    this.#settle(node, ADOPTED, { outcome: 'superseded' });
  }

  /** Cancels updates whose node is gone and frees their slots at once: nothing of them is left to wait for. */
  async drop(nodes: readonly string[]): Promise<void> {
    for (const node of nodes) {
      await this.#cancel(node);
      this.#forget(node);
    }
  }

  /** Tells updates that have not begun to apply to ask again what the pool wants. */
  async reconsider(nodes: readonly string[]): Promise<void> {
    await Promise.all(nodes.map((node) => this.#tell(node, (update) => update.signal(reconsider))));
  }

  /** Asks, once a tick, after those whose end would not be heard of: handed over or adopted, and perhaps terminated. */
  async findSilent(): Promise<void> {
    if (Date.now() - this.#askedAt < this.#input.tuning.tickSeconds * 1000) return;
    this.#askedAt = Date.now();
    const unheard = [...this.#inFlight].filter(([node]) => !this.#awaited.has(node));
    if (unheard.length === 0) return;
    const { cluster, pool } = this.#input;
    const children = Object.fromEntries(unheard.map(([node, { runId }]) => [node, runId]));
    const { closed } = await control.checkChildren.executeWithOptions(
      { summary: `are ${unheard.length} updates still running?` },
      [{ cluster, pool, children }],
    );
    for (const node of closed) this.#settle(node, children[node] ?? ADOPTED, { outcome: 'superseded' });
  }

  /** Cancels every update and waits until each has ended: before apply as it was, from apply on finished. */
  async stopAll(): Promise<void> {
    for (const node of this.nodes()) await this.#cancel(node);
    while (this.size > 0) {
      this.takeNews();
      await condition(() => this.#news, this.#input.tuning.tickSeconds * 1000);
      await this.findSilent();
    }
  }

  #cancel(node: string): Promise<boolean> {
    return this.#tell(node, (update) => update.cancel());
  }

  /** False: it has ended. */
  async #tell(
    node: string,
    say: (update: ReturnType<typeof getExternalWorkflowHandle>) => Promise<void>,
  ): Promise<boolean> {
    const runId = this.#inFlight.get(node)?.runId;
    try {
      await say(getExternalWorkflowHandle(updateNodeId(node), runId === ADOPTED ? undefined : runId));
      return true;
    } catch {
      log.debug('The update has ended meanwhile', { node });
      return false;
    }
  }

  #settle(node: string, runId: string, end: UpdateEnd): void {
    const known = this.#inFlight.get(node);
    if (known === undefined || (known.runId !== runId && known.runId !== ADOPTED)) return;
    this.#forget(node);
    const { restSeconds, settleSeconds } = this.#input.tuning;
    const rest = end.restSeconds ?? (end.outcome === 'unreachable' ? restSeconds : settleSeconds);
    this.#resting.set(node, Date.now() + rest * 1000);
    this.#news = true;
  }

  #forget(node: string): void {
    this.#inFlight.delete(node);
    this.#awaited.delete(node);
  }
}
