import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { waitUntil } from '../../dev/processes/wait-until.js';
import type { NodeFacts } from '../../machine-config/pool/facts.js';
import { file } from '../support/fake-host.js';
import { RealPools } from '../support/real-pools.js';
import { describeRealNodes, treeDifferences, treeOf, useLab } from '../support/real-node.js';

/*
 * Whole updates of real machines by the packaged node worker, under the real engine: what befalls a node that an update
 * cuts off, that loses its engine, or that somebody forces.
 */

const SECONDS = {
  DRYDOCK_PROBATION_SECONDS: '10',
  DRYDOCK_SELF_UNCORDON_SECONDS: '8',
  DRYDOCK_IDLE_CORDON_SECONDS: '12',
};
const NAMES = ['adopted', 'firewalled', 'kubeletless', 'patient', 'forced', 'serviced'] as const;
type Name = (typeof NAMES)[number];

/** Comes and goes with updates, by design. */
const NOT_COMPARED = ['/var/lib/drydock', '/var/lib/kubelet', '/etc/drydock'];

const service = (...lines: string[]) =>
  [
    '[Unit]',
    'Description=Of a test',
    '[Service]',
    'Type=oneshot',
    'RemainAfterExit=yes',
    ...lines,
    '[Install]',
    'WantedBy=multi-user.target',
    '',
  ].join('\n');

describeRealNodes('a real node', () => {
  const lab = useLab();
  let pools: RealPools;

  beforeAll(async () => {
    pools = await RealPools.start(
      lab(),
      NAMES.map((name) => ({ name, environment: SECONDS })),
    );
    for (const name of NAMES) await pools.untilUpdated(name, '');
  }, 600_000);
  // Before the lab, which was there first, ends.
  afterAll(() => pools.stop());

  const look = (name: Name) => treeOf(pools.machine(name), { except: NOT_COMPARED });
  const boots = (name: Name) => pools.machine(name).boots();

  it('that is all as the target says is adopted without a cordon, a reboot or a write', async () => {
    // The very first config of every node here was the empty one: registered and Done, and never cordoned.
    expect(await boots('adopted')).toBe(1);
    const path = join(pools.machine('adopted').root, '/etc/adopted.conf');
    await writeFile(path, 'there already\n', { mode: 0o644 });
    const seen: NodeFacts[] = [];
    const before = await look('adopted');
    const { current = '' } = await pools.facts('adopted');
    await pools.give('adopted', { storage: { files: [file('/etc/adopted.conf', 'there already\n')] } });
    await pools.until('adopted', 'on the new config', (facts) => {
      seen.push(facts);
      return facts.state === 'Done' && facts.current !== current;
    });
    expect(seen.some(({ unschedulable }) => unschedulable)).toBe(false);
    expect(await boots('adopted')).toBe(1);
    expect(treeDifferences(before, await look('adopted'))).toEqual([]);
  });

  it('restarts a service where the policy says so, without drain and reboot', async () => {
    const machine = pools.machine('serviced');
    const show = async (property: string) =>
      (await machine.succeed(['systemctl', 'show', '--value', '-p', property, 'clock.service'])).trim();
    const unit = {
      name: 'clock.service',
      enabled: true,
      contents: '[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n',
    };
    await pools.setPolicy({
      files: [{ path: '/etc/clock', actions: [{ type: 'Restart', restart: { serviceName: 'clock.service' } }] }],
    });
    const config = (text: string) => ({
      storage: { files: [file('/etc/clock/zone', text)] },
      systemd: { units: [unit] },
    });
    await pools.update('serviced', config('one\n'));
    expect(await boots('serviced')).toBe(2);
    expect(await show('ActiveState')).toBe('active');
    const [pid, bootId] = [await show('MainPID'), await machine.bootId()];
    const seen: NodeFacts[] = [];
    const { current = '' } = await pools.facts('serviced');
    await pools.give('serviced', config('two\n'));
    await pools.until('serviced', 'on the new config', (facts) => {
      seen.push(facts);
      return facts.state === 'Done' && facts.current !== current;
    });
    expect(await machine.succeed(['cat', '/etc/clock/zone'])).toBe('two\n');
    expect(await show('MainPID')).not.toBe(pid);
    expect(await machine.bootId()).toBe(bootId);
    expect(seen.some(({ unschedulable }) => unschedulable)).toBe(false);
  });

  it('survives its worker being killed again and again through an update, and reboots once', async () => {
    const before = await boots('serviced');
    const { current = '' } = await pools.facts('serviced');
    const files = Array.from({ length: 30 }, (_, index) => file(`/etc/many/${index}`, `${index}\n`));
    await pools.give('serviced', { storage: { files } });
    let kills = 0;
    await pools.until('serviced', 'updated', async (facts) => {
      if (facts.state === 'Working' && kills < 6 && (await pools.machine('serviced').isOn())) {
        kills += 1;
        await pools
          .machine('serviced')
          .killWorker('SIGKILL')
          .catch(() => undefined);
      }
      return facts.state === 'Done' && facts.current !== current && !facts.unschedulable && facts.ready;
    });
    expect(kills).toBeGreaterThan(0);
    expect(await boots('serviced')).toBe(before + 1);
    for (const index of [0, 15, 29]) {
      expect(await pools.machine('serviced').succeed(['cat', `/etc/many/${index}`])).toBe(`${index}\n`);
    }
  });

  describe.concurrent('that an update cuts off comes back by itself, Degraded with the reason', () => {
    async function expectRolledBack(name: Name, ignition: object): Promise<NodeFacts> {
      const before = await look(name);
      const count = await boots(name);
      const { current } = await pools.facts(name);
      await pools.give(name, ignition);
      const facts = await pools.until(name, 'rolled back', ({ state, failure, unschedulable, ready }) => {
        return state === 'Degraded' && failure?.code === 'RolledBackAfterBoot' && !unschedulable && ready;
      });
      expect(facts.current).toBe(current);
      expect(await boots(name)).toBe(count + 2);
      expect(treeDifferences(before, await look(name))).toEqual([]);
      expect(await pools.machine(name).exec(['test', '-e', '/var/lib/drydock/journal.json'])).toMatchObject({
        code: 1,
      });
      return facts;
    }

    it('when a unit breaks its kubelet', async () => {
      const dropins = [{ name: '90-broken.conf', contents: '[Service]\nExecStart=\nExecStart=/bin/false\n' }];
      const { reason } = await expectRolledBack('kubeletless', {
        systemd: { units: [{ name: 'kubelet.service', dropins }] },
      });
      expect(reason).toContain('the kubelet was not healthy');
    });

    it('when its firewall drops everything', async () => {
      const drop = (hook: string, loopback: string) =>
        `chain ${hook}_all {\ntype filter hook ${hook} priority 0; policy drop;\n${loopback} lo accept\n}\n`;
      const rules = `flush ruleset\ntable inet shut {\n${drop('input', 'iif')}${drop('output', 'oif')}}\n`;
      const contents = service('ExecStart=/usr/sbin/nft -f /etc/shut.nft');
      const { reason } = await expectRolledBack('firewalled', {
        storage: { files: [file('/etc/shut.nft', rules)] },
        systemd: { units: [{ name: 'shut.service', enabled: true, contents }] },
      });
      expect(reason).toContain('neither the API server nor Temporal could be reached');
    });
  });

  it('is applied to as a whole, and rebooted, when somebody forces it; without the force file drift is left as it is', async () => {
    const path = '/etc/forced.conf';
    await pools.update('forced', { storage: { files: [file(path, 'as declared\n')] } });
    const count = await boots('forced');
    const onDisk = join(pools.machine('forced').root, path);
    await writeFile(onDisk, 'changed by hand\n');
    const drifted = await pools.until('forced', 'drifted', ({ state }) => state === 'Degraded');
    expect(drifted.reason).toContain(path);
    expect(await readFile(onDisk, 'utf8')).toBe('changed by hand\n');
    await pools.machine('forced').succeed(['touch', '/run/machine-config-daemon-force']);
    await pools.until('forced', 'Done again', ({ state, unschedulable, ready, force }) => {
      return state === 'Done' && !unschedulable && ready && force === undefined;
    });
    expect(await readFile(onDisk, 'utf8')).toBe('as declared\n');
    expect(await boots('forced')).toBe(count + 1);
    expect((await pools.facts('forced')).reason ?? '').toBe('');
    expect((await pools.machine('forced').exec(['test', '-e', '/run/machine-config-daemon-force'])).code).toBe(1);
  });

  it('keeps an update although the API server alone stays away for longer than the probation', async () => {
    const count = await boots('patient');
    const { apiServer } = lab().kubernetes.processes;
    await pools.give('patient', { storage: { files: [file('/etc/sysctl.d/90-x.conf', 'vm.swappiness = 10\n')] } });
    await waitUntil(async () => (await boots('patient')) > count, { what: 'patient to reboot', timeoutMs: 120_000 });
    await apiServer?.kill('SIGKILL');
    await pools.machine('patient').waitUntilUp();
    // The time itself is what is waited for: the machine's own, and more of it than the probation lasts.
    await pools.machine('patient').succeed(['sleep', '15']);
    await apiServer?.restart();
    await lab().kubernetes.waitUntilReady();
    await pools.until('patient', 'updated', ({ state, failure, unschedulable, ready }) => {
      return state === 'Done' && failure === undefined && !unschedulable && ready;
    });
    expect(await boots('patient')).toBe(count + 1);
  });

  it('lifts its own cordon when the engine stays away, and the engine finds it done', async () => {
    const count = await boots('patient');
    const { current = '' } = await pools.facts('patient');
    await pools.give('patient', { storage: { files: [file('/etc/sysctl.d/90-x.conf', 'vm.swappiness = 20\n')] } });
    await waitUntil(async () => (await boots('patient')) > count, { what: 'patient to reboot', timeoutMs: 120_000 });
    await lab().temporal.kill('SIGKILL');
    const facts = await pools.until('patient', 'back in service by itself', (now) => {
      return now.state === 'Done' && !now.unschedulable && now.ready && now.current !== current;
    });
    await lab().temporal.restart();
    expect(await boots('patient')).toBe(count + 1);
    expect(facts.cordonedFor).toBeUndefined();
    // The engine is well again: the next change goes through it.
    await pools.update('patient', { storage: { files: [file('/etc/sysctl.d/90-x.conf', 'vm.swappiness = 30\n')] } });
    expect(await boots('patient')).toBe(count + 2);
  });
});
