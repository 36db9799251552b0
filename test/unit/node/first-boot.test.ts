import { existsSync } from 'node:fs';
import { chmod, chown, mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { stageFirstBoot } from '../../../activities/host/first-boot.js';
import type { OsState } from '../../../activities/host/host.js';
import { lookAtDisk } from '../../../activities/node/drift-look.js';
import { registerNode } from '../../../activities/node/register.js';
import type { MachineConfig } from '../../../machine-config/api/machine-config.js';
import { composeFirstBoot } from '../../../machine-config/first-boot/compose.js';
import { MACHINE_CONFIG_FILE, NODE_ANNOTATIONS_FILE } from '../../../machine-config/first-boot/paths.js';
import type { IgnitionConfig } from '../../../machine-config/ignition/config.js';
import { fileContents } from '../../../machine-config/ignition/contents.js';
import { isUpdated } from '../../../machine-config/pool/availability.js';
import { nodeFacts } from '../../../machine-config/pool/facts.js';
import { file, imageBackend } from '../../support/fake-host.js';
import { setUpNode } from '../../support/node-under-test.js';

const PEM = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';

describe('a machine that was booted with the config of its pool', () => {
  let test: Awaited<ReturnType<typeof setUpNode>>;
  let target: string;

  beforeEach(async () => {
    test = await setUpNode();
    target = test.store({ storage: { files: [file('/etc/motd', 'welcome\n')] } });
  });

  /** Plays Ignition: writes every file that is served inline. */
  async function boot(change: (config: MachineConfig) => MachineConfig = (same) => same): Promise<void> {
    const rendered = test.cluster.peek<MachineConfig & { metadata: { name: string } }>(
      test.flavour.machineConfig,
      target,
    )!;
    const composed = composeFirstBoot(rendered, {
      flavour: test.flavour,
      server: 'https://boot.example',
      serverAuthority: PEM,
      artifact: { sha256: 'a'.repeat(64), sha512: 'b'.repeat(128) },
      nodeEnvironment: '',
      kubelet: 'kubeadm',
      bootstrap: { server: 'https://api.example', certificateAuthority: PEM, token: 'abcdef.0123456789abcdef' },
    }).for('3.4.0');
    if (composed.outcome !== 'written') throw new Error(composed.reason);
    const { storage } = composed.document as unknown as IgnitionConfig;
    for (const one of storage?.files ?? []) {
      if (one.contents?.source?.startsWith('data:') !== true) continue;
      const path = test.fake.path(one.path);
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, fileContents(one));
      await chmod(path, one.mode ?? 0o644);
    }
    const record = test.fake.path(MACHINE_CONFIG_FILE);
    await writeFile(record, JSON.stringify(change(JSON.parse(await test.fake.text(MACHINE_CONFIG_FILE)) as never)));
  }
  const isLeft = () => [NODE_ANNOTATIONS_FILE, MACHINE_CONFIG_FILE].some((path) => existsSync(test.fake.path(path)));
  const facts = () => nodeFacts(test.node(), test.flavour);

  it('registers as done on it, without an update and without drift', async () => {
    await boot();
    await registerNode(test.deps);
    expect(isUpdated(facts(), target)).toBe(true);
    expect(await lookAtDisk(test.deps)).toEqual({ outcome: 'asDeclared', config: target });
    expect(isLeft()).toBe(false);
    expect(test.fake.reboots).toEqual([]);
  });

  it('says what on its disk is not as it was booted with', async () => {
    await boot();
    await test.change('etc/motd', 'changed before the worker came\n');
    await registerNode(test.deps);
    expect(await lookAtDisk(test.deps)).toMatchObject({ outcome: 'drifted', items: [{ path: '/etc/motd' }] });
  });

  it('puts back nothing of what came with the boot when the next config no longer has it, and removes it', async () => {
    await boot();
    await registerNode(test.deps);
    await test.update(test.store({ storage: { files: [file('/etc/issue', 'next\n')] } }));
    expect(existsSync(test.fake.path('/etc/motd'))).toBe(false);
  });

  it.each([
    ['was changed', (config: MachineConfig) => ({ ...config, spec: { ...config.spec, fips: true } })],
    ['is of another config', (config: MachineConfig) => ({ ...config, metadata: { name: 'rendered-worker-x' } })],
    ['is no config', () => 'nothing' as unknown as MachineConfig],
  ])('is not believed where the record %s, and is updated like any other', async (_, change) => {
    await boot(change);
    await registerNode(test.deps);
    expect(isUpdated(facts(), target)).toBe(false);
    await test.update(target);
    expect(isUpdated(facts(), target)).toBe(true);
    expect(test.fake.reboots).toEqual([]);
  });

  it('keeps the keys that Ignition wrote as its own, in a file that others write as well', async () => {
    const [ours, theirs] = ['ssh-ed25519 AAAA ours', 'ssh-ed25519 BBBB theirs'];
    target = test.store({ passwd: { users: [{ name: 'core', sshAuthorizedKeys: [ours] }] } });
    const path = '/home/core/.ssh/authorized_keys';
    test.fake.host = { ...test.fake.host, sshKeyPlace: () => Promise.resolve({ path, shared: true }) };
    const deps = { ...test.deps, host: test.fake.host };
    await boot();
    await mkdir(dirname(test.fake.path(path)), { recursive: true, mode: 0o700 });
    await writeFile(test.fake.path(path), `${theirs}\n${ours}\n`, { mode: 0o600 });
    const { uid, gid } = deps.host.ownerOnDisk({ uid: 1000, gid: 1000 });
    for (const one of [path, dirname(path)]) await chown(test.fake.path(one), uid, gid);
    await registerNode(deps);
    expect(await lookAtDisk(deps)).toEqual({ outcome: 'asDeclared', config: target });
    const keys = (await test.fake.text(path)).split('\n').filter((line) => line.startsWith('ssh-'));
    expect(keys.sort()).toEqual([theirs, ours].sort());
  });

  it('forgets what it was booted with once another config was applied', async () => {
    const next = test.store({ storage: { files: [file('/etc/issue', 'next\n')] } });
    await test.update(next);
    await boot();
    await registerNode(test.deps);
    expect(facts().current).toBe(next);
    expect(isLeft()).toBe(false);
  });

  it('needs no API server to know what it is', async () => {
    await boot();
    test.cluster.failNext({ kind: 'Node', verb: 'get' }, { times: 1 });
    const stopping = new AbortController();
    const registering = registerNode(test.deps, { signal: stopping.signal, onRetry: () => stopping.abort() });
    await expect(registering).rejects.toThrow();
    expect((await test.fake.store.currentConfig())?.metadata.name).toBe(target);
  });
});

describe('the operating system at a first boot', () => {
  const config = (spec: MachineConfig['spec']): MachineConfig => ({ metadata: { name: 'c' }, spec: spec ?? {} });

  async function machine(booted?: Partial<OsState>) {
    const { fake } = await setUpNode();
    const os = imageBackend(fake.root);
    const plain = { kernelArguments: [], osImageURL: '', kernelType: 'default', extensions: [] };
    const folder = join(fake.root, 'var/lib/drydock-lab');
    await mkdir(folder, { recursive: true });
    await rm(join(folder, 'os-booted.json'), { force: true });
    if (booted !== undefined) await writeFile(join(folder, 'os-booted.json'), JSON.stringify({ ...plain, ...booted }));
    return { os };
  }

  it.each([
    ['an image', { osImageURL: 'registry.example/os@sha256:1' }],
    ['another kernel', { kernelType: 'realtime' }],
    ['arguments that Ignition did not set', { kernelArguments: ['audit=1'] }],
  ])('takes one reboot for %s, and none once it is there', async (_, spec) => {
    const host = await machine();
    expect(await stageFirstBoot(config(spec), host)).toEqual({ reboot: true });
    expect(await stageFirstBoot(config(spec), host)).toEqual({ reboot: false });
  });

  it('takes none for arguments that Ignition did set, which are ours from then on', async () => {
    const host = await machine({ kernelArguments: ['quiet', 'audit=1'] });
    expect(await stageFirstBoot(config({ kernelArguments: ['audit=1'] }), host)).toEqual({ reboot: false });
    expect((await host.os.staged()).kernelArguments).toEqual(['audit=1']);
  });

  it('is not touched where the config says nothing of it', async () => {
    expect(await stageFirstBoot(config({}), await machine())).toEqual({ reboot: false });
  });
});
