import pMap from 'p-map';

/** Plays one machine; settles when it has ended, and says before when it is up. */
export type Play<Node> = (node: Node, onUp: () => void) => Promise<void>;

export interface FleetStart {
  /** How many machines are on their way up at one time. Default: all. */
  readonly startsAtOnce?: number | undefined;
  /** Aborted, no further machine begins. */
  readonly signal: AbortSignal;
}

/**
 * Plays every machine to its end; each begins as soon as few enough of those before it are still on their way up.
 *
 * @throws the failure of the first machine that fails.
 */
export async function playAll<Node>(
  nodes: readonly Node[],
  play: Play<Node>,
  { startsAtOnce = nodes.length, signal }: FleetStart,
): Promise<void> {
  const playing: Promise<void>[] = [];
  const begin = async (node: Node) => {
    if (signal.aborted) return;
    await new Promise<void>((resolve) => {
      const played = play(node, resolve);
      playing.push(played);
      // One that ends before it was up keeps nobody waiting; why it ended is told below.
      played.then(resolve, resolve);
    });
  };
  await pMap(nodes, begin, { concurrency: startsAtOnce });
  await Promise.all(playing);
}
