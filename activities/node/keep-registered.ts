import { setTimeout as sleep } from 'node:timers/promises';
import { nodeFacts } from '../../machine-config/pool/facts.js';
import { KINDS } from '../kubernetes/client.js';
import type { NodeDependencies } from './dependencies.js';
import type { Node } from './own-node.js';
import { registerNode, type RegisterOptions } from './register.js';

/**
 * Seldom enough that five thousand nodes are 17 reads a second, and soon enough for somebody who has deleted a Node and
 * waits for it to be looked after again.
 */
export const REGISTRATION_EVERY_MS = 5 * 60_000;

export interface KeepRegisteredOptions extends RegisterOptions {
  readonly everyMs?: number;
  readonly signal: AbortSignal;
}

/**
 * Registers the node again whenever its Node does not say any more that it has this worker: it was deleted, and the
 * kubelet has made it anew, without our annotations; nobody else would miss them, since a node without them counts as
 * one that has no worker. Returns when the signal aborts; never rejects.
 */
export async function keepRegistered(deps: NodeDependencies, options: KeepRegisteredOptions): Promise<void> {
  const { everyMs = REGISTRATION_EVERY_MS, signal, onRetry } = options;
  while (!signal.aborted) {
    try {
      await sleep(everyMs, undefined, { signal });
      if (!(await isRegistered(deps))) await registerNode(deps, options);
    } catch (error) {
      if (error instanceof Error && error.name === 'AbortError') return;
      // An API server that does not answer, or a Node that is not there now, is looked at again the next time.
      onRetry?.(error, everyMs);
    }
  }
}

async function isRegistered({ client, node, flavour, version }: NodeDependencies): Promise<boolean> {
  return nodeFacts(await client.get<Node>(KINDS.node, { name: node }), flavour).worker === version;
}
