import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { waitUntil } from '../../dev/processes/wait-until.js';
import { startRealNodes, WORKER_UNIT, type RealNode } from '../../dev/real-nodes/real-node.js';
import { describeRealNodes, useLab } from '../support/real-node.js';

/*
 * The packaged node worker as a service of a real systemd, as systemd sees it.
 */

const POLLING = '/run/drydock/polling';

describeRealNodes('the service of the node worker', () => {
  const lab = useLab();
  let node: RealNode;
  const property = async (name: string) => (await node.succeed(['systemctl', 'show', '-P', name, WORKER_UNIT])).trim();
  const version = async () => (await node.succeed(['cat', '/opt/drydock/current/VERSION'])).trim();
  const untilPolling = () =>
    waitUntil(async () => (await node.exec(['cat', POLLING])).stdout.trim() === (await version()), {
      what: 'the mark that the worker polls',
      timeoutMs: 60_000,
    });

  beforeAll(async () => {
    [node] = (await startRealNodes(lab(), { nodes: [{ name: 'service' }] })) as [RealNode];
  }, 300_000);

  it('is active only once it has said so, and marks its version when Temporal sees it poll', async () => {
    expect(await property('ActiveState')).toBe('active');
    expect(await property('Type')).toBe('notify');
    await untilPolling();
  });

  it('ends in order when it is stopped at rest: not killed, and nothing left open', async () => {
    await node.succeed(['systemctl', 'stop', WORKER_UNIT]);
    // Killed after TimeoutStopSec it would be `timeout`, ended by the signal `signal`.
    expect(await property('Result')).toBe('success');
    expect(await property('ExecMainCode')).toBe('1');
    expect((await node.exec(['test', '-e', '/var/lib/drydock/journal.json'])).code).not.toBe(0);
    expect((await node.exec(['test', '-e', '/var/lib/drydock/lock'])).code).not.toBe(0);
    await node.succeed(['systemctl', 'start', WORKER_UNIT]);
    await untilPolling();
  });

  it('is started again when it hangs', async () => {
    const folder = join(node.root, `etc/systemd/system/${WORKER_UNIT}.d`);
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, 'soon.conf'), '[Service]\nWatchdogSec=6\nRestartSec=1\n');
    await node.succeed(['systemctl', 'daemon-reload']);
    await node.succeed(['systemctl', 'restart', WORKER_UNIT]);
    await untilPolling();
    const before = await property('MainPID');
    await node.succeed(['kill', '-STOP', before]);
    await waitUntil(async () => !['0', before].includes(await property('MainPID')), {
      what: 'another process of the worker',
      timeoutMs: 60_000,
    });
    expect(Number(await property('NRestarts'))).toBeGreaterThan(0);
    expect(await node.journal(WORKER_UNIT)).toContain('Watchdog timeout');
    await untilPolling();
  });
});
