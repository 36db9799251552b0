import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { waitUntil } from '../processes/wait-until.js';
import type { Revision } from './fault.js';
import { revisionContents, revisionFile } from './hand.js';
import { isTaken } from './observer/check.js';
import type { Observer } from './observer/observer.js';
import type { SeenNode } from './observer/world.js';

export interface Ending {
  readonly observer: Observer;
  /** Names of all nodes that there must be. */
  readonly nodes: readonly string[];
  /** What each pool's config says by now. */
  readonly revisions: ReadonlyMap<string, Revision>;
  readonly rootOf: (node: string) => string;
}

/** How patient the end is: longer than any of the product's own patiences with a lost attempt, several times over. */
export const CONVERGENCE_LIMIT_MS = 480_000;
const LOOK_EVERY_MS = 1_000;
const HISTORY_LINES = 20;

/** Waits until nothing is left to do, by what the cluster stores and by what is on the nodes' disks. */
export async function converge(ending: Ending, limitMs = CONVERGENCE_LIMIT_MS): Promise<void> {
  let left: readonly Unsettled[] = [];
  const settled = async () => {
    left = await unsettled(ending);
    return left.length === 0;
  };
  try {
    await waitUntil(settled, { what: 'everything to converge', timeoutMs: limitMs, intervalMs: LOOK_EVERY_MS });
  } catch {
    const whys = left.map(({ name, why }) => `${name} ${why}`).join('; ');
    const histories = left.flatMap(({ name }) => ending.observer.historyOf(name).slice(-HISTORY_LINES));
    throw new NotConverged([`not converged within ${limitMs / 1000} s: ${whys}`, ...histories].join('\n    '));
  }
}

/** Some nodes did not get where they should be; the message names them and says what they lack. */
export class NotConverged extends Error {
  override readonly name = 'NotConverged';
}

interface Unsettled {
  readonly name: string;
  readonly why: string;
}

/** What is not yet as it shall be. */
async function unsettled(ending: Ending): Promise<Unsettled[]> {
  const { observer, nodes } = ending;
  const found = await Promise.all(
    nodes.map(async (name) => {
      const node = observer.world.nodes.get(name);
      const why = node === undefined ? 'has no Node' : await whyUnsettled(node, ending);
      return why === undefined ? [] : [{ name, why }];
    }),
  );
  return [...found.flat(), ...unsettledPools(ending)];
}

/** Of a pool in which nobody keeps a node back, everybody can read that it is done. */
function unsettledPools({ observer, nodes }: Ending): Unsettled[] {
  if (nodes.some((name) => observer.isKeptBack(name))) return [];
  const pools = [...observer.world.pools.values()].filter(({ name }) => observer.world.members(name).length > 0);
  return pools.filter(({ updated }) => !updated).map(({ name }) => ({ name, why: 'is a pool that is not Updated' }));
}

async function whyUnsettled(node: SeenNode, ending: Ending): Promise<string | undefined> {
  if (!node.managed) return 'has no worker that registered';
  if (!node.ready) return 'is not Ready';
  if (ending.observer.isKeptBack(node.name))
    return isTaken(node) ? 'is kept back by somebody, and not given back' : undefined;
  const target = ending.observer.world.pools.get(node.pool)?.target;
  if (node.current !== target) return `runs ${node.current}, its pool ${node.pool} wants ${target ?? 'nothing'}`;
  if (isTaken(node) || node.state !== 'Done') return `is ${node.state}, desired ${node.desired}`;
  if (node.unschedulable) return 'is cordoned, by nobody any more';
  return differenceOnDisk(node, ending);
}

/** A config that is not rendered yet shows here: the disk is compared with what people wrote last. */
async function differenceOnDisk({ name, pool }: SeenNode, { revisions, rootOf }: Ending): Promise<string | undefined> {
  for (const [owner, revision] of revisions) {
    const wanted = owner === pool || owner === 'worker' ? revisionContents(revision) : undefined;
    const found = await readFile(join(rootOf(name), revisionFile(owner)), 'utf8').catch(() => undefined);
    if (found !== wanted)
      return `has ${JSON.stringify(found)} in /${revisionFile(owner)}, not ${JSON.stringify(wanted)}`;
  }
  return undefined;
}
