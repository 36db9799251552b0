import { fc, test } from '@fast-check/vitest';
import { describe, expect, it } from 'vitest';
import { Assignments } from '../../../activities/cluster/assign.js';
import type { NodeResource } from '../../../activities/cluster/control-dependencies.js';
import { KINDS } from '../../../activities/kubernetes/client.js';
import { failedWith } from '../../../activities/kubernetes/failures.js';
import { DRYDOCK_ANNOTATIONS } from '../../../machine-config/api/flavour.js';
import { holdsGrant } from '../../../machine-config/pool/availability.js';
import { compareVersions } from '../../../machine-config/pool/grant-record.js';
import { nodeFacts } from '../../../machine-config/pool/facts.js';
import type { Grant } from '../../../machine-config/pool/turn.js';
import type { AssignInput } from '../../../workflows/contract/activities.js';
import { LaggingCache } from '../../support/lagging-cache.js';
import { CLUSTER, FakeControl, POOL } from './fake-control.js';

const TARGET = 'rendered-worker-1';
const NODES = ['a', 'b', 'c', 'd', 'e'];
const WORKERS = ['control-1', 'control-2', 'control-3'];
const LIMIT = 2;

/** Several control workers, each with watches that lag on their own, whose every call waits until it is let through. */
class Race {
  readonly control = new FakeControl();
  readonly calls: (() => void)[] = [];
  readonly answers: { node: string; grant: Grant }[] = [];
  readonly reads: string[] = [];
  private readonly workers;
  private readonly running = new Set<Promise<void>>();
  private gated = true;
  mostHolders = 0;

  constructor() {
    const { control } = this;
    const { cluster, flavour, dependencies } = control;
    this.workers = WORKERS.map((identity) => {
      const nodes = new LaggingCache<NodeResource>(cluster, KINDS.node, dependencies.now);
      const pools = new LaggingCache<ReturnType<FakeControl['pool']>>(
        cluster,
        flavour.machineConfigPool,
        dependencies.now,
      );
      const own = { ...dependencies, client: cluster.as(identity), nodes, pools };
      return { nodes, pools, assignments: new Assignments(own) };
    });
    control.addPool({ configuration: { name: TARGET }, maxUnavailable: LIMIT });
    for (const name of NODES) control.addNode(name, { [flavour.annotations.currentConfig]: 'old' });
    this.showAll();
    cluster.observe<NodeResource>(KINDS.node, () => {
      this.mostHolders = Math.max(this.mostHolders, this.holders().length);
    });
    cluster.intercept(({ identity, verb, resource }) => {
      this.reads.push(`${verb} ${resource.kind}`);
      if (!this.gated || !WORKERS.includes(identity)) return undefined;
      return new Promise<void>((resolve) => this.calls.push(resolve));
    });
  }

  holders(): string[] {
    return NODES.filter((name) => holdsGrant(nodeFacts(this.control.node(name), this.control.flavour)));
  }

  show(worker: number, kind: 'nodes' | 'pools', count: number): void {
    this.workers[worker]?.[kind].show(count);
  }

  showAll(): void {
    for (const { nodes, pools } of this.workers) for (const cache of [nodes, pools]) cache.show(Infinity);
  }

  assign(worker: number, node: string, intent: AssignInput['intent']): Promise<Grant> {
    const nodeUid = this.control.node(node).metadata.uid ?? '';
    const { assignments } = this.workers[worker] ?? {};
    if (assignments === undefined) throw new Error(`there is no worker ${worker}`);
    return assignments.assign({ cluster: CLUSTER, pool: POOL, node, nodeUid, intent });
  }

  ask(worker: number, node: string, intent: AssignInput['intent']): void {
    const asked: Promise<void> = this.assign(worker, node, intent)
      .then((grant) => void this.answers.push({ node, grant }))
      .catch((error: unknown) => {
        if (!failedWith(error, 'Conflict')) throw error;
      })
      .finally(() => void this.running.delete(asked));
    this.running.add(asked);
  }

  /** The node has got to what it was granted, and gives its slot back. */
  async arrives(node: string): Promise<void> {
    const { currentConfig, desiredConfig } = this.control.flavour.annotations;
    const desired = this.control.node(node).metadata.annotations?.[desiredConfig];
    await this.write(node, { [currentConfig]: desired === TARGET ? TARGET : 'old' });
  }

  /** It has to be updated once more. */
  fallsBack(node: string): Promise<void> {
    const { currentConfig, desiredConfig } = this.control.flavour.annotations;
    return this.holders().includes(node)
      ? Promise.resolve()
      : this.write(node, { [currentConfig]: 'old', [desiredConfig]: 'old' });
  }

  async write(name: string, annotations: Record<string, string>): Promise<void> {
    await this.control.cluster.patch(KINDS.node, { name }, { metadata: { annotations } });
  }

  async settle(): Promise<void> {
    for (let i = 0; i < 20; i += 1) await Promise.resolve();
  }

  async finish(): Promise<void> {
    this.gated = false;
    for (const letThrough of this.calls.splice(0)) letThrough();
    await Promise.all(this.running);
  }
}

const worker = fc.nat(WORKERS.length - 1);
const node = fc.constantFrom(...NODES);
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('start' as const), worker, node }) },
  { weight: 8, arbitrary: fc.record({ do: fc.constant('let through' as const), which: fc.nat(7) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('show' as const),
      worker,
      kind: fc.constantFrom('nodes' as const, 'pools' as const),
      count: fc.integer({ min: 1, max: 4 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('withdraw' as const), worker, node }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('arrives' as const), node }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('falls back' as const), node }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('heartbeat' as const), node, beat: fc.nat(9) }) },
);

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

async function take(race: Race, next: Step): Promise<void> {
  if (next.do === 'start' || next.do === 'withdraw') race.ask(next.worker, next.node, next.do);
  else if (next.do === 'let through') race.calls.splice(next.which % Math.max(1, race.calls.length), 1)[0]?.();
  else if (next.do === 'show') race.show(next.worker, next.kind, next.count);
  else if (next.do === 'arrives') await race.arrives(next.node);
  else if (next.do === 'falls back') await race.fallsBack(next.node);
  else await race.write(next.node, { beat: String(next.beat) });
  await race.settle();
}

describe('assign, by several control workers whose watches lag', () => {
  test.prop([fc.array(step, { minLength: 10, maxLength: 100 })], { numRuns: 60 })(
    'never lets more nodes hold a slot than may be unavailable, and loses no slot',
    async (steps) => {
      const race = new Race();
      for (const next of steps) await take(race, next);
      await race.finish();
      expect(race.mostHolders).toBeLessThanOrEqual(LIMIT);

      race.showAll();
      for (const name of NODES) await race.fallsBack(name);
      for (const name of NODES) race.ask(0, name, 'start');
      await race.finish();
      expect(race.holders()).toHaveLength(LIMIT);
    },
  );

  it('reads nothing to take a slot where its watches are up to date', async () => {
    const race = new Race();
    await race.finish();
    // The first grant of a pool knows nothing of earlier ones.
    race.ask(0, 'a', 'start');
    await race.finish();
    race.showAll();
    race.reads.length = 0;
    race.ask(0, 'b', 'start');
    await race.finish();
    expect(race.answers).toMatchObject([{ grant: { outcome: 'granted' } }, { grant: { outcome: 'granted' } }]);
    expect(race.reads).toEqual(['patch MachineConfigPool', 'patch Node']);
  });

  it('lists the Nodes where its watch has not come as far as the grants of others', async () => {
    const race = new Race();
    await race.finish();
    race.ask(0, 'a', 'start');
    await race.finish();
    race.show(0, 'nodes', Infinity);
    race.show(0, 'pools', Infinity);
    race.ask(0, 'b', 'start');
    await race.finish();
    // The second grant forgot the first, which this watch has not shown.
    race.show(1, 'pools', Infinity);
    race.reads.length = 0;
    race.ask(1, 'c', 'start');
    await race.finish();
    expect(race.reads).toContain('list Node');
    expect(race.holders()).toEqual(['a', 'b']);
  });

  it('frees a slot that was recorded and never written once the node is given back, whoever still means to write', async () => {
    const race = new Race();
    await race.finish();
    race.ask(0, 'a', 'start');
    await race.finish();
    race.ask(0, 'a', 'withdraw');
    await race.finish();
    race.showAll();
    const { cluster } = race.control;
    cluster.failNext({ verb: 'patch', kind: 'Node', name: 'a' });
    await expect(race.assign(0, 'a', 'start')).rejects.toMatchObject({ type: 'ApiUnavailable' });
    const recorded = race.control.node('a').metadata.resourceVersion ?? '';
    race.ask(1, 'a', 'withdraw');
    await race.finish();
    const moved = race.control.node('a').metadata.resourceVersion ?? '';
    expect(compareVersions(moved, recorded)).toBeGreaterThan(0);
    expect(race.control.pool().metadata.annotations?.[DRYDOCK_ANNOTATIONS.lastGrant]).toContain(recorded);
    race.showAll();
    for (const name of ['b', 'c', 'd']) race.ask(2, name, 'start');
    await race.finish();
    expect(race.holders()).toEqual(['b', 'c']);
  });
});
