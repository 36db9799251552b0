import { describe, expect, it, onTestFinished } from 'vitest';
import { Keeper, type MortalProcess } from '../../../dev/chaos/keeper.js';
import { waitUntil } from '../../../dev/processes/wait-until.js';
import { PATIENCE } from '../../support/patience.js';

/** A process that only has a pid. */
class Process implements MortalProcess {
  readonly id = 'control-1';
  pid: number | undefined = 1;
  starts = 0;

  kill(): Promise<void> {
    this.pid = undefined;
    return Promise.resolve();
  }

  restart(): Promise<void> {
    this.starts += 1;
    this.pid = this.starts + 1;
    return Promise.resolve();
  }
}

/** One that starts and is never ready. */
class NeverReady extends Process {
  override restart(): Promise<void> {
    this.starts += 1;
    return new Promise(() => undefined);
  }
}

function keeperOf(...processes: Process[]): Keeper {
  const keeper = new Keeper(processes, { lookEveryMs: 10 });
  onTestFinished(() => keeper.stop());
  return keeper;
}

describe('the keeper of the chaos test', () => {
  it('starts a process that ended by itself, and counts that', async () => {
    const process = new Process();
    const keeper = keeperOf(process);
    await process.kill();
    await waitUntil(() => Promise.resolve(process.pid !== undefined), {
      what: 'a restart',
      timeoutMs: PATIENCE.timeout,
    });
    expect(keeper.ended).toEqual({ 'control-1': 1 });
  });

  it('starts one again while another is not ready yet, and that one only once', async () => {
    const slow = new NeverReady();
    const other = new Process();
    keeperOf(slow, other);
    await Promise.all([slow.kill(), other.kill()]);
    const started = (times: number) => () => Promise.resolve(other.pid !== undefined && other.starts === times);
    await waitUntil(started(1), { what: 'a restart', timeoutMs: PATIENCE.timeout });
    await other.kill();
    await waitUntil(started(2), { what: 'one more', timeoutMs: PATIENCE.timeout });
    expect(slow.starts).toBe(1);
  });

  it('leaves one that was taken away to whoever did that', async () => {
    const taken = new Process();
    const other = new Process();
    const keeper = keeperOf(taken, other);
    await keeper.takeAway(taken);
    await other.kill();
    await waitUntil(() => Promise.resolve(other.pid !== undefined), { what: 'the other', timeoutMs: PATIENCE.timeout });
    expect(taken.pid).toBeUndefined();
    await keeper.bringBack(taken);
    expect(taken).toMatchObject({ starts: 1, pid: 2 });
  });
});
