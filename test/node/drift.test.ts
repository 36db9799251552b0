import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { KINDS, type KubernetesObject } from '../../activities/kubernetes/client.js';
import { createKubernetesClient, type ClosableKubernetesClient } from '../../activities/kubernetes/rest.js';
import { startRealNodes, WORKER_UNIT, type RealNode } from '../../dev/real-nodes/real-node.js';
import { apiFlavour, DRYDOCK_ANNOTATIONS } from '../../machine-config/api/flavour.js';
import type { MachineConfig } from '../../machine-config/api/machine-config.js';
import { file, rendered } from '../support/fake-host.js';
import { MachineUnderTest } from '../support/machine-under-test.js';
import { describeRealNodes, treeDifferences, treeOf, useLab } from '../support/real-node.js';

/*
 * Drift on a real machine, found by the packaged node worker as it runs there. Its scan on a timer is off: what is found
 * is found because the kernel told of the change.
 */

const NAME = 'drifting';
const METRICS = '127.0.0.1:9464';
const KEYS = apiFlavour('openshift').annotations;
const FORCE_FILE = '/run/machine-config-daemon-force';
const FOLDERS = { folders: ['/etc', '/home', '/usr/lib/systemd', '/usr/local'] };

const KEY = `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI${'A'.repeat(43)} of-a-test`;
const unit = (start: string) => `[Service]\nExecStart=${start}\n[Install]\nWantedBy=multi-user.target\n`;
const CONFIG = rendered('rendered-worker-drift', {
  storage: {
    files: [
      file('/etc/app/plain.conf', 'one\n', { mode: 0o640, user: { name: 'core' }, group: { name: 'core' } }),
      file('/etc/app/second.conf', 'two\n'),
      {
        path: '/etc/app/packed.conf',
        contents: { source: `data:;base64,${gzipSync('packed\n').toString('base64')}`, compression: 'gzip' },
      },
    ],
  },
  systemd: {
    units: [
      {
        name: 'ours.service',
        enabled: true,
        contents: unit('/bin/sleep infinity'),
        dropins: [{ name: '10-ours.conf', contents: '[Service]\nNice=5\n' }],
      },
      { name: 'off.service', enabled: false, contents: unit('/bin/sleep 1') },
      { name: 'masked.service', mask: true, contents: unit('/bin/sleep 2') },
      { name: 'pool@.service', contents: unit('/bin/sleep %i') },
      { name: 'pool@3.service', enabled: true },
    ],
  },
  passwd: { users: [{ name: 'core', sshAuthorizedKeys: [KEY] }] },
});

/** Shell commands: how a thing of each kind is spoilt on the host, and put back; what the reason then names. */
const CLASSES: Readonly<Record<string, readonly [spoil: string, mend: string, ...named: string[]]>> = {
  contents: ['echo ONE >/etc/app/plain.conf', 'echo one >/etc/app/plain.conf', '/etc/app/plain.conf', 'other contents'],
  'contents of a packed file': [
    'sed -i s/packed/other/ /etc/app/packed.conf',
    'sed -i s/other/packed/ /etc/app/packed.conf',
    '/etc/app/packed.conf',
  ],
  'a file that is gone': [
    'mv /etc/app/plain.conf /etc/app/plain.conf.away',
    'mv /etc/app/plain.conf.away /etc/app/plain.conf',
    '/etc/app/plain.conf',
    'found nothing',
  ],
  mode: ['chmod 04640 /etc/app/plain.conf', 'chmod 0640 /etc/app/plain.conf', 'expected mode 0640, found 4640'],
  owner: [
    'chown root /etc/app/plain.conf',
    'chown core /etc/app/plain.conf',
    '/etc/app/plain.conf',
    'expected owner 1000:1000, found 0:1000',
  ],
  'a folder in its place': [
    'mv /etc/app/plain.conf /etc/kept; mkdir /etc/app/plain.conf',
    'rmdir /etc/app/plain.conf; mv /etc/kept /etc/app/plain.conf',
    'expected a file, found a directory',
  ],
  'a link in its place': [
    'mv /etc/app/plain.conf /etc/kept; ln -s /etc/kept /etc/app/plain.conf',
    'mv /etc/kept /etc/app/plain.conf',
    'expected a file, found a link',
  ],
  'a folder above it that is moved away': [
    'mv /etc/app /etc/app.away',
    'mv /etc/app.away /etc/app',
    '/etc/app/plain.conf',
    '/etc/app/packed.conf',
  ],
  'a unit': [
    'echo "#" >>/etc/systemd/system/ours.service',
    'sed -i /^#/d /etc/systemd/system/ours.service',
    '/etc/systemd/system/ours.service',
  ],
  'a drop-in': [
    'rm /etc/systemd/system/ours.service.d/10-ours.conf',
    'printf "[Service]\\nNice=5\\n" >/etc/systemd/system/ours.service.d/10-ours.conf',
    '10-ours.conf',
  ],
  'a template': [
    'echo "#" >>/etc/systemd/system/pool@.service',
    'sed -i /^#/d /etc/systemd/system/pool@.service',
    '/etc/systemd/system/pool@.service',
  ],
  'a unit that is disabled': [
    'systemctl disable ours.service',
    'systemctl enable ours.service',
    'ours.service: expected enabled, found disabled',
  ],
  'an instance that is disabled': [
    'systemctl disable pool@3.service',
    'systemctl enable pool@3.service',
    'pool@3.service: expected enabled',
  ],
  'a unit that is enabled': [
    'systemctl enable off.service',
    'systemctl disable off.service',
    'off.service: expected disabled, found enabled',
  ],
  'a unit that is enabled only until the next boot': [
    'systemctl disable ours.service; systemctl enable --runtime ours.service',
    'systemctl disable --runtime ours.service; systemctl enable ours.service',
    'ours.service: expected enabled, found enabled-runtime',
  ],
  'a mask that is lifted': [
    'systemctl unmask masked.service',
    'systemctl mask masked.service',
    '/etc/systemd/system/masked.service',
  ],
  'the target of a link': [
    'ln -sfn /etc/motd /etc/systemd/system/masked.service',
    'ln -sfn /dev/null /etc/systemd/system/masked.service',
    'expected a link to /dev/null, found one to /etc/motd',
  ],
};

type NodeObject = KubernetesObject & { status?: { nodeInfo?: { bootID?: string } } };
type EventObject = KubernetesObject & {
  reason: string;
  message: string;
  type: string;
  count: number;
  involvedObject: { name: string };
};

describeRealNodes('drift on a real machine', () => {
  const lab = useLab();
  let node: RealNode;
  let machine: MachineUnderTest;
  let admin: ClosableKubernetesClient;
  const sh = (command: string, timeoutMs = 120_000) => node.succeed(['sh', '-ec', command], { timeoutMs });
  const soon = <T>(condition: () => Promise<T>) => vi.waitFor(condition, { timeout: 60_000, interval: 50 });
  const annotations = async () => (await admin.get<NodeObject>(KINDS.node, { name: NAME })).metadata.annotations ?? {};
  const degraded = (...named: readonly string[]) =>
    soon(async () => {
      const { [KEYS.state]: state, [KEYS.reason]: reason = '' } = await annotations();
      expect(state).toBe('Degraded');
      for (const words of named) expect(reason).toContain(words);
      return reason;
    });
  const recovered = () =>
    soon(async () => {
      const { [KEYS.state]: state, [KEYS.reason]: reason = '' } = await annotations();
      expect({ state, reason }).toEqual({ state: 'Done', reason: '' });
    });
  const eventsOf = async (reason: string) =>
    (await admin.list<EventObject>(KINDS.event, { namespace: 'default' })).filter(
      (event) => event.involvedObject.name === NAME && event.reason === reason,
    );
  const metrics = () =>
    node.succeed([
      '/opt/drydock/current/bin/node',
      '-e',
      `fetch("http://${METRICS}/metrics").then(async (answer) => console.log(await answer.text()))`,
    ]);

  /** As an update does it. The worker may be looking at the disk at that moment. */
  const bring = (target: MachineConfig) =>
    soon(async () => {
      expect((await machine.drive({ do: 'apply', target })).answers).toMatchObject([{ applied: target.metadata.name }]);
      await soon(async () => expect((await machine.drive({ do: 'forget' })).answers).toEqual([]));
    });

  beforeAll(async () => {
    const environment = { DRYDOCK_SCAN_SECONDS: '0', DRYDOCK_METRICS_ADDRESS: METRICS };
    const [started] = await startRealNodes(lab(), { nodes: [{ name: NAME, environment }] });
    node = started as RealNode;
    machine = await MachineUnderTest.withPackage(node);
    admin = createKubernetesClient({ kubeconfigPath: lab().kubernetes.kubeconfigPath });
    await recovered();
    await bring(CONFIG);
  });
  afterAll(() => admin.close());

  // First: a node that drifts many times in a row is told of by fewer Events.
  test('is told by one Event and by a metric, which reads 0 when it is over', async () => {
    const series = (value: number) => `drydock_node_drift{kind="contents",path="/etc/app/second.conf"} ${value}`;
    await sh('echo spoilt with a secret >/etc/app/second.conf');
    const reason = await degraded('/etc/app/second.conf');
    const text = await metrics();
    expect(text).toContain(series(1));
    expect(text).toContain('drydock_node_state{state="Degraded"} 1');
    expect(text).toContain('drydock_node_state{state="Done"} 0');
    await soon(async () => {
      const events = (await eventsOf('ConfigDriftDetected')).filter(({ message }) => message === reason);
      expect(events).toMatchObject([{ type: 'Warning', count: 1 }]);
    });
    expect(`${text}${reason}${await node.journal(WORKER_UNIT)}`).not.toContain('secret');
    await sh('echo two >/etc/app/second.conf');
    await recovered();
    await soon(async () => expect(await metrics()).toContain(series(0)));
    expect(await metrics()).toContain('drydock_node_state{state="Done"} 1');
    await soon(async () => expect(await eventsOf('ConfigDriftResolved')).not.toEqual([]));
  });

  test.each(Object.entries(CLASSES))('%s is found and left as it is, and mended the node is well', async (_, entry) => {
    const [spoil, mend, ...named] = entry;
    const boots = await node.boots();
    await sh(spoil);
    const spoilt = await treeOf(machine, FOLDERS);
    await degraded(CONFIG.metadata.name, ...named);
    expect(treeDifferences(spoilt, await treeOf(machine, FOLDERS))).toEqual([]);
    await sh(mend);
    await recovered();
    expect(await node.boots()).toBe(boots);
  });

  test('SSH keys are found wherever sshd reads them, and only ours count in a file that others write', async () => {
    const [path] = await findKeyFile();
    const foreign = KEY.replace('of-a-test', 'of-somebody');
    await sh(`sed -i 's/of-a-test/of-a-thief/' ${path}`);
    expect(await degraded(path)).not.toContain('AAAA');
    await sh(`sed -i 's/of-a-thief/of-a-test/' ${path}`);
    await recovered();
    if (!path.endsWith('/authorized_keys')) return;
    await sh(`echo '${foreign}' >>${path}`);
    await sh('chmod 0400 /etc/app/second.conf');
    expect(await degraded('second.conf')).not.toContain(path);
    await sh('chmod 0644 /etc/app/second.conf');
    await recovered();
  });

  async function findKeyFile(): Promise<[string]> {
    const path = (await sh('grep -rl of-a-test /home/core')).trim();
    return [path];
  }

  test('is not seen in what editors and programs do to a file that ends as it was', async () => {
    const timesFound = async () => (await node.journal(WORKER_UNIT)).split('the disk has drifted').length - 1;
    const before = await timesFound();
    for (const harmless of [
      'touch /etc/app/second.conf',
      'cp -p /etc/app/second.conf /etc/app/second.conf~',
      'cp -p /etc/app/second.conf /etc/app/.second.conf.swp; rm /etc/app/.second.conf.swp',
      'sed -i s/absent/nothing/ /etc/app/second.conf',
      'install -m 0644 /etc/app/second.conf~ /etc/app/.new; mv /etc/app/.new /etc/app/second.conf',
      'cat /etc/app/second.conf~ 1<>/etc/app/second.conf',
      'systemctl daemon-reload; systemctl restart ours.service',
    ]) {
      await sh(harmless);
    }
    // By the time at which this is found, all before it has been looked at.
    await sh('chmod 0600 /etc/app/second.conf');
    await degraded('second.conf: expected mode 0644, found 0600');
    await sh('chmod 0644 /etc/app/second.conf; rm /etc/app/second.conf~');
    await recovered();
    expect(await timesFound()).toBe(before + 1);
  });

  test('is found in a storm of 10,000 changes, which the worker survives', async () => {
    const status = () => sh(`systemctl show -p MainPID -p NRestarts ${WORKER_UNIT}`);
    const before = await status();
    const storm = sh(
      'i=0; while [ $i -lt 5000 ]; do echo x >/etc/app/second.conf; echo two >/etc/app/second.conf; i=$((i+1)); done; touch /run/storm-is-over',
    );
    await sh('chmod 0600 /etc/app/packed.conf');
    await degraded('/etc/app/packed.conf: expected mode 0644, found 0600');
    await storm;
    await sh('chmod 0644 /etc/app/packed.conf');
    await recovered();
    expect(await status()).toBe(before);
  });

  test('with the force file is marked for the config to be applied again', async () => {
    await sh('echo x >/etc/app/second.conf');
    await degraded('second.conf');
    await sh(`touch ${FORCE_FILE}`);
    const bootId = await node.bootId();
    await soon(async () => expect((await annotations())[DRYDOCK_ANNOTATIONS.force]).toBe(bootId));
    await sh(`rm ${FORCE_FILE}`);
    await soon(async () => expect(await annotations()).not.toHaveProperty([DRYDOCK_ANNOTATIONS.force]));
    await sh('echo two >/etc/app/second.conf');
    await recovered();
  });

  test('that came while the worker was away is found when it is back, and so is its end', async () => {
    await sh(`systemctl stop ${WORKER_UNIT}; echo x >/etc/app/second.conf; systemctl start ${WORKER_UNIT}`);
    await degraded('second.conf');
    await sh(`systemctl stop ${WORKER_UNIT}; echo two >/etc/app/second.conf; systemctl start ${WORKER_UNIT}`);
    await recovered();
  });
});
