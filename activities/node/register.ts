import { setTimeout as sleep } from 'node:timers/promises';
import { DRYDOCK_ANNOTATIONS, EMPTY_CONFIG_NAME } from '../../machine-config/api/flavour.js';
import { nodeFacts } from '../../machine-config/pool/facts.js';
import { KINDS } from '../kubernetes/client.js';
import { failedWith } from '../kubernetes/failures.js';
import type { NodeDependencies } from './dependencies.js';
import { exclusively } from './exclusively.js';
import { failure } from './failures.js';
import { swapNode, type Node, type OwnNode } from './own-node.js';

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 30_000;

export interface RegisterOptions {
  readonly signal?: AbortSignal;
  /** Told of each attempt that failed. */
  readonly onRetry?: (error: unknown, delayMs: number) => void;
}

/**
 * At the start of a worker: puts right what a crash left on the disk, then tells the Node which worker it has and what it
 * runs. A Node that does not exist yet, an API server that does not answer, and a host that is busy are waited for.
 */
export async function registerNode(deps: NodeDependencies, options: RegisterOptions = {}): Promise<void> {
  for (let delay = FIRST_DELAY_MS; ; delay = Math.min(delay * 2, LONGEST_DELAY_MS)) {
    try {
      await exclusively('registration', deps, () => register(deps));
      return;
    } catch (error) {
      if (options.signal?.aborted) throw error;
      options.onRetry?.(error, delay);
      await sleep(delay, undefined, options.signal === undefined ? {} : { signal: options.signal });
    }
  }
}

async function register(deps: NodeDependencies): Promise<void> {
  const own = await readNode(deps);
  await closeIfConfirmed(own, deps);
  const journal = await deps.store.journal();
  const onDisk = (await deps.store.currentConfig())?.metadata.name;
  const current = journal?.from ?? onDisk ?? own.current;
  const changes = changedAnnotations(own, { current, isApplied: journal !== undefined }, deps);
  if (Object.keys(changes).length > 0) await swapNode(own, { annotations: changes }, deps);
}

/** The word that all is well was written, and the worker died before it closed the journal. */
async function closeIfConfirmed({ facts }: OwnNode, { store }: NodeDependencies): Promise<void> {
  const journal = await store.journal();
  if (journal === undefined || facts.current !== journal.target) return;
  await store.removeJournal();
  await store.collectGarbage();
}

function changedAnnotations(
  { facts }: OwnNode,
  { current, isApplied }: { current: string; isApplied: boolean },
  { flavour, version }: NodeDependencies,
): Record<string, string | null> {
  const changes: Record<string, string | null> = {};
  if (facts.worker !== version) changes[DRYDOCK_ANNOTATIONS.worker] = version;
  if (facts.current !== current) changes[flavour.annotations.currentConfig] = current;
  if (facts.state === undefined) changes[flavour.annotations.state] = 'Done';
  // Nothing half done is left on the disk, so that a newer config may be tried.
  if (facts.applying !== undefined && !isApplied) changes[DRYDOCK_ANNOTATIONS.applying] = null;
  return changes;
}

async function readNode({ client, node, flavour }: NodeDependencies): Promise<OwnNode> {
  try {
    const object = await client.get<Node>(KINDS.node, { name: node });
    const facts = nodeFacts(object, flavour);
    return {
      facts,
      current: facts.current ?? EMPTY_CONFIG_NAME,
      resourceVersion: object.metadata.resourceVersion ?? '',
    };
  } catch (error) {
    if (failedWith(error, 'NotFound')) throw failure('NodeGone', `the Node ${node} does not exist yet`, error);
    throw error;
  }
}
