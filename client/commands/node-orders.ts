import type { ExitName } from '../exit-codes.js';
import { holdNode, releaseNode, retryNode, type Released } from '../orders/node-orders.js';
import type { Session } from '../session.js';

export async function nodeHold(session: Session, node: string, { reason }: { reason: string }): Promise<ExitName> {
  const held = await holdNode(await session.cluster(), node, reason);
  const next = held.updateRuns ? 'its update that runs is finished and leaves it cordoned' : 'no update starts on it';
  session.print(held, () => `${node}: held (${reason}); ${next} before drydock node release ${node}`);
  return 'ok';
}

export async function nodeRelease(session: Session, node: string): Promise<ExitName> {
  const released = await releaseNode(await session.cluster(), node);
  session.print(released, () => `${node}: ${releasedInWords(released)}`);
  return 'ok';
}

function releasedInWords({ node, config, hold, uncordoned, stillCordoned }: Released): string {
  if (config !== undefined) return `may be updated to ${config} as it is; it stays cordoned by whoever cordoned it`;
  const was = hold === undefined ? 'no longer kept cordoned' : `no longer held (${hold})`;
  if (uncordoned) return `${was}, and uncordoned`;
  if (!stillCordoned) return `${was}; its next update starts when its turn comes`;
  return `${was}; somebody else has cordoned it, so no update starts before it is uncordoned, or released once more: drydock node release ${node}`;
}

export async function nodeRetry(session: Session, node: string): Promise<ExitName> {
  const retried = await retryNode(await session.cluster(), node, session.world.now());
  session.print(retried, () => `${node}: is tried again with ${retried.config} when its turn comes`);
  return 'ok';
}
