import { AUDIENCES, PROCESS_NAMES, type ClusterFault, type Fault, type PlannedFault } from './fault.js';
import { Deck, Random } from './random.js';

/** On whom faults are played. */
export interface Cast {
  /** Node name to the pool that it begins in. */
  readonly nodes: Readonly<Record<string, string>>;
  readonly pools: readonly string[];
  readonly apps: readonly string[];
  /** Nodes that somebody else has cordoned before the beginning. */
  readonly cordoned: readonly string[];
  /** Nodes that are held from the beginning. */
  readonly held: readonly string[];
}

export interface PlanOptions {
  readonly seed: number;
  readonly durationMs: number;
  readonly cast: Cast;
  /** Leaves processes and connections alone: only people and what they change. Default false. */
  readonly onlyCluster?: boolean;
}

/** Shortest and longest time from one fault of a sort to its next, in milliseconds. */
const EVERY = { process: [5_000, 11_000], network: [6_000, 14_000], config: [12_000, 35_000] } as const;
const EVERY_POOL_CHANGE = [8_000, 20_000] as const;
const EVERY_NODE_CHANGE = [4_000, 9_000] as const;
/** So long after it was brought back a process is left alone, so that something gets done. */
const RECOVERY_MS = 8_000;
/** A node that somebody cordoned takes a slot of its pool: more of them, and most pools would stand still. */
export const MOST_CORDONED = 2;
/** A node that is held takes none. */
const MOST_HELD = 4;
const LONGEST_FREEZE_MS = { temporal: 12_000, apiServer: 18_000, etcd: 10_000 } as const;
const FREEZE_OF_A_WORKER_MS = 45_000;

/**
 * What goes wrong, when, and for whom. It follows from the seed and the cast alone: a longer run begins like a shorter
 * one, except for faults that would have lasted beyond its end. Nothing begins after the duration or lasts beyond it.
 */
export function planFaults({ seed, durationMs, cast, onlyCluster }: PlanOptions): PlannedFault[] {
  const cluster = [
    ...sequence({ seed, stream: 'config', durationMs, every: EVERY.config }, configFaults(cast)),
    ...sequence({ seed, stream: 'pool', durationMs, every: EVERY_POOL_CHANGE }, poolFaults(cast)),
    ...sequence({ seed, stream: 'node', durationMs, every: EVERY_NODE_CHANGE }, nodeFaults(cast)),
  ];
  const machinery = onlyCluster
    ? []
    : [
        ...sequence({ seed, stream: 'process', durationMs, every: EVERY.process }, processFaults()),
        ...sequence({ seed, stream: 'network', durationMs, every: EVERY.network }, networkFaults()),
      ];
  return [...cluster, ...machinery]
    .map(({ atMs, fault }) => ({ atMs, fault: clipped(fault, durationMs - atMs) }))
    .sort((one, other) => one.atMs - other.atMs);
}

function clipped(fault: Fault, leftMs: number): Fault {
  return 'forMs' in fault && fault.forMs > leftMs ? { ...fault, forMs: leftMs } : fault;
}

interface Sequence {
  readonly seed: number;
  readonly stream: string;
  readonly durationMs: number;
  readonly every: readonly [shortest: number, longest: number];
}

/** Chooses a fault, or none at this moment. */
type Choose = (random: Random, atMs: number) => Fault | undefined;

function sequence({ seed, stream, durationMs, every }: Sequence, choose: Choose): PlannedFault[] {
  const random = new Random(seed, stream);
  const planned: PlannedFault[] = [];
  let atMs = random.between(0, every[0]);
  while (atMs < durationMs) {
    const fault = choose(random, atMs);
    if (fault !== undefined) planned.push({ atMs, fault });
    atMs += random.between(...every);
  }
  return planned;
}

/** A process that is away, or has just come back, is not chosen again. */
function processFaults(): Choose {
  const busyUntil = new Map<string, number>();
  const deck = new Deck(PROCESS_NAMES);
  return (random, atMs) => {
    const process = deck.pick(random);
    const freezes = random.fraction() < 0.35;
    const longest = freezes ? ({ ...LONGEST_FREEZE_MS } as Record<string, number>)[process] : 8_000;
    const forMs = random.between(500, longest ?? FREEZE_OF_A_WORKER_MS);
    if ((busyUntil.get(process) ?? 0) > atMs) return undefined;
    busyUntil.set(process, atMs + forMs + RECOVERY_MS);
    return { kind: freezes ? 'freeze' : 'kill', process, forMs };
  };
}

function networkFaults(): Choose {
  const deck = new Deck(['cutApi', 'cutTemporal', 'apiErrors', 'apiErrors', 'lostAnswers'] as const);
  return (random) => {
    const kind = deck.pick(random);
    const audience = random.pick([...AUDIENCES, 'everybody'] as const);
    const short = random.between(200, 5_000);
    const long = random.between(4_000, 15_000);
    const share = random.between(20, 60) / 100;
    if (kind === 'cutTemporal') return { kind, forMs: short };
    if (kind === 'cutApi') return { kind, audience, forMs: short };
    return { kind, audience, share, forMs: long };
  };
}

/** Few revisions, so that a pool goes back to an earlier one as often as on to a new one. */
function configFaults({ pools }: Cast): Choose {
  return (random) => ({
    kind: 'config',
    pool: random.pick(pools),
    revision: { file: random.between(1, 4), key: random.between(0, 2) },
  });
}

function poolFaults({ pools }: Cast): Choose {
  const pausedUntil = new Map<string, number>();
  return (random, atMs) => {
    const pool = random.pick(pools);
    const forMs = random.between(3_000, 20_000);
    const value = random.pick([1, 2, 3, 4, '10%', '34%', '50%'] as const);
    if (random.fraction() < 0.6) return { kind: 'maxUnavailable', pool, value };
    if ((pausedUntil.get(pool) ?? 0) > atMs) return undefined;
    pausedUntil.set(pool, atMs + forMs);
    return { kind: 'pause', pool, forMs };
  };
}

function nodeFaults(cast: Cast): Choose {
  const world: NodeWorld = {
    names: Object.keys(cast.nodes),
    pools: new Map(Object.entries(cast.nodes)),
    cordoned: new Set(cast.cordoned),
    held: new Set(cast.held),
    goneUntil: new Map(),
  };
  const deck = new Deck(NODE_FAULTS);
  return (random, atMs) => {
    const node = random.pick(world.names);
    const kind = deck.pick(random);
    const [pool, other, forMs] = [random.pick(cast.pools), random.fraction(), random.between(1_000, 15_000)];
    if (kind === 'createPods') return { kind, app: random.pick(cast.apps), count: random.between(1, 3) };
    if ((world.goneUntil.get(node) ?? 0) > atMs) return undefined;
    return nodeFault(world, { kind, node, pool, other, forMs, atMs });
  };
}

const NODE_FAULTS = [
  'recreateNode',
  'relabelNode',
  'cordonNode',
  'cordonNode',
  'uncordonNode',
  'holdNode',
  'createPods',
] as const;

/** What the plan itself has brought about so far. */
interface NodeWorld {
  readonly names: readonly string[];
  readonly pools: Map<string, string>;
  readonly cordoned: Set<string>;
  readonly held: Set<string>;
  readonly goneUntil: Map<string, number>;
}

interface NodeChoice {
  readonly kind: Exclude<(typeof NODE_FAULTS)[number], 'createPods'>;
  readonly node: string;
  readonly pool: string;
  /** Decides between two, from 0 to 1. */
  readonly other: number;
  readonly forMs: number;
  readonly atMs: number;
}

function nodeFault(world: NodeWorld, choice: NodeChoice): ClusterFault | undefined {
  const { node, pool, forMs, atMs } = choice;
  switch (choice.kind) {
    case 'recreateNode':
      world.goneUntil.set(node, atMs + forMs + RECOVERY_MS);
      world.cordoned.delete(node);
      world.held.delete(node);
      return { kind: 'recreateNode', node, forMs };
    case 'relabelNode':
      if (world.pools.get(node) === pool) return undefined;
      world.pools.set(node, pool);
      return { kind: 'relabelNode', node, pool };
    case 'cordonNode':
      if (world.cordoned.size >= MOST_CORDONED) return uncordon(world, [...world.cordoned][0] ?? node);
      world.cordoned.add(node);
      return { kind: 'cordonNode', node };
    case 'uncordonNode':
      // Half of the time one that nobody but Drydock may have cordoned: in the middle of its drain, perhaps.
      return uncordon(world, choice.other < 0.5 ? node : ([...world.cordoned][0] ?? node));
    case 'holdNode':
      if (world.held.has(node) || world.held.size >= MOST_HELD) return release(world, [...world.held][0] ?? node);
      world.held.add(node);
      return { kind: 'holdNode', node };
  }
}

function uncordon(world: NodeWorld, node: string): ClusterFault {
  world.cordoned.delete(node);
  return { kind: 'uncordonNode', node };
}

function release(world: NodeWorld, node: string): ClusterFault {
  world.held.delete(node);
  return { kind: 'releaseNode', node };
}
