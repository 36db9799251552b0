import { setTimeout as sleep } from 'node:timers/promises';
import { KINDS } from '../activities/kubernetes/client.js';
import { failedWith } from '../activities/kubernetes/failures.js';
import { WatchCache } from '../activities/kubernetes/watch-cache.js';
import type { MachineConfigPool } from '../machine-config/api/machine-config-pool.js';
import { lineOf } from './command-error.js';
import type { Engine } from './engine.js';
import { poolSelectors } from '../activities/cluster/pool-view.js';
import { reportNode, type NodeReport, type NodeWithFacts } from './node-report.js';
import { isFullyUpdated, reportPool, type PoolReport } from './pool-report.js';
import type { DrydockCluster } from './rollouts.js';
import { shortConfig } from './table.js';

/** How a watched rollout ended; `deleted`: the pool is gone. */
export type WatchEnd = 'updated' | 'degraded' | 'deleted' | 'timedOut' | 'interrupted';

export interface RolloutChange {
  /** ISO 8601. */
  readonly at: string;
  readonly kind: 'pool' | 'node' | 'waiting' | 'problem';
  /** Of the pool or the node. */
  readonly name: string;
  readonly sentence: string;
  readonly pool?: PoolReport;
  readonly node?: NodeReport;
}

export interface WatchRolloutInput {
  readonly cluster: DrydockCluster;
  /** May take its time: the watch does not wait for it. */
  readonly engine: Promise<Engine>;
  readonly pool: string;
  readonly signal: AbortSignal;
  readonly timeoutSeconds?: number | undefined;
  readonly now: () => Date;
  readonly onChange: (change: RolloutChange) => void;
}

/** Changes that come in one go are looked at once. */
const SETTLE_MILLISECONDS = 100;
const ASK_ENGINE_MILLISECONDS = 5000;

/** Tells every change of a pool and its nodes until the pool is Updated or Degraded. Rejects if it may not watch. */
export async function watchRollout(input: WatchRolloutInput): Promise<WatchEnd> {
  const end = new AbortController();
  const timeout = input.timeoutSeconds === undefined ? [] : [AbortSignal.timeout(input.timeoutSeconds * 1000)];
  const signal = AbortSignal.any([input.signal, end.signal, ...timeout]);
  try {
    return await new Promise<WatchEnd>((resolve, reject) => {
      signal.addEventListener('abort', () => resolve(input.signal.aborted ? 'interrupted' : 'timedOut'));
      if (input.signal.aborted) resolve('interrupted');
      new RolloutWatch(input, signal, resolve, reject).start();
    });
  } finally {
    end.abort();
  }
}

class RolloutWatch {
  private readonly input: WatchRolloutInput;
  private readonly signal: AbortSignal;
  private readonly finish: (end: WatchEnd) => void;
  private readonly fail: (error: unknown) => void;
  private readonly pools: WatchCache<MachineConfigPool>;
  private readonly nodes: WatchCache<NodeWithFacts>;
  private readonly told = new Map<string, string>();
  private looked = false;
  private scheduled = false;

  constructor(
    input: WatchRolloutInput,
    signal: AbortSignal,
    finish: (end: WatchEnd) => void,
    fail: (error: unknown) => void,
  ) {
    this.input = input;
    this.signal = signal;
    this.finish = finish;
    this.fail = fail;
    const { kubernetes, flavour } = input.cluster;
    const onError = (error: unknown): void => this.troubled(error);
    this.pools = new WatchCache(kubernetes, flavour.machineConfigPool, { signal, onError });
    this.nodes = new WatchCache(kubernetes, KINDS.node, { signal, onError });
  }

  start(): void {
    for (const cache of [this.pools, this.nodes]) {
      cache.onChange(() => this.schedule());
      cache.synced().then(
        () => this.schedule(),
        () => undefined,
      );
    }
    this.followEngine().catch((error: unknown) => this.troubled(error));
  }

  private schedule(): void {
    if (this.scheduled || !this.pools.hasSynced() || !this.nodes.hasSynced()) return;
    this.scheduled = true;
    setTimeout(() => {
      this.scheduled = false;
      if (!this.signal.aborted) this.look();
    }, SETTLE_MILLISECONDS);
  }

  private look(): void {
    const object = this.pools.get(this.input.pool);
    if (object === undefined) {
      this.finish('deleted');
      return;
    }
    const pool = reportPool(object);
    const selectors = poolSelectors(this.pools.list());
    const { flavour } = this.input.cluster;
    this.tell('pool', pool.name, poolSentence(pool), { pool });
    for (const one of this.nodes.list()) {
      const node = reportNode(one, selectors, flavour);
      if (node.pool !== pool.name) continue;
      const sentence = nodeSentence(node);
      // At first only who is not where it should be: the others are counted in the pool's line.
      if (!this.looked && isQuiet(node, pool)) this.told.set(`node ${node.name}`, sentence);
      else this.tell('node', node.name, sentence, { node });
    }
    this.looked = true;
    if (isFullyUpdated(pool)) this.finish('updated');
    else if (pool.degraded && pool.observed) this.finish('degraded');
  }

  private async followEngine(): Promise<void> {
    const engine = await this.input.engine;
    while (!this.signal.aborted) {
      const { status, problem } = await engine.view(this.input.pool);
      const waiting = status?.turn?.waiting?.sentence;
      if (problem !== undefined) this.tell('problem', this.input.pool, problem, {});
      else if (waiting !== undefined) this.tell('waiting', this.input.pool, waiting, {});
      await sleep(ASK_ENGINE_MILLISECONDS, undefined, { signal: this.signal }).catch(() => undefined);
    }
  }

  private troubled(error: unknown): void {
    if (!this.looked && failedWith(error, 'Forbidden', 'NotFound')) this.fail(error);
    else this.tell('problem', this.input.pool, lineOf(error), {});
  }

  private tell(
    kind: RolloutChange['kind'],
    name: string,
    sentence: string,
    report: { pool?: PoolReport; node?: NodeReport },
  ): void {
    const key = `${kind} ${name}`;
    if (this.told.get(key) === sentence || this.signal.aborted) return;
    this.told.set(key, sentence);
    this.input.onChange({ at: this.input.now().toISOString(), kind, name, sentence, ...report });
  }
}

function isQuiet(node: NodeReport, pool: PoolReport): boolean {
  return node.state === 'Done' && node.current === pool.target && node.ready && node.schedulable;
}

function poolSentence(pool: PoolReport): string {
  const target = pool.target === null ? 'nothing rendered yet' : `to ${shortConfig(pool.target)}`;
  const word = pool.degraded ? 'Degraded' : pool.updated ? 'Updated' : pool.updating ? 'Updating' : 'Waiting';
  const counts = `${pool.updatedMachineCount} of ${pool.machineCount} updated`;
  const paused = pool.paused ? ', paused' : '';
  return `${word} ${target}: ${counts}${paused}${pool.degraded && pool.message !== '' ? `: ${pool.message}` : ''}`;
}

function nodeSentence(node: NodeReport): string {
  const moving = node.desired !== null && node.desired !== node.current;
  const current = shortConfig(node.current);
  const parts = [
    node.state,
    moving ? `${current || 'nothing'} → ${shortConfig(node.desired)}` : current,
    node.ready ? '' : 'not ready',
    node.schedulable ? '' : 'cordoned',
  ];
  const reason = node.reason === '' ? '' : `: ${node.reason}`;
  return parts.filter((part) => part !== '').join(', ') + reason;
}
