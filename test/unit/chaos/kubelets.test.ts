import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Keeper } from '../../../dev/chaos/keeper.js';
import { Kubelets } from '../../../dev/chaos/kubelets.js';
import { Supervisor, type LabProcess } from '../../../dev/processes/supervisor.js';
import { Gate } from '../../support/gate.js';

const IDLE = 'setInterval(() => undefined, 2 ** 30)';

let supervisor: Supervisor;
let kwok: LabProcess;
let keeper: Keeper;
let stopping: AbortController;
beforeEach(async () => {
  supervisor = Supervisor.start(await mkdtemp(join(tmpdir(), 'drydock-lab-')), true);
  kwok = await supervisor.run({ id: 'kwok', command: process.execPath, args: ['--eval', IDLE] });
  keeper = new Keeper([kwok]);
  stopping = new AbortController();
});
afterEach(async () => {
  stopping.abort();
  keeper.stop();
  await supervisor.end();
});

describe('the kubelets of the chaos test', () => {
  const kubeletsOnce = (apiReady: () => Promise<void>) =>
    new Kubelets({ keeper, kwok, apiReady, signal: stopping.signal });

  it('are started anew when the API server and etcd come back in one moment', async () => {
    const ready = new Gate();
    const kubelets = kubeletsOnce(() => ready.wait());
    const first = kwok.pid;
    const renewals = Promise.all([kubelets.renew(), kubelets.renew()]);
    await ready.reached;
    ready.open();
    await renewals;
    expect(kwok.pid).not.toBe(first);
    kwok.assertRunning();
    expect(keeper.isAway(kwok)).toBe(false);
  });

  it('are left alone until the API server is ready, also when it ends once more on its way', async () => {
    const first = kwok.pid;
    let tries = 0;
    const pids: (number | undefined)[] = [];
    const kubelets = kubeletsOnce(() => {
      tries += 1;
      pids.push(kwok.pid);
      return tries < 3 ? Promise.reject(new Error('kube-apiserver ended')) : Promise.resolve();
    });
    await kubelets.renew();
    expect(pids).toEqual([first, first, first]);
    expect(kwok.pid).not.toBe(first);
  });

  it('are not waited for when the run ends', async () => {
    const kubelets = kubeletsOnce(() => Promise.reject(new Error('not ready')));
    const renewed = kubelets.renew();
    stopping.abort();
    await expect(renewed).rejects.toThrow(/abort/);
  });
});

describe('a process of the lab', () => {
  it('refuses to be started twice at once, and both callers hear of it', async () => {
    await kwok.kill();
    const [first, second] = await Promise.allSettled([kwok.restart(), kwok.restart()]);
    expect(first).toMatchObject({ status: 'fulfilled' });
    expect(second).toMatchObject({ status: 'rejected', reason: { message: 'kwok is already being started' } });
    kwok.assertRunning();
  });

  it('ends when it is killed in the middle of its start', async () => {
    await kwok.kill();
    const started = kwok.restart();
    await kwok.kill();
    await started;
    expect(kwok.pid).toBeUndefined();
  });
});
