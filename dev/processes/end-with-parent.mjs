/**
 * Preloaded (`node --import`) into a process that must not outlive the one that started it, also when that one is
 * killed: an orphan gets another parent, which is all that can be seen of it.
 */
import { isMainThread } from 'node:worker_threads';

const PARENT_CHECK_MS = 1000;

if (isMainThread) {
  const parent = process.ppid;
  setInterval(() => {
    if (process.ppid !== parent) process.kill(process.pid, 'SIGKILL');
  }, PARENT_CHECK_MS).unref();
}
