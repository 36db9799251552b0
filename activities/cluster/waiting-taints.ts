import { setTimeout as sleep } from 'node:timers/promises';
import pMap from 'p-map';
import { WAITING_TAINT } from '../../machine-config/pool/facts.js';
import { poolOf } from '../../machine-config/pool/membership.js';
import { isLeftTainted, taintChanges, type TaintFacts } from '../../machine-config/pool/waiting-taints.js';
import { KINDS } from '../kubernetes/client.js';
import type { ControlDependencies, NodeResource } from './control-dependencies.js';
import { factsOf, poolFacts, poolSelectors } from './pool-view.js';

/** So that a turn stays short; the next one, which the changes themselves bring about, makes the next ones. */
const MOST_CHANGES = 50;
const WRITES_AT_ONCE = 10;
/** A turn does not wait longer for writes that are of no weight for what it decides. */
const PATIENCE_MILLISECONDS = 2_000;

type Dependencies = Pick<ControlDependencies, 'client' | 'flavour' | 'nodes' | 'pools'>;

/**
 * Puts the taint of waiting nodes on and takes it off as a turn of their pool wants it, and off those that were left
 * with it. Other taints stay: each write names the version that it is made of. A write that fails is made by a later
 * turn, and never makes this one fail.
 */
export async function keepTaints(dependencies: Dependencies, facts: TaintFacts): Promise<void> {
  const { add, remove } = taintChanges(facts);
  const members = new Set(facts.members.map(({ name }) => name));
  const left = leftTainted(dependencies, (name) => !members.has(name));
  const changes = [...remove, ...left].map((name) => ({ name, tainted: false }));
  await write(dependencies, [...changes, ...add.map((name) => ({ name, tainted: true }))].slice(0, MOST_CHANGES));
}

/** Takes the taint off the nodes of pools whose rollout is over, and of none. For the time between rollouts. */
export async function removeLeftTaints(dependencies: Dependencies): Promise<void> {
  const left = leftTainted(dependencies, () => true);
  await write(
    dependencies,
    left.map((name) => ({ name, tainted: false })),
  );
}

/** Names of tainted nodes, of those in question, that do not wait for anything. */
function leftTainted({ nodes, pools, flavour }: Dependencies, isInQuestion: (name: string) => boolean): string[] {
  const tainted = nodes
    .list()
    .map((node) => factsOf(node, flavour))
    .filter(({ name, waitsTainted }) => waitsTainted === true && isInQuestion(name));
  if (tainted.length === 0) return [];
  const selectors = poolSelectors(pools.list());
  const known = new Map(pools.list().map((pool) => [pool.metadata.name, poolFacts(pool)]));
  return tainted
    .filter((node) => {
      const membership = poolOf(node, selectors);
      return isLeftTainted(node, membership.kind === 'pool' ? known.get(membership.pool) : undefined);
    })
    .map(({ name }) => name);
}

interface Change {
  readonly name: string;
  readonly tainted: boolean;
}

async function write({ client, nodes }: Dependencies, changes: readonly Change[]): Promise<void> {
  if (changes.length === 0) return;
  const writes = pMap(
    changes,
    async ({ name, tainted }) => {
      const node = nodes.get(name);
      if (node === undefined) return;
      const patch = { metadata: { resourceVersion: node.metadata.resourceVersion }, spec: taintsWith(node, tainted) };
      // A newer version, a node that is gone, an API server that is away: what is still wanted then is wanted later.
      await client.patch(KINDS.node, { name }, patch).catch(() => undefined);
    },
    { concurrency: WRITES_AT_ONCE },
  );
  await Promise.race([writes, sleep(PATIENCE_MILLISECONDS, undefined, { ref: false })]);
}

/** The change of its spec that takes the taint off; undefined: it has none. For whoever writes the node anyway. */
export function withoutWaitingTaint(node: NodeResource): { taints: object[] | null } | undefined {
  const isTainted = node.spec?.taints?.some(
    ({ key, effect }) => key === WAITING_TAINT.key && effect === WAITING_TAINT.effect,
  );
  return isTainted === true ? taintsWith(node, false) : undefined;
}

function taintsWith({ spec }: NodeResource, tainted: boolean): { taints: object[] | null } {
  const others = (spec?.taints ?? []).filter(
    ({ key, effect }) => key !== WAITING_TAINT.key || effect !== WAITING_TAINT.effect,
  );
  const taints = tainted ? [...others, { ...WAITING_TAINT }] : others;
  return { taints: taints.length === 0 ? null : taints };
}
