import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import proto from '@temporalio/proto';
import type { NativeConnection } from '@temporalio/worker';
import { nodeTaskQueue } from '../workflows/contract/ids.js';

/** Contains the version of the worker that polls; what upgrades the package reads it. Gone with the boot. */
const POLLING_MARK = 'run/drydock/polling';
const LOOK_EVERY_MS = 1_000;

export interface PollingMarkOptions {
  readonly root: string;
  readonly node: string;
  readonly version: string;
  /** Of this process, and of no other that polls the same queue. */
  readonly identity: string;
  readonly connection: Pick<NativeConnection, 'workflowService' | 'withDeadline'>;
  readonly namespace: string;
  readonly signal: AbortSignal;
  readonly onRetry: (error: unknown) => void;
}

/** Nobody polls for this version yet: to be called before anything else, since an earlier run may have left its mark. */
export async function removePollingMark(root: string): Promise<void> {
  await rm(join(root, POLLING_MARK), { force: true });
}

/**
 * Writes the mark as soon as Temporal itself says that this process polls its node's queue: a worker that runs may still
 * be refused by the server. Resolves then, or when the signal ends it.
 */
export async function markPolling(options: PollingMarkOptions): Promise<void> {
  const { root, version, signal, onRetry } = options;
  while (!signal.aborted) {
    try {
      if (await isPoller(options)) {
        await writeMark(join(root, POLLING_MARK), `${version}\n`);
        return;
      }
    } catch (error) {
      onRetry(error);
    }
    await sleep(LOOK_EVERY_MS, undefined, { signal }).catch(() => undefined);
  }
}

async function isPoller({ connection, namespace, node, identity }: PollingMarkOptions): Promise<boolean> {
  const { pollers } = await connection.withDeadline(Date.now() + 10_000, () =>
    connection.workflowService.describeTaskQueue({
      namespace,
      taskQueue: { name: nodeTaskQueue(node) },
      taskQueueType: proto.temporal.api.enums.v1.TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
    }),
  );
  return pollers.some((poller) => poller.identity === identity);
}

async function writeMark(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o755 });
  await writeFile(`${path}.new`, text, { mode: 0o644 });
  await rename(`${path}.new`, path);
}
