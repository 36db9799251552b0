import { createHash } from 'node:crypto';
import { describe, expect, inject, test } from 'vitest';
import { apiFlavour } from '../../../machine-config/api/flavour.js';
import type { MachineConfig } from '../../../machine-config/api/machine-config.js';
import { SERVED_VERSIONS, type ServedVersion } from '../../../machine-config/first-boot/accept.js';
import { composeFirstBoot, type FirstBootInputs } from '../../../machine-config/first-boot/compose.js';
import { pointerConfig, pointerConfig2 } from '../../../machine-config/first-boot/pointer-config.js';
import type { IgnitionConfig } from '../../../machine-config/ignition/config.js';
import { fileContents } from '../../../machine-config/ignition/contents.js';
import { renderedName, verifyRenderedName } from '../../../machine-config/render/name.js';
import { invalidConfigs } from '../../support/ignition-validate.js';

const SHA256 = createHash('sha256').update('package').digest('hex');
const SHA512 = createHash('sha512').update('package').digest('hex');
const PEM = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';

const INPUTS: FirstBootInputs = {
  flavour: apiFlavour('openshift'),
  server: 'https://boot.example:22623/',
  serverAuthority: PEM,
  artifact: { sha256: SHA256, sha512: SHA512 },
  nodeEnvironment: 'TEMPORAL_ADDRESS=temporal.example:7233\n',
  kubelet: 'kubeadm',
  bootstrap: { server: 'https://api.example:6443', certificateAuthority: PEM, token: 'abcdef.0123456789abcdef' },
};

function rendered(spec: NonNullable<MachineConfig['spec']>): MachineConfig {
  return { metadata: { name: renderedName('worker', spec) }, spec };
}

const PLAIN = rendered({
  config: {
    ignition: { version: '3.4.0' },
    storage: { files: [{ path: '/etc/motd', contents: { source: 'data:,hello' } }] },
    systemd: {
      units: [{ name: 'chronyd.service', enabled: true, dropins: [{ name: '10.conf', contents: '[Unit]\n' }] }],
    },
    passwd: { users: [{ name: 'core', sshAuthorizedKeys: ['ssh-ed25519 AAAA'] }] },
  },
  kernelArguments: ['audit=1', 'console=tty0 console=ttyS0'],
  kernelType: 'realtime',
});

function served(config: MachineConfig, version: ServedVersion, inputs = INPUTS): IgnitionConfig {
  const written = composeFirstBoot(config, inputs).for(version);
  if (written.outcome !== 'written') throw new Error(written.reason);
  return written.document as unknown as IgnitionConfig;
}

function text(config: IgnitionConfig, path: string): string {
  const file = config.storage?.files?.find((one) => one.path === path);
  if (file === undefined) throw new Error(`no ${path}`);
  return Buffer.from(fileContents(file)).toString();
}

describe('the config that is served', () => {
  test('is what Ignition of each version accepts, with all that the config of the pool says', async () => {
    const program = inject('ignitionValidate');
    const all = SERVED_VERSIONS.filter((version) => version !== '2.2.0').map((version) => ({
      metadata: { name: version },
      spec: { config: served(PLAIN, version) },
    }));
    expect(all.map(({ metadata, spec }) => [metadata.name, spec.config.ignition.version])).toEqual(
      all.map(({ metadata }) => [metadata.name, metadata.name]),
    );
    for (const { spec } of all) {
      expect(spec.config.systemd?.units).toContainEqual(
        expect.objectContaining({ name: 'chronyd.service', enabled: true }),
      );
      expect(spec.config.passwd?.users).toHaveLength(1);
    }
    if (program !== '') expect(await invalidConfigs(program, all)).toEqual([]);
  });

  test('overwrites what the image brings, as a MachineConfig does and Ignition by itself does not', () => {
    const files = served(PLAIN, '3.4.0').storage?.files ?? [];
    expect(files.find(({ path }) => path === '/etc/motd')).toMatchObject({ overwrite: true });
    const kept = rendered({
      config: {
        ignition: { version: '3.4.0' },
        storage: { files: [{ path: '/etc/motd', overwrite: false, contents: { source: 'data:,x' } }] },
      },
    });
    expect(served(kept, '3.4.0').storage?.files?.[0]).toMatchObject({ overwrite: false });
  });

  test('tells the node worker what the disk is, whole and under the name that its contents have', () => {
    const config = served(PLAIN, '3.1.0');
    const annotations = JSON.parse(text(config, '/etc/drydock/first-boot/node-annotations.json')) as object;
    expect(annotations).toEqual({
      'machineconfiguration.openshift.io/currentConfig': PLAIN.metadata.name,
      'machineconfiguration.openshift.io/desiredConfig': PLAIN.metadata.name,
      'machineconfiguration.openshift.io/state': 'Done',
    });
    const record = JSON.parse(text(config, '/etc/drydock/first-boot/machine-config.json')) as MachineConfig;
    expect(record.spec?.kernelType).toBe('realtime');
    expect(verifyRenderedName(record)).toBe(true);
    const written = config.storage?.files?.find(({ path }) => path.endsWith('/machine-config.json'));
    expect(written?.mode).toBe(0o600);
  });

  test('names the package of the node worker with a hash that the version knows', () => {
    const source = `https://boot.example:22623/artifact/${SHA256}`;
    const packageOf = (version: ServedVersion) =>
      served(PLAIN, version).storage?.files?.find(({ contents }) => contents?.source === source)?.contents;
    expect(packageOf('3.1.0')?.verification?.hash).toBe(`sha256-${SHA256}`);
    expect(packageOf('2.2.0')?.verification?.hash).toBe(`sha512-${SHA512}`);
    expect(served(PLAIN, '3.1.0').ignition.security?.tls?.certificateAuthorities).toHaveLength(1);
  });

  test('has the kernel arguments for clients that set them, one by one, and not for those that cannot', () => {
    expect(served(PLAIN, '3.3.0').kernelArguments).toEqual({
      shouldExist: ['audit=1', 'console=tty0', 'console=ttyS0'],
    });
    expect(served(PLAIN, '3.2.0')).not.toHaveProperty('kernelArguments');
    expect(served(PLAIN, '2.2.0')).not.toHaveProperty('kernelArguments');
  });

  test.each([
    ['kubeadm', '/etc/kubernetes/bootstrap-kubelet.conf', '/etc/kubernetes/pki/ca.crt'],
    ['openshift', '/etc/kubernetes/kubeconfig', '/etc/kubernetes/kubelet-ca.crt'],
  ] as const)('has what a kubelet of %s joins with', (kubelet, kubeconfig, authority) => {
    const config = served(PLAIN, '3.4.0', { ...INPUTS, kubelet });
    expect(text(config, kubeconfig)).toContain('token: abcdef.0123456789abcdef');
    expect(text(config, kubeconfig)).toContain('server: https://api.example:6443');
    expect(text(config, authority)).toBe(PEM);
  });

  test('leaves to the config what it writes itself, and says so', () => {
    const own = rendered({
      config: {
        ignition: { version: '3.4.0' },
        storage: { files: [{ path: '/etc/kubernetes/pki/ca.crt', contents: { source: 'data:,mine' } }] },
      },
    });
    const composed = composeFirstBoot(own, INPUTS);
    expect(composed.overridden).toEqual(['/etc/kubernetes/pki/ca.crt']);
    expect(text(served(own, '3.4.0'), '/etc/kubernetes/pki/ca.crt')).toBe('mine');
    const paths = (served(own, '3.4.0').storage?.files ?? []).map(({ path }) => path);
    expect(new Set(paths).size).toBe(paths.length);
  });

  test('exists for a pool whose config says nothing', () => {
    const nothing = rendered({});
    expect(served(nothing, '3.4.0').systemd?.units).toHaveLength(1);
    expect(served(nothing, '2.2.0').ignition.version).toBe('2.2.0');
  });

  test.each([
    ['3.3.0', 'spec.config.storage.luks[0].discard cannot be said in Ignition 3.3.0'],
    ['2.2.0', 'spec.config.storage.luks is set, which Ignition 2.2.0 does not know'],
  ] as const)('is refused to clients of %s that would leave something out', (version, reason) => {
    const newer = rendered({
      config: {
        ignition: { version: '3.4.0' },
        storage: { luks: [{ name: 'data', device: '/dev/vdb', discard: true, clevis: { tpm2: true } }] },
      },
    });
    expect(composeFirstBoot(newer, INPUTS).for(version)).toEqual({ outcome: 'refused', reason });
    expect(composeFirstBoot(newer, INPUTS).for('3.4.0').outcome).toBe('written');
  });

  test('is refused to clients that drop the bits above 0777 of a mode', () => {
    const sticky = rendered({
      config: { ignition: { version: '3.4.0' }, storage: { directories: [{ path: '/srv/drop', mode: 0o1777 }] } },
    });
    expect(composeFirstBoot(sticky, INPUTS).for('3.3.0')).toMatchObject({ outcome: 'refused' });
    expect(composeFirstBoot(sticky, INPUTS).for('2.2.0')).toMatchObject({ outcome: 'refused' });
    expect(composeFirstBoot(sticky, INPUTS).for('3.4.0').outcome).toBe('written');
  });

  test('throws for a config that was not rendered here', () => {
    const broken = { metadata: { name: 'rendered-worker-x' }, spec: { config: { ignition: { version: '9.0.0' } } } };
    expect(() => composeFirstBoot(broken, INPUTS)).toThrow(/^rendered-worker-x: spec\.config\.ignition\.version/);
  });
});

describe('the config for clients of spec 2', () => {
  const config = served(PLAIN, '2.2.0') as unknown as {
    storage: { files: Record<string, unknown>[]; directories: Record<string, unknown>[] };
    systemd: { units: { name: string }[] };
  };

  test('writes out every default that differs between the two', () => {
    expect(config.storage.files).toContainEqual({
      filesystem: 'root',
      path: '/etc/motd',
      mode: 0o644,
      overwrite: true,
      contents: { source: 'data:,hello' },
    });
    expect(config.storage.files.every(({ filesystem, mode }) => filesystem === 'root' && mode !== undefined)).toBe(
      true,
    );
    expect(config.storage.directories).toEqual([
      { filesystem: 'root', path: '/var/lib/drydock', mode: 0o700, overwrite: false },
    ]);
    expect(config.systemd.units.map(({ name }) => name)).toEqual(['chronyd.service', 'drydock-first-boot.service']);
  });

  test('knows links and accounts', () => {
    const more = rendered({
      config: {
        ignition: { version: '3.4.0' },
        storage: { links: [{ path: '/etc/localtime', target: '/usr/share/zoneinfo/UTC', overwrite: true }] },
        passwd: { users: [{ name: 'core', passwordHash: 'x', shouldExist: true }], groups: [{ name: 'ops' }] },
      },
    });
    expect(served(more, '2.2.0')).toMatchObject({
      storage: { links: [{ filesystem: 'root', path: '/etc/localtime', overwrite: true }] },
      passwd: { users: [{ name: 'core', passwordHash: 'x' }], groups: [{ name: 'ops' }] },
    });
    expect(JSON.stringify(served(more, '2.2.0'))).not.toContain('shouldExist');
  });
});

describe('the config that a machine is given', () => {
  const inputs = { server: 'https://boot.example:22623', pool: 'worker', certificateAuthority: PEM };

  test('points at the config of its pool, with the authority and the token', async () => {
    const pointer = pointerConfig({ ...inputs, token: 'secret' }) as IgnitionConfig;
    expect(pointer.ignition.config?.merge).toEqual([
      {
        source: 'https://boot.example:22623/config/worker',
        httpHeaders: [{ name: 'Authorization', value: 'Bearer secret' }],
      },
    ]);
    const program = inject('ignitionValidate');
    const both = [pointer, pointerConfig(inputs)].map((config, index) => ({
      metadata: { name: String(index) },
      spec: { config },
    }));
    if (program !== '') expect(await invalidConfigs(program, both as MachineConfig[])).toEqual([]);
  });

  test('without a token has no headers; of spec 2 it has none ever', () => {
    expect(JSON.stringify(pointerConfig(inputs))).not.toContain('httpHeaders');
    expect(pointerConfig2(inputs)).toMatchObject({
      ignition: { version: '2.2.0', config: { append: [{ source: 'https://boot.example:22623/config/worker' }] } },
    });
  });
});
