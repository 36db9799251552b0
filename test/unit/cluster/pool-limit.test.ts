import { fc, test } from '@fast-check/vitest';
import { describe, expect, it } from 'vitest';
import { Assignments } from '../../../activities/cluster/assign.js';
import type { NodeResource, PoolResource } from '../../../activities/cluster/control-dependencies.js';
import { KINDS } from '../../../activities/kubernetes/client.js';
import { failedWith } from '../../../activities/kubernetes/failures.js';
import { holdsGrant } from '../../../machine-config/pool/availability.js';
import { nodeFacts } from '../../../machine-config/pool/facts.js';
import type { Grant } from '../../../machine-config/pool/turn.js';
import { LaggingCache } from '../../support/lagging-cache.js';
import { CLUSTER, FakeControl } from './fake-control.js';

const TARGET = 'rendered-1';
const POOLS = ['blue', 'green', 'red'];
const WORKERS = ['control-1', 'control-2'];
const nodesOf = (pool: string) => [`${pool}-1`, `${pool}-2`];
const NODES = POOLS.flatMap(nodesOf);
const poolOf = (node: string) => node.split('-')[0] ?? '';

/** Two control workers on three pools, of which so many may be in an update at once; every call waits until it is let through. */
class Race {
  readonly control = new FakeControl();
  readonly calls: (() => void)[] = [];
  readonly grants = new Map<string, Grant>();
  readonly requests: string[] = [];
  readonly #workers;
  readonly #running = new Set<Promise<void>>();
  #gated = true;
  mostPools = 0;

  private constructor() {
    const { cluster, flavour, dependencies } = this.control;
    this.#workers = WORKERS.map((identity) => {
      const nodes = new LaggingCache<NodeResource>(cluster, KINDS.node, dependencies.now);
      const pools = new LaggingCache<PoolResource>(cluster, flavour.machineConfigPool, dependencies.now);
      const own = { ...dependencies, client: cluster.as(identity), nodes, pools };
      return { nodes, pools, assignments: new Assignments(own) };
    });
  }

  static async start(maxPools: number | undefined): Promise<Race> {
    const race = new Race();
    const { control } = race;
    const { cluster, flavour } = control;
    await control.setPolicies(maxPools === undefined ? {} : { rollout: { maxPools } });
    for (const name of POOLS) {
      cluster.add<PoolResource>(flavour.machineConfigPool, {
        metadata: { name },
        spec: {
          configuration: { name: TARGET },
          maxUnavailable: 2,
          machineConfigSelector: {},
          nodeSelector: { matchLabels: { role: name } },
        },
      });
      for (const node of nodesOf(name)) {
        control.addNode(node, { [flavour.annotations.currentConfig]: 'old' });
        await cluster.patch(KINDS.node, { name: node }, { metadata: { labels: { role: name } } });
      }
    }
    race.showAll();
    cluster.observe<NodeResource>(KINDS.node, () => {
      race.mostPools = Math.max(race.mostPools, race.rolling().length);
    });
    cluster.intercept(({ identity, verb, resource }) => {
      race.requests.push(`${verb} ${resource.kind}`);
      if (!race.#gated || !WORKERS.includes(identity)) return undefined;
      return new Promise<void>((resolve) => race.calls.push(resolve));
    });
    return race;
  }

  rolling(): string[] {
    const { control } = this;
    return POOLS.filter((pool) =>
      nodesOf(pool).some((node) => holdsGrant(nodeFacts(control.node(node), control.flavour))),
    );
  }

  show(worker: number, kind: 'nodes' | 'pools', count: number): void {
    this.#workers[worker]?.[kind].show(count);
  }

  showAll(): void {
    for (const { nodes, pools } of this.#workers) for (const watch of [nodes, pools]) watch.show(Infinity);
  }

  ask(worker: number, node: string): void {
    const nodeUid = this.control.node(node).metadata.uid ?? '';
    const input = { cluster: CLUSTER, pool: poolOf(node), node, nodeUid, intent: 'start' as const };
    const { assignments } = this.#workers[worker]!;
    const asked: Promise<void> = assignments
      .assign(input)
      .then((grant) => void this.grants.set(node, grant))
      .catch((error: unknown) => {
        if (!failedWith(error, 'Conflict')) throw error;
      })
      .finally(() => void this.#running.delete(asked));
    this.#running.add(asked);
  }

  /** The node has got to what it was granted, and gives its slot back; or has to be updated once more. */
  async move(node: string): Promise<void> {
    const { currentConfig, desiredConfig } = this.control.flavour.annotations;
    const desired = this.control.node(node).metadata.annotations?.[desiredConfig];
    const holds = this.rolling().includes(poolOf(node)) && desired === TARGET;
    const annotations = holds ? { [currentConfig]: TARGET } : { [currentConfig]: 'old', [desiredConfig]: 'old' };
    await this.control.cluster.patch(KINDS.node, { name: node }, { metadata: { annotations } });
  }

  async settle(): Promise<void> {
    for (let i = 0; i < 20; i += 1) await Promise.resolve();
  }

  async finish(): Promise<void> {
    this.#gated = false;
    for (const letThrough of this.calls.splice(0)) letThrough();
    await Promise.all(this.#running);
  }
}

const worker = fc.nat(WORKERS.length - 1);
const node = fc.constantFrom(...NODES);
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('start' as const), worker, node }) },
  { weight: 10, arbitrary: fc.record({ do: fc.constant('let through' as const), which: fc.nat(7) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('show' as const),
      worker,
      kind: fc.constantFrom('nodes' as const, 'pools' as const),
      count: fc.integer({ min: 1, max: 4 }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('move' as const), node }) },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

async function take(race: Race, next: Step): Promise<void> {
  if (next.do === 'start') race.ask(next.worker, next.node);
  else if (next.do === 'let through') race.calls.splice(next.which % Math.max(1, race.calls.length), 1)[0]?.();
  else if (next.do === 'show') race.show(next.worker, next.kind, next.count);
  else await race.move(next.node);
  await race.settle();
}

describe('maxPools, over two control workers whose watches lag', () => {
  test.prop([fc.integer({ min: 1, max: 2 }), fc.array(step, { minLength: 10, maxLength: 120 })], { numRuns: 80 })(
    'is never exceeded, and a pool that may begin begins',
    async (maxPools, steps) => {
      const race = await Race.start(maxPools);
      for (const next of steps) await take(race, next);
      await race.finish();
      expect(race.mostPools).toBeLessThanOrEqual(maxPools);

      for (const name of NODES) await race.move(name);
      for (const name of NODES) await race.move(name);
      for (const name of NODES) if (race.rolling().includes(poolOf(name))) await race.move(name);
      race.showAll();
      for (const pool of POOLS) {
        race.ask(0, nodesOf(pool)[0]!);
        await race.finish();
        race.showAll();
      }
      expect(race.rolling()).toHaveLength(maxPools);
    },
  );

  it('lets two pools that begin in the same moment not both begin', async () => {
    const race = await Race.start(1);
    race.ask(0, 'blue-1');
    race.ask(1, 'green-1');
    // Each records its grant before either looks at the other.
    await race.settle();
    while (race.calls.length > 0) {
      for (const letThrough of race.calls.splice(0)) letThrough();
      await race.settle();
    }
    await race.finish();
    expect(race.mostPools).toBeLessThanOrEqual(1);
    const refused = [...race.grants.values()].filter(({ outcome }) => outcome === 'refused');
    expect(refused[0]).toMatchObject({ code: 'PoolLimit', sentence: expect.stringContaining('maxPools') as string });

    race.showAll();
    race.ask(0, 'blue-1');
    await race.finish();
    expect(race.rolling()).toHaveLength(1);
  });

  it('lets a pool that is in an update go on with it, and waits for no record of a slot that was never written', async () => {
    const race = await Race.start(1);
    await race.finish();
    race.ask(0, 'blue-1');
    await race.finish();
    race.showAll();
    race.ask(1, 'blue-2');
    await race.finish();
    race.showAll();
    race.ask(1, 'green-1');
    await race.finish();
    expect(race.grants.get('blue-2')).toMatchObject({ outcome: 'granted' });
    expect(race.grants.get('green-1')).toMatchObject({ outcome: 'refused', code: 'PoolLimit' });
    for (const name of nodesOf('blue')) await race.move(name);
    race.showAll();
    race.ask(1, 'green-1');
    await race.finish();
    expect(race.rolling()).toEqual(['green']);
  });

  it('costs one list of the pools more for a slot, and nothing without a limit', async () => {
    for (const [maxPools, more] of [
      [undefined, []],
      [1, ['list MachineConfigPool']],
    ] as const) {
      const race = await Race.start(maxPools);
      await race.finish();
      race.ask(0, 'blue-1');
      await race.finish();
      race.showAll();
      race.requests.length = 0;
      race.ask(0, 'blue-2');
      await race.finish();
      expect(race.grants.get('blue-2')).toMatchObject({ outcome: 'granted' });
      expect(race.requests).toEqual(['patch MachineConfigPool', ...more, 'patch Node']);
    }
  });
});
