import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { KINDS, type KubernetesObject } from '../../activities/kubernetes/client.js';
import { createKubernetesClient, type ClosableKubernetesClient } from '../../activities/kubernetes/rest.js';
import { CONTROL_USER } from '../../client/install/rbac.js';
import { waitUntil } from '../../dev/processes/wait-until.js';
import { startMachines, startRealNodes, type Machine, type RealNode } from '../../dev/real-nodes/real-node.js';
import { apiFlavour } from '../../machine-config/api/flavour.js';
import { nodeFacts, type NodeObject } from '../../machine-config/pool/facts.js';
import packageJson from '../../package.json' with { type: 'json' };
import { file } from '../support/fake-host.js';
import { asVersion, unpackedPackage } from '../support/node-package.js';
import { describeRealNodes, useLab } from '../support/real-node.js';

/*
 * The packages of both workers as an administrator uses them: the control worker as a service of a real systemd, beside
 * it the command, and a node with its worker. Nothing runs from a clone.
 */

const flavour = apiFlavour('openshift');
const CONTROL_UNIT = 'drydock-control.service';
const OPT = '/opt/drydock-control';
const DRYDOCK = `${OPT}/current/bin/drydock`;
const SETTINGS = '/etc/drydock/control.env';
const KUBECONFIG = '/etc/drydock/control.kubeconfig';
/** Of the administrator who installs; the service has its own, with no more rights than it needs. */
const ADMIN_KUBECONFIG = '/root/admin.kubeconfig';
const NODE = 'worker-1';
const WAIT_MS = 150_000;
/** Ends at once, as a version does that lacks something here. */
const BROKEN_WORKER = `
import { readFileSync } from 'node:fs';
if (process.argv.includes('--version')) {
  process.stdout.write(JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).version + '\\n');
} else {
  process.exit(1);
}
`;

describeRealNodes('the package of the control worker on a real machine', () => {
  const lab = useLab();
  let machine: Machine;
  let node: RealNode;
  let client: ClosableKubernetesClient;
  let environment: Readonly<Record<string, string>>;
  let ours: string;

  beforeAll(async () => {
    const { kubernetes, temporal } = lab();
    const ports = [kubernetes.server, `http://${temporal.address}`].map((url) => Number(new URL(url).port));
    [machine] = (await startMachines(lab(), [{ name: 'control', forwards: ports }])) as [Machine];
    [node] = (await startRealNodes(lab(), {
      nodes: [{ name: NODE, labels: { 'node-role.kubernetes.io/worker': '' } }],
    })) as [RealNode];
    client = createKubernetesClient({ kubeconfigPath: kubernetes.kubeconfigPath });
    environment = {
      DRYDOCK_KUBECONFIG: KUBECONFIG,
      TEMPORAL_ADDRESS: `${machine.gateway}:${ports[1] ?? 0}`,
      TEMPORAL_NAMESPACE: temporal.namespace,
    };
    ours = await unpackedPackage('control', join(machine.root, 'root/packages'));
  }, 300_000);
  // Before the lab, which was there first, ends.
  afterAll(() => client.close());

  const property = async (name: string) =>
    (await machine.succeed(['systemctl', 'show', '-P', name, CONTROL_UNIT])).trim();
  const install = (folder: string) =>
    machine.exec([`${folder.slice(machine.root.length)}/install.sh`], { timeoutMs: 240_000 });
  /** The command, as root of the machine gives it. */
  const drydock = (...words: string[]) => {
    const variables = Object.entries({ ...environment, DRYDOCK_KUBECONFIG: ADMIN_KUBECONFIG }).map(
      ([name, value]) => `${name}=${value}`,
    );
    return machine.exec(['env', ...variables, DRYDOCK, ...words]);
  };
  /** The machine reaches the API server through its gateway. */
  async function bringKubeconfig(from: string, to: string): Promise<void> {
    const kubeconfig = parse(await readFile(from, 'utf8')) as { clusters: { cluster: Record<string, string> }[] };
    for (const { cluster } of kubeconfig.clusters) {
      const { port } = new URL(cluster['server'] ?? '');
      Object.assign(cluster, { server: `https://${machine.gateway}:${port}`, 'tls-server-name': 'kubernetes' });
    }
    await writeFile(join(machine.root, to), stringify(kubeconfig), { mode: 0o600 });
  }
  const pool = () => client.get(flavour.machineConfigPool, { name: 'worker' });
  const facts = async () =>
    nodeFacts(await client.get<KubernetesObject & NodeObject>(KINDS.node, { name: NODE }), flavour);

  /** Gives the pool a file, and waits until the node has it. */
  async function rollOut(name: string, text: string): Promise<void> {
    const config = { ignition: { version: '3.4.0' }, storage: { files: [file(`/etc/${name}`, text)] } };
    const metadata = { name: `50-${name}`, labels: { [flavour.roleLabel]: 'worker' } };
    await client.create(flavour.machineConfig, { metadata, spec: { config } } as KubernetesObject);
    try {
      await waitUntil(
        async () => {
          const { state, current, desired, unschedulable, ready } = await facts();
          const isThere = (await readFile(join(node.root, 'etc', name), 'utf8').catch(() => '')) === text;
          return isThere && state === 'Done' && current === desired && !unschedulable && ready;
        },
        { what: `${NODE} to have /etc/${name}`, timeoutMs: WAIT_MS },
      );
    } catch (error) {
      const log = await machine.journal(CONTROL_UNIT);
      throw new Error(`${String(error)}\n${JSON.stringify(await facts())}\n${log.slice(-4000)}`, { cause: error });
    }
  }

  it('installs itself, with an account without login, and waits for its settings', async () => {
    expect(await install(ours)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/is installed\. Write \/etc\/drydock\/control\.env/) as string,
    });
    expect(await machine.succeed(['getent', 'passwd', 'drydock'])).toMatch(/^drydock:.*nologin$/m);
    expect((await machine.succeed(['systemctl', 'is-enabled', CONTROL_UNIT])).trim()).toBe('enabled');
    expect(await property('ActiveState')).toBe('inactive');
    // No settings, no start, and no failure either.
    await machine.succeed(['systemctl', 'start', CONTROL_UNIT]);
    expect([await property('ActiveState'), await property('ConditionResult')]).toEqual(['inactive', 'no']);
  });

  it('brings the command, which renders offline and installs the API', async () => {
    expect((await drydock('--version')).stdout).toBe(`${packageJson.version}\n`);
    const metadata = { name: '50-motd', labels: { [flavour.roleLabel]: 'worker' } };
    const config = { ignition: { version: '3.4.0' }, storage: { files: [file('/etc/motd', 'hello\n')] } };
    const apiVersion = `${flavour.group}/${flavour.machineConfig.version}`;
    const text = stringify({ apiVersion, kind: 'MachineConfig', metadata, spec: { config } });
    await writeFile(join(machine.root, 'root/motd.yaml'), text);
    const rendered = await drydock('render', '-f', '/root/motd.yaml');
    expect(rendered).toMatchObject({ code: 0 });
    expect(rendered.stdout).toContain('/etc/motd');

    const { kubernetes } = lab();
    await mkdir(join(machine.root, 'etc/drydock'), { recursive: true });
    await bringKubeconfig(kubernetes.kubeconfigPath, ADMIN_KUBECONFIG);
    await bringKubeconfig(await kubernetes.userKubeconfig(CONTROL_USER), KUBECONFIG);
    expect(await drydock('install', '--run-pools')).toMatchObject({ code: 0 });
    expect((await pool()).metadata.name).toBe('worker');
  });

  it('says which file its account cannot read', async () => {
    const lines = Object.entries(environment).map(([name, value]) => `${name}=${value}\n`);
    await writeFile(join(machine.root, SETTINGS), lines.join(''), { mode: 0o600 });
    const failed = await install(ours);
    expect(failed).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`journalctl -u ${CONTROL_UNIT}`) as string,
    });
    expect(await machine.journal(CONTROL_UNIT)).toMatch(new RegExp(`drydock-control: .*${KUBECONFIG}`));
  });

  it('runs as that account, and rolls a pool out to a node that runs from its package, too', async () => {
    await machine.succeed(['chgrp', 'drydock', KUBECONFIG]);
    await machine.succeed(['chmod', '0640', KUBECONFIG]);
    expect(await install(ours)).toMatchObject({ code: 0, stdout: expect.stringMatching(/is in service\n$/) as string });
    const pid = await property('MainPID');
    expect((await machine.succeed(['ps', '-o', 'user=', '-p', pid])).trim()).toBe('drydock');
    await rollOut('first', 'one\n');
    const status = await drydock('rollout', 'status', 'worker');
    expect(status).toMatchObject({ code: 0, stdout: expect.stringContaining('worker') as string });
    // Nothing that its sandbox forbids, and no workflow bundled on the spot.
    expect(await machine.journal(CONTROL_UNIT)).not.toMatch(/Bundling|EROFS|EPERM/);
  });

  it('ends by itself when it is stopped, and goes on where it was when it is killed', async () => {
    await machine.succeed(['systemctl', 'stop', CONTROL_UNIT], { timeoutMs: WAIT_MS });
    // Killed after that time it would be `timeout`.
    expect(await property('TimeoutStopUSec')).toBe('30s');
    expect(await property('Result')).toBe('success');
    await machine.succeed(['systemctl', 'start', CONTROL_UNIT]);
    const before = await property('MainPID');
    await machine.succeed(['systemctl', 'kill', '--signal=KILL', CONTROL_UNIT]);
    await waitUntil(async () => !['0', before].includes(await property('MainPID')), {
      what: 'another process of the control worker',
      timeoutMs: 60_000,
    });
    await rollOut('second', 'two\n');
  });

  it('is brought to another version and back, and says how when that does not run', async () => {
    const packages = join(machine.root, 'root/packages');
    const next = await asVersion(ours, join(packages, '9.0.0'), { version: '9.0.0' });
    const broken = { version: '9.1.0', files: { 'lib/workers/control.js': BROKEN_WORKER } };
    const bad = await asVersion(ours, join(packages, '9.1.0'), broken);
    const running = async () => machine.succeed(['readlink', `/proc/${await property('MainPID')}/exe`]);

    expect(await install(next)).toMatchObject({ code: 0, stdout: 'drydock: version 9.0.0 is in service\n' });
    expect(await running()).toBe(`${OPT}/9.0.0/bin/node\n`);
    expect((await drydock('--version')).stdout).toBe('9.0.0\n');
    const refused = await install(bad);
    expect(refused).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`${OPT}/9.0.0/install.sh leads back`) as string,
    });
    expect(await machine.exec([`${OPT}/9.0.0/install.sh`])).toMatchObject({ code: 0 });
    expect(await running()).toBe(`${OPT}/9.0.0/bin/node\n`);
    await rollOut('third', 'three\n');
  });

  it('is removed by its own script, which keeps its settings', async () => {
    expect(await machine.succeed([`${OPT}/current/uninstall.sh`])).toContain('is removed');
    expect(await property('LoadState')).toBe('not-found');
    for (const [path, code] of [
      [OPT, 1],
      [SETTINGS, 0],
    ] as const) {
      expect((await machine.exec(['test', '-e', path])).code, path).toBe(code);
    }
  });
});
