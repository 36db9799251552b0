import { setTimeout as sleep } from 'node:timers/promises';
import { DRYDOCK_ANNOTATIONS } from '../../machine-config/api/flavour.js';
import { KINDS } from '../kubernetes/client.js';
import { failedWith } from '../kubernetes/failures.js';
import { describeHost } from '../host/describe-host.js';
import { adoptFirstBoot } from '../host/first-boot.js';
import type { Rollback } from '../host/journal.js';
import { failureAnnotations, tellFailure } from './degraded.js';
import type { NodeDependencies } from './dependencies.js';
import { exclusively } from './exclusively.js';
import { failure } from './failures.js';
import { rolledBack } from './reboot.js';
import { ownNodeOf, swapNode, type Node, type OwnNode } from './own-node.js';

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
  const { host, store, flavour, hasItsName } = deps;
  const { annotations, sshUser } = flavour;
  await adoptFirstBoot({ host, store, sshUser, currentConfigKey: annotations.currentConfig, hasItsName });
  const own = await readNode(deps);
  await closeIfConfirmed(own, deps);
  const journal = await deps.store.journal();
  const onDisk = (await deps.store.currentConfig())?.metadata.name;
  const current = journal?.from ?? onDisk ?? own.current;
  const rollback = await untoldRollback(own, deps);
  const changes = {
    ...changedAnnotations(own, { current, isApplied: journal !== undefined }, deps),
    ...(rollback && failureAnnotations(own.facts, rolledBack(rollback), rollback.target, deps)),
  };
  if (Object.keys(changes).length > 0) await swapNode(own, { annotations: changes }, deps);
  if (rollback !== undefined) tellFailure(rolledBack(rollback), deps);
}

/** The word that all is well was written, and the worker died before it closed the journal. */
async function closeIfConfirmed({ facts }: OwnNode, { store }: NodeDependencies): Promise<void> {
  const journal = await store.journal();
  if (journal === undefined || facts.current !== journal.target) return;
  // A config that is applied once more, by force, is current from the beginning.
  if (facts.state !== 'Done' || facts.applying !== undefined) return;
  await store.removeJournal();
  await store.collectGarbage();
}

/** An update that this host took back after its boot is told once, as the failure that it was. */
async function untoldRollback({ facts }: OwnNode, { store }: NodeDependencies): Promise<Rollback | undefined> {
  const rollback = await store.rollback();
  return facts.failure?.target === rollback?.target ? undefined : rollback;
}

function changedAnnotations(
  { facts, hostText }: RegisteredNode,
  { current, isApplied }: { current: string; isApplied: boolean },
  { flavour, version, host }: NodeDependencies,
): Record<string, string | null> {
  const changes: Record<string, string | null> = {};
  const described = JSON.stringify(describeHost(host));
  if (hostText !== described) changes[DRYDOCK_ANNOTATIONS.host] = described;
  if (facts.worker !== version) changes[DRYDOCK_ANNOTATIONS.worker] = version;
  if (facts.current !== current) changes[flavour.annotations.currentConfig] = current;
  if (facts.state === undefined) changes[flavour.annotations.state] = 'Done';
  // Nothing half done is left on the disk, so that a newer config may be tried.
  if (facts.applying !== undefined && !isApplied) changes[DRYDOCK_ANNOTATIONS.applying] = null;
  return changes;
}

/** The Node, with what it says of its host so far. */
type RegisteredNode = OwnNode & { readonly hostText: string | undefined };

async function readNode(deps: NodeDependencies): Promise<RegisteredNode> {
  const { client, node } = deps;
  try {
    const object = await client.get<Node>(KINDS.node, { name: node });
    const own = ownNodeOf(object, deps);
    deps.memory?.remember(own, deps.now());
    return { ...own, hostText: object.metadata.annotations?.[DRYDOCK_ANNOTATIONS.host] };
  } catch (error) {
    if (failedWith(error, 'NotFound')) throw failure('NodeGone', `the Node ${node} does not exist yet`, error);
    throw error;
  }
}
