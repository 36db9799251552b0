import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { waitUntil } from '../../dev/processes/wait-until.js';
import { WORKER_UNIT, type RealNode } from '../../dev/real-nodes/real-node.js';
import { file } from '../support/fake-host.js';
import { RealPools } from '../support/real-pools.js';
import { describeRealNodes, treeDifferences, treeOf, useLab, type Tree } from '../support/real-node.js';

/*
 * `systemctl stop` of the node worker in the middle of an update, on a real machine under the real engine: the worker is
 * gone within seconds, its disk is whole, and the next worker brings the update to its end.
 */

const NAME = 'stopped';
/** Far above TimeoutStopSec of its unit, at which systemd kills. */
const STOP_LIMIT_MS = 120_000;
const FILES = 1_000;

/** The journal of an update that is being applied. */
const JOURNAL = 'var/lib/drydock/journal.json';
const NOT_COMPARED = ['/var/lib/drydock', '/var/lib/kubelet', '/etc/drydock'];

/** Starts when there is a file of that name in /run. */
const SLOW_UNIT = `[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh /etc/slow/start.sh
[Install]
WantedBy=multi-user.target
`;
const startsAt = (gate: string) => `until test -e /run/${gate}; do sleep 0.1; done\n`;
const config = (gate: string, files: readonly object[] = []) => ({
  storage: { files: [file('/etc/slow/start.sh', startsAt(gate)), ...files] },
  systemd: { units: [{ name: 'slow.service', enabled: true, contents: SLOW_UNIT }] },
});

describeRealNodes('the node worker that is stopped in the middle of an update', () => {
  const lab = useLab();
  let pools: RealPools;
  let node: RealNode;

  beforeAll(async () => {
    pools = await RealPools.start(lab(), [{ name: NAME }]);
    node = pools.machine(NAME);
    await pools.untilUpdated(NAME, '');
    await pools.setPolicy({
      files: [
        { path: '/etc/slow', actions: [{ type: 'Restart', restart: { serviceName: 'slow.service' } }] },
        { path: '/etc/many', actions: [{ type: 'None' }] },
      ],
      units: [{ name: 'slow.service', actions: [{ type: 'DaemonReload' }] }],
    });
    await open('first');
    await pools.update(NAME, config('first'));
    await node.succeed(['systemctl', 'start', 'slow.service']);
  }, 600_000);
  // Before the lab, which was there first, ends.
  afterAll(() => pools.stop());

  const look = () => treeOf(node, { except: NOT_COMPARED });
  const open = (gate: string) => node.succeed(['touch', `/run/${gate}`]);
  const shut = (gate: string) => node.succeed(['rm', `/run/${gate}`]);
  const property = async (name: string, unit: string) =>
    (await node.succeed(['systemctl', 'show', '-P', name, unit])).trim();
  const phase = async () => {
    const text = await readFile(join(node.root, JOURNAL), 'utf8').catch(() => undefined);
    return text === undefined ? undefined : (JSON.parse(text) as { phase: string }).phase;
  };
  const untilSlowIs = (state: string) =>
    waitUntil(async () => (await property('ActiveState', 'slow.service')) === state, {
      what: `slow.service to be ${state}`,
      timeoutMs: 120_000,
    });
  const untilNew = (gate: string) =>
    waitUntil(
      async () => {
        const text = await readFile(join(node.root, 'etc/slow/start.sh'), 'utf8');
        return text === startsAt(gate) && (await phase()) === 'applying';
      },
      { what: 'the new start script, while it is applied', timeoutMs: 120_000, intervalMs: 20 },
    );

  /** It ends by itself, before systemd would kill it. */
  async function stop(): Promise<void> {
    await node.succeed(['systemctl', 'stop', WORKER_UNIT], { timeoutMs: STOP_LIMIT_MS });
    // Killed after that time it would be `timeout`.
    expect(await property('TimeoutStopUSec', WORKER_UNIT)).toBe('45s');
    expect(await property('Result', WORKER_UNIT)).toBe('success');
    expect(await property('ActiveState', WORKER_UNIT)).toBe('inactive');
  }

  async function expectWholeOld(before: Tree): Promise<void> {
    expect(treeDifferences(before, await look())).toEqual([]);
  }

  /** The next worker of the node brings the update that was interrupted to its end. */
  async function expectUpdated(from: string | undefined): Promise<void> {
    const facts = await pools.untilUpdated(NAME, from ?? '');
    expect(facts.failure).toBeUndefined();
    expect(await phase()).toBeUndefined();
  }

  it('while it waits for a service puts everything back, and the update ends well after its next start', async () => {
    const before = await look();
    const [boots, { current }] = [await node.boots(), await pools.facts(NAME)];
    await pools.give(NAME, config('second'));
    await untilNew('second');
    await untilSlowIs('activating');
    await stop();
    await expectWholeOld(before);
    expect(await phase()).toBeUndefined();
    // With its old files, which let it start.
    await untilSlowIs('active');
    const { state, failure } = await pools.facts(NAME);
    expect({ state, failure }).toEqual({ state: 'Working', failure: undefined });

    await node.succeed(['systemctl', 'start', WORKER_UNIT]);
    await untilNew('second');
    await open('second');
    await expectUpdated(current);
    expect(await readFile(join(node.root, 'etc/slow/start.sh'), 'utf8')).toBe(startsAt('second'));
    expect(await property('ActiveState', 'slow.service')).toBe('active');
    expect(await node.boots()).toBe(boots);
  });

  it('does not wait for a service that does not take its old files either; its next start goes on with that', async () => {
    const before = await look();
    const { current } = await pools.facts(NAME);
    await shut('second');
    await pools.give(NAME, config('third'));
    await untilNew('third');
    await untilSlowIs('activating');
    await stop();
    await expectWholeOld(before);
    expect(await phase()).toBe('applying');

    await node.succeed(['systemctl', 'start', WORKER_UNIT]);
    // Nothing is applied before what was left open is done.
    await untilSlowIs('activating');
    await expectWholeOld(before);
    await open('second');
    await untilNew('third');
    await open('third');
    await expectUpdated(current);
  });

  it('while it writes many files leaves none of them, and the update ends well after its next start', async () => {
    const before = await look();
    const { current } = await pools.facts(NAME);
    const many = Array.from({ length: FILES }, (_, index) => file(`/etc/many/${index}`, `${index}\n`));
    await pools.give(NAME, config('third', many));
    const folder = join(node.root, 'etc/many');
    const written = async () => (existsSync(folder) ? (await readdir(folder)).length : 0);
    const count = await waitUntil(written, { what: 'the first files', timeoutMs: 120_000, intervalMs: 5 });
    expect(count).toBeLessThan(FILES / 2);
    await stop();
    await expectWholeOld(before);
    expect(await phase()).toBeUndefined();

    await node.succeed(['systemctl', 'start', WORKER_UNIT]);
    await expectUpdated(current);
    expect(await written()).toBe(FILES);
    expect(await readFile(join(folder, '999'), 'utf8')).toBe('999\n');
  });
});
