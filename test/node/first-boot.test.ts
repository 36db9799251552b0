import { execFile } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { KINDS, type KubernetesObject } from '../../activities/kubernetes/client.js';
import { createKubernetesClient, type ClosableKubernetesClient } from '../../activities/kubernetes/rest.js';
import { install } from '../../client/install.js';
import { IGNITION_USER } from '../../client/install/first-boot.js';
import { startDrydock } from '../../dev/drydock-processes.js';
import { startIgnitionServer, type LabIgnitionServer } from '../../dev/ignition/ignition-server.js';
import { buildNodePackage } from '../../dev/package/build.js';
import { waitUntil } from '../../dev/processes/wait-until.js';
import { makeFirstBootMachine } from '../../dev/real-nodes/first-boot-machine.js';
import type { Machine } from '../../dev/real-nodes/real-node.js';
import { readLabSettings } from '../../dev/settings.js';
import { ensureIgnition, whyNoIgnition } from '../../dev/tools/ignition-tools.js';
import { apiFlavour } from '../../machine-config/api/flavour.js';
import type { MachineConfig } from '../../machine-config/api/machine-config.js';
import type { MachineConfigPool } from '../../machine-config/api/machine-config-pool.js';
import { pointerConfig } from '../../machine-config/first-boot/pointer-config.js';
import { nodeFacts, type NodeObject } from '../../machine-config/pool/facts.js';
import { file } from '../support/fake-host.js';
import { invalidConfigs } from '../support/ignition-validate.js';
import { describeRealNodes, useLab } from '../support/real-node.js';
import { PATIENCE } from '../support/patience.js';

/*
 * A machine with nothing on its disk but a distribution and a kubelet, and a config of three lines: the real Ignition
 * fetches the rest, the machine is booted once, and the node is done.
 */

const run = promisify(execFile);
const flavour = apiFlavour('openshift');
const TOKEN = 'only-for-machines-of-this-cluster';
const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8fWnVvIRkP0Y3hC0S2cQ9n3Yq6kq3v1yqj0m0m0m0m admin@example';
const WAIT_MS = 180_000;
const say = (line: string) => void process.stderr.write(`[first boot] ${line}\n`);

const why = await whyNoIgnition(readLabSettings());
if (why !== undefined) say(`skipped: ${why}`);

type Pool = KubernetesObject & MachineConfigPool;

describe.skipIf(why !== undefined)('a first boot', () => {
  describeRealNodes('by the real Ignition', () => {
    const lab = useLab();
    let client: ClosableKubernetesClient;
    let ignition: string;
    let server: LabIgnitionServer;

    beforeAll(async () => {
      ignition = await ensureIgnition(readLabSettings(), say);
      const { kubernetes, temporal } = lab();
      client = createKubernetesClient({ kubeconfigPath: kubernetes.kubeconfigPath });
      await install({ client, flavour, nodeExistsPolicy: 'run', ignitionUser: IGNITION_USER });
      await lettingMachinesJoin();
      await startDrydock(lab(), { nodes: [], tuning: { debounceSeconds: 0.2, statusSeconds: 1 } });
      const token = join(lab().directory, 'provisioning-token');
      await writeFile(token, `${TOKEN}\n`);
      const gateway = await gatewayOfMachines();
      server = await startIgnitionServer(lab(), {
        nodePackage: (await buildNodePackage({ log: say })).tarball,
        nodeEnvironment: {
          TEMPORAL_ADDRESS: `${gateway}:${portOf(`http://${temporal.address}`)}`,
          TEMPORAL_NAMESPACE: temporal.namespace,
        },
        apiServer: `https://${gateway}:${portOf(kubernetes.server)}`,
        environment: { DRYDOCK_PROVISIONING_TOKEN_FILE: token },
      });
    }, 600_000);
    afterAll(() => client.close());

    const portOf = (url: string) => Number(new URL(url).port);
    const machines: Machine[] = [];
    async function newMachine(name: string): Promise<Machine> {
      const { kubernetes, temporal } = lab();
      const forwards = [portOf(kubernetes.server), portOf(`http://${temporal.address}`)];
      const machine = await makeFirstBootMachine(lab(), { name, forwards }, say);
      machines.push(machine);
      return machine;
    }
    /** All machines of a lab reach it by the same address. */
    async function gatewayOfMachines(): Promise<string> {
      return (await newMachine('worker-1')).gateway;
    }
    /** As kubeadm does, at its `init`. */
    async function lettingMachinesJoin(): Promise<void> {
      const group = 'system:bootstrappers:kubeadm:default-node-token';
      const subjects = [{ kind: 'Group', apiGroup: 'rbac.authorization.k8s.io', name: group }];
      for (const [name, role] of [
        ['kubelet-bootstrap', 'system:node-bootstrapper'],
        ['node-autoapprove-bootstrap', 'system:certificates.k8s.io:certificatesigningrequests:nodeclient'],
      ] as const) {
        const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role };
        await client.create(KINDS.clusterRoleBinding, {
          metadata: { name: `kubeadm:${name}` },
          roleRef,
          subjects,
        } as KubernetesObject);
      }
    }
    async function declare(name: string, spec: NonNullable<MachineConfig['spec']>): Promise<void> {
      const metadata = { name, labels: { [flavour.roleLabel]: 'worker' } };
      await client.create(flavour.machineConfig, { metadata, spec } as KubernetesObject);
    }
    const pool = () => client.get<Pool>(flavour.machineConfigPool, { name: 'worker' });
    const facts = async (name: string) =>
      nodeFacts(await client.get<KubernetesObject & NodeObject>(KINDS.node, { name }), flavour);
    /** The pool has one config of all that is declared, and the server gives it out. */
    async function served(marker: string): Promise<string> {
      return waitUntil(
        async () => {
          const { spec } = await pool();
          const name = spec.configuration?.name ?? '';
          const rendered = await client.get<KubernetesObject & MachineConfig>(flavour.machineConfig, { name });
          if (!JSON.stringify(rendered.spec).includes(marker)) return false;
          const answer = await server.get('/config/worker', {
            accept: 'application/vnd.coreos.ignition+json;version=3.5.0',
            authorization: `Bearer ${TOKEN}`,
          });
          return answer.status === 200 && answer.body.includes(marker) && name;
        },
        {
          what: `the config with ${marker} to be given out`,
          timeoutMs: WAIT_MS,
          check: () => server.process.assertRunning(),
        },
      );
    }
    /** What a machine's initramfs does. */
    async function ignite(machine: Machine): Promise<void> {
      const pointer = join(machine.root, '..', 'pointer.json');
      const certificateAuthority = await readFile(server.authorityFile, 'utf8');
      const config = pointerConfig({ server: server.url, pool: 'worker', certificateAuthority, token: TOKEN });
      await writeFile(pointer, JSON.stringify(config));
      const cache = join(machine.root, '..', 'ignition.json');
      // It writes keys as the user whose they are, who cannot go through the lab's folder.
      const bound = ['--mount', 'sh', '-c', 'mount --bind "$0" /mnt && exec "$@"', machine.root, ignition];
      for (const stage of ['fetch', 'files']) {
        const args = [
          '--platform=file',
          `--stage=${stage}`,
          '--root=/mnt',
          `--config-cache=${cache}`,
          '--log-to-stdout',
        ];
        const env = { ...process.env, IGNITION_CONFIG_FILE: pointer };
        try {
          await run('unshare', [...bound, ...args], { env, maxBuffer: 64 * 1024 * 1024 });
        } catch (error) {
          // It logs all of the config before the reason.
          const said = error instanceof Error && 'stdout' in error ? String(error.stdout) : '';
          throw new Error(`ignition --stage=${stage}: ${said.slice(-1500)}`, { cause: error });
        }
      }
    }
    async function becomesDone(machine: Machine, config: string): Promise<void> {
      try {
        await waitUntil(
          async () => {
            const { state, current, ready, worker } = await facts(machine.name);
            return state === 'Done' && current === config && ready && worker !== undefined;
          },
          { what: `${machine.name} to be done on ${config}`, timeoutMs: WAIT_MS },
        );
      } catch (error) {
        const told = await machine.succeed(['journalctl', '--no-pager', '--lines=120']).catch(String);
        throw new Error(`${String(error)}\n${told}`, { cause: error });
      }
    }

    it('makes a node that is done on the config of its pool, in one boot', async () => {
      await declare('50-first-boot', {
        config: {
          ignition: { version: '3.4.0' },
          storage: {
            files: [
              file('/etc/motd', 'welcome to the first boot\n'),
              { ...file('/usr/local/bin/greet', '#!/bin/sh\necho hello >/run/greeted\n'), mode: 0o755 },
            ],
          },
          passwd: { users: [{ name: 'core', sshAuthorizedKeys: [KEY] }] },
          systemd: {
            units: [
              {
                name: 'greet.service',
                enabled: true,
                contents:
                  '[Service]\nType=oneshot\nExecStart=/usr/local/bin/greet\n[Install]\nWantedBy=multi-user.target\n',
              },
              { name: 'e2scrub_reap.service', mask: true },
              {
                name: 'systemd-journald.service',
                dropins: [{ name: '50-first.conf', contents: '[Service]\nNice=1\n' }],
              },
            ],
          },
        },
      });
      const config = await served('greet.service');
      const answer = await server.get('/config/worker', {
        accept: 'application/vnd.coreos.ignition+json;version=3.5.0',
        authorization: `Bearer ${TOKEN}`,
      });
      const document = JSON.parse(answer.body.toString()) as Record<string, unknown>;
      const validator = inject('ignitionValidate');
      expect(await invalidConfigs(validator, [{ metadata: { name: 'served' }, spec: { config: document } }])).toEqual(
        [],
      );
      expect((await server.get('/config/worker')).status).toBe(401);

      const [machine] = machines as [Machine];
      await ignite(machine);
      await machine.powerOn();
      await machine.waitUntilUp();
      await becomesDone(machine, config);
      expect(await machine.boots()).toBe(1);
      expect(await machine.succeed(['cat', '/run/greeted'])).toBe('hello\n');
      await waitUntil(
        async () => {
          const { status } = await pool();
          return status?.machineCount === 1 && status.updatedMachineCount === 1 && status.degradedMachineCount === 0;
        },
        { what: 'the pool to count it as updated', timeoutMs: WAIT_MS },
      );
      // Nothing of the first boot is left but its end.
      expect((await machine.exec(['ls', '/etc/drydock/first-boot', '/var/lib/drydock/first-boot'])).stdout).not.toMatch(
        /machine-config|node\.env|tar/,
      );
      expect(
        (await machine.succeed(['stat', '-c', '%a', '/var/lib/drydock', '/etc/drydock/node.env'])).split('\n'),
      ).toEqual(['700', '600', '']);
    });

    it('leaves a node whose drift is found, and whose next update starts from what it was booted with', async () => {
      const [machine] = machines as [Machine];
      await machine.succeed(['sh', '-c', 'echo changed >/etc/motd']);
      await waitUntil(async () => (await facts(machine.name)).state === 'Degraded', {
        what: 'drift to be found',
        timeoutMs: PATIENCE.timeout,
      });
      await machine.succeed(['sh', '-c', 'echo welcome to the first boot >/etc/motd']);
      await waitUntil(async () => (await facts(machine.name)).state === 'Done', {
        what: 'the end of drift to be found',
        timeoutMs: PATIENCE.timeout,
      });
      await client.delete(flavour.machineConfig, { name: '50-first-boot' });
      await declare('60-later', {
        config: { ignition: { version: '3.4.0' }, storage: { files: [file('/etc/later', 'later\n')] } },
      });
      const config = await served('/etc/later');
      await becomesDone(machine, config);
      expect((await machine.exec(['ls', '/etc/systemd/system/greet.service', '/usr/local/bin/greet'])).stdout).toBe('');
      expect(await machine.succeed(['cat', '/etc/later'])).toBe('later\n');
    });

    it('takes one reboot, before the kubelet, for what Ignition cannot set', async () => {
      await declare('70-arguments', { kernelArguments: ['audit=1'] });
      const config = await served('audit=1');
      const [first] = machines as [Machine];
      await becomesDone(first, config);
      const machine = await newMachine('worker-2');
      await mkdir(join(machine.root, 'etc'), { recursive: true });
      await ignite(machine);
      await machine.powerOn();
      await becomesDone(machine, config);
      expect(await machine.boots()).toBe(2);
      expect(await machine.succeed(['cat', '/proc/cmdline'])).toContain('audit=1');
      // No kubelet ran in the boot before.
      const kubelet = await machine.succeed(['journalctl', '--no-pager', '--unit=kubelet.service', '--output=cat']);
      expect(kubelet.match(/^kubelet of worker-2 in boot /gm)).toHaveLength(1);
    });
  });
});
