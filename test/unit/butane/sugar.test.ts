import { gzipSync } from 'node:zlib';
import { afterAll, describe, expect, inject, it } from 'vitest';
import { escapePath } from '../../../machine-config/butane/mount-units.js';
import { invalidConfigs } from '../../support/ignition-validate.js';
import {
  configOf,
  fcos,
  machineConfigOf,
  openshift,
  problems,
  produced,
  textOf,
  translate,
  warnings,
} from './translating.js';

const WORKER = { machineConfig: { name: '99-worker-b', role: 'worker' } };
const filesOf = (config: ReturnType<typeof configOf>) => config.storage?.files ?? [];
const file = (contents: string, path = '/etc/a') => `storage:\n  files:\n  - path: ${path}\n    contents:\n${contents}`;

afterAll(async () => {
  const program = inject('ignitionValidate');
  expect(produced.length).toBeGreaterThan(40);
  if (program !== '') expect(await invalidConfigs(program, produced)).toEqual([]);
}, 60_000);

describe('a MachineConfig of variant openshift', () => {
  it('has the name, labels and settings that the file says, and the Ignition version of the spec', () => {
    const text = openshift(
      `openshift:
  kernel_arguments: [loglevel=7, "quiet"]
  kernel_type: realtime
  extensions: [usbguard]
  fips: yes
systemd:
  units:
  - name: a.service
    enabled: on
    mask: false
    contents: |
      [Service]
      ExecStart=/bin/true
      [Install]
      WantedBy=multi-user.target
passwd:
  users:
  - name: core
    password_hash: $6$abc
    ssh_authorized_keys: [ssh-ed25519 AAAA me]
`,
    );
    expect(machineConfigOf(text)).toEqual({
      apiVersion: 'machineconfiguration.openshift.io/v1',
      kind: 'MachineConfig',
      metadata: { name: '99-worker-a', labels: { 'machineconfiguration.openshift.io/role': 'worker' } },
      spec: {
        kernelArguments: ['loglevel=7', 'quiet'],
        kernelType: 'realtime',
        extensions: ['usbguard'],
        fips: true,
        config: {
          ignition: { version: '3.4.0' },
          systemd: {
            units: [
              {
                name: 'a.service',
                enabled: true,
                mask: false,
                contents: '[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n',
              },
            ],
          },
          passwd: {
            users: [{ name: 'core', passwordHash: '$6$abc', sshAuthorizedKeys: ['ssh-ed25519 AAAA me'] }],
          },
        },
      },
    });
  });

  it('of another flavour gets its API and the label of its roles', () => {
    const text = openshift('').replace('worker}', 'worker, mine: "yes"}');
    const { apiVersion, metadata } = machineConfigOf(text, { flavour: 'alauda' });
    expect(apiVersion).toBe('machineconfiguration.alauda.io/v1alpha1');
    expect(metadata.labels).toEqual({ 'machineconfiguration.alauda.io/role': 'worker', mine: 'yes' });
  });

  it.each([
    ['4.8.0', '3.2.0'],
    ['4.13.0', '3.2.0'],
    ['4.14.0', '3.4.0'],
    ['4.18.0', '3.4.0'],
    ['4.19.0', '3.5.0'],
    ['4.22.0', '3.5.0'],
  ])('%s gives Ignition %s', (version, ignition) => {
    expect(configOf(openshift('', version)).ignition.version).toBe(ignition);
  });
});

describe('variants fcos and flatcar', () => {
  it.each([
    ['fcos', '1.0.0', '3.0.0'],
    ['fcos', '1.1.0', '3.1.0'],
    ['fcos', '1.2.0', '3.2.0'],
    ['fcos', '1.3.0', '3.2.0'],
    ['fcos', '1.4.0', '3.3.0'],
    ['fcos', '1.5.0', '3.4.0'],
    ['fcos', '1.6.0', '3.5.0'],
    ['flatcar', '1.0.0', '3.3.0'],
    ['flatcar', '1.1.0', '3.4.0'],
  ])('%s %s give Ignition %s', (variant, version, ignition) => {
    expect(translate(`variant: ${variant}\nversion: ${version}\n`)).toMatchObject({
      outcome: 'ignition',
      config: { ignition: { version: ignition } },
      warnings: [],
    });
  });

  it('become a MachineConfig where its name and role are given, kernel arguments with it', () => {
    const text = fcos('kernel_arguments:\n  should_exist: [mitigations=off]\n');
    expect(machineConfigOf(text, WORKER)).toMatchObject({
      metadata: { name: '99-worker-b', labels: { 'machineconfiguration.openshift.io/role': 'worker' } },
      spec: { kernelArguments: ['mitigations=off'], config: { ignition: { version: '3.4.0' } } },
    });
    expect(configOf(text).kernelArguments).toEqual({ shouldExist: ['mitigations=off'] });
  });

  it('have links and directories, of which a MachineConfig is warned that nodes do not follow them', () => {
    const text = fcos(`storage:
  directories:
  - path: /opt/a
    mode: 0750
    user: {name: core}
  links:
  - path: /etc/alternatives/x
    target: /usr/bin/x
    overwrite: true
    hard: false
`);
    expect(configOf(text).storage).toEqual({
      directories: [{ path: '/opt/a', mode: 0o750, user: { name: 'core' } }],
      links: [{ path: '/etc/alternatives/x', target: '/usr/bin/x', overwrite: true, hard: false }],
    });
    expect(warnings(text)).toEqual([]);
    expect(warnings(text, WORKER)).toEqual([
      expect.stringMatching(/^a\.bu:5:5: storage\.directories\[0\]: .*first boot only/),
      expect.stringMatching(/^a\.bu:9:5: storage\.links\[0\]: .*first boot only/),
    ]);
  });

  it('may say for first boot what a MachineConfig cannot: append, remote content, special modes, merged configs', () => {
    const text = fcos(`ignition:
  config:
    merge:
    - source: https://example.com/base.ign
storage:
  files:
  - path: /etc/a
    append:
    - inline: more
  - path: /usr/local/bin/b
    mode: 04755
    contents: {source: "https://example.com/b"}
`);
    expect(configOf(text)).toMatchObject({
      ignition: { config: { merge: [{ source: 'https://example.com/base.ign' }] } },
      storage: { files: [{ append: [{ source: 'data:,more' }] }, { mode: 0o4755 }] },
    });
    const said = problems(text, WORKER);
    expect(said).toHaveLength(4);
    expect(said).toEqual([
      expect.stringMatching(/^a\.bu:5:5: ignition\.config\.merge: pulls in another config/),
      expect.stringMatching(/^a\.bu:10:5: storage\.files\[0\]\.append: .*append is not supported/),
      expect.stringMatching(/^a\.bu:13:5: storage\.files\[1\]\.mode: .*must be at most 0777/),
      expect.stringMatching(/^a\.bu:14:16: storage\.files\[1\]\.contents\.source: .*remote content/),
    ]);
  });
});

describe('contents', () => {
  it('inline are the shortest of text with percent signs, base64 and gzip', () => {
    const contentsOf = (text: string, version?: string) =>
      filesOf(configOf(openshift(file(`      inline: ${JSON.stringify(text)}\n`), version)))[0]?.contents;
    expect(contentsOf('abc\n')).toEqual({ source: 'data:,abc%0A', compression: '' });
    const awkward = '#%&=[]{}<>"#%&=[]{}<>"';
    expect(contentsOf(awkward)).toMatchObject({ source: expect.stringMatching(/^data:;base64,/) as string });
    const long = 'the same line again\n'.repeat(200);
    expect(contentsOf(long)).toMatchObject({ compression: 'gzip' });
    expect(contentsOf(long)?.source?.length).toBeLessThan(200);
    for (const text of ['abc\n', awkward, long, 'ümlaut €\r\n\t']) {
      expect(textOf(contentsOf(text))).toBe(text);
      expect(contentsOf(text)).toEqual(contentsOf(text));
    }
  });

  it.each(['4.8.0', '4.9.0'])('of openshift %s are never packed, since its nodes could not unpack them', (version) => {
    const text = openshift(file(`      inline: ${'a'.repeat(5000)}\n`), version);
    expect(filesOf(configOf(text))[0]?.contents).toEqual({ source: `data:,${'a'.repeat(5000)}` });
  });

  it('that are packed already stay as they are', () => {
    const text = fcos(file(`      local: a.gz\n      compression: gzip\n`));
    const packed = gzipSync('x'.repeat(9000));
    const contents = filesOf(configOf(text, { files: { 'a.gz': packed } }))[0]?.contents;
    expect(contents).toEqual({ source: `data:;base64,${packed.toString('base64')}`, compression: 'gzip' });
    expect(textOf(contents)).toBe('x'.repeat(9000));
  });

  it('local are those of the file, byte by byte', () => {
    const text = openshift(file('      local: etc/chrony.conf\n'));
    expect(textOf(filesOf(configOf(text, { files: { 'etc/chrony.conf': 'pool a\n' } }))[0]?.contents)).toBe('pool a\n');
  });

  it('of authorities, key files and merged configs too', () => {
    const text = fcos(`ignition:
  security: {tls: {certificate_authorities: [{inline: CA}]}}
storage:
  luks:
  - name: data
    device: /dev/sdb
    key_file: {local: key}
`);
    const config = configOf(text, { files: { key: 'secret' } });
    expect(textOf(config.ignition.security?.tls?.certificateAuthorities?.[0])).toBe('CA');
    expect(textOf(config.storage?.luks?.[0]?.keyFile)).toBe('secret');
  });

  it('keep owner, mode in octal, hash and overwrite', () => {
    const text = openshift(`storage:
  files:
  - path: /etc/a
    mode: 0o640
    overwrite: true
    user: {id: 0}
    group: {name: wheel}
    contents:
      source: data:,a
      verification: {hash: "sha256-ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"}
`);
    expect(filesOf(configOf(text))[0]).toEqual({
      path: '/etc/a',
      mode: 0o640,
      overwrite: true,
      user: { id: 0 },
      group: { name: 'wheel' },
      contents: {
        source: 'data:,a',
        verification: { hash: 'sha256-ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb' },
      },
    });
  });
});

describe('local files of units and users', () => {
  it('are the text of units and drop-ins', () => {
    const text = openshift(`systemd:
  units:
  - name: a.service
    contents_local: a.service
    dropins:
    - name: 10-b.conf
      contents_local: b.conf
`);
    const files = { 'a.service': '[Service]\nExecStart=/bin/true\n', 'b.conf': '[Unit]\nAfter=b.service\n' };
    expect(configOf(text, { files }).systemd?.units).toEqual([
      { name: 'a.service', contents: files['a.service'], dropins: [{ name: '10-b.conf', contents: files['b.conf'] }] },
    ]);
  });

  it('are SSH keys, one a line, after those that stand in the file; the same one counts once', () => {
    const text = openshift(`passwd:
  users:
  - name: core
    ssh_authorized_keys: [ssh-rsa A]
    ssh_authorized_keys_local: [keys, more]
`);
    const files = { keys: '# mine\nssh-rsa B\r\n\nssh-rsa C\n', more: 'ssh-rsa A\n' };
    expect(configOf(text, { files }).passwd?.users?.[0]).toEqual({
      name: 'core',
      sshAuthorizedKeys: ['ssh-rsa A', 'ssh-rsa B', 'ssh-rsa C'],
    });
  });
});

describe('trees', () => {
  const tree = 'storage:\n  trees:\n  - local: root\n';
  const files = { 'root/etc/a.conf': 'a', 'root/usr/local/bin/b': '#!/bin/sh\n' };

  it('are one file each, executable or not as they are, below the path', () => {
    expect(filesOf(configOf(openshift(tree), { files }))).toEqual([
      { path: '/etc/a.conf', mode: 0o644, contents: { source: 'data:,a', compression: '' } },
      expect.objectContaining({ path: '/usr/local/bin/b', mode: 0o755 }),
    ]);
    const below = configOf(openshift(`${tree}    path: /opt/\n`), { files });
    expect(filesOf(below).map(({ path }) => path)).toEqual(['/opt/etc/a.conf', '/opt/usr/local/bin/b']);
  });

  it('take mode and owner from the entry of the same path', () => {
    const text = openshift(`${tree}  files:\n  - {path: /etc/a.conf, mode: 0600, user: {name: core}}\n`);
    expect(filesOf(configOf(text, { files }))).toEqual([
      { path: '/etc/a.conf', mode: 0o600, user: { name: 'core' }, contents: { source: 'data:,a', compression: '' } },
      expect.objectContaining({ path: '/usr/local/bin/b' }),
    ]);
  });

  it('have links in fcos', () => {
    const config = configOf(fcos(tree), { files: { ...files, 'root/etc/l': '->a.conf' } });
    expect(config.storage?.links).toEqual([{ path: '/etc/l', target: 'a.conf' }]);
  });
});

describe('with_mount_unit', () => {
  it('makes a unit that mounts the filesystem after its check', () => {
    const text = openshift(`storage:
  filesystems:
  - device: /dev/disk/by-label/my-data
    path: /var/lib/data
    format: xfs
    mount_options: [noatime, discard]
    with_mount_unit: true
`);
    const { storage, systemd } = configOf(text);
    expect(storage?.filesystems?.[0]).not.toHaveProperty('withMountUnit');
    expect(systemd?.units).toEqual([
      {
        name: 'var-lib-data.mount',
        enabled: true,
        contents: `# Generated by Drydock from with_mount_unit
[Unit]
Requires=systemd-fsck@dev-disk-by\\x2dlabel-my\\x2ddata.service
After=systemd-fsck@dev-disk-by\\x2dlabel-my\\x2ddata.service

[Mount]
Where=/var/lib/data
What=/dev/disk/by-label/my-data
Type=xfs
Options=noatime,discard

[Install]
RequiredBy=local-fs.target
`,
      },
    ]);
  });

  it('makes a swap unit, and waits for the network where a Tang server unlocks the volume', () => {
    const text = fcos(`storage:
  luks:
  - {name: d, device: /dev/sdb, clevis: {tang: [{url: "https://tang.example.com", thumbprint: abc}]}}
  filesystems:
  - {device: /dev/sdc, format: swap, with_mount_unit: true}
  - {device: /dev/mapper/d, path: /var/d, format: ext4, with_mount_unit: true}
`);
    const [swap, mount] = configOf(text).systemd?.units ?? [];
    expect(swap).toMatchObject({
      name: 'dev-sdc.swap',
      contents: expect.stringContaining('[Swap]\nWhat=/dev/sdc') as string,
    });
    expect(mount).toMatchObject({
      name: 'var-d.mount',
      contents: expect.stringMatching(/Options=_netdev\n\n\[Install\]\nRequiredBy=remote-fs\.target/) as string,
    });
  });

  it('gives way to a unit of that name, and findings still name the line of that unit', () => {
    const unit = (contents: string) =>
      fcos(`storage:
  filesystems:
  - {device: /dev/sdb, path: /var/d, format: ext4, with_mount_unit: true}
systemd:
  units:
  - name: a.service
    contents: |
      [Unit]
  - name: var-d.mount
    enabled: false
    contents: |
      ${contents}
`);
    const units = configOf(unit('[Mount]')).systemd?.units;
    expect(units).toContainEqual({ name: 'var-d.mount', enabled: false, contents: '[Mount]\n' });
    expect(problems(unit('[Mount'))).toEqual([
      expect.stringMatching(/^a\.bu:13:5: systemd\.units\[1\]\.contents: var-d\.mount: line 1 is a section header/),
    ]);
  });

  it.each([
    ['/', '-'],
    ['/var/lib/a-b', 'var-lib-a\\x2db'],
    ['//var//x/', 'var-x'],
    ['/.hidden/é', '\\x2ehidden-\\xc3\\xa9'],
    ['/a:b_c.d', 'a:b_c.d'],
  ])('escapes %s as systemd does', (path, escaped) => {
    expect(escapePath(path)).toBe(escaped);
  });
});

describe('boot_device', () => {
  const root = { device: '/dev/mapper/root', format: 'xfs', label: 'root', wipeFilesystem: true };

  it('encrypts the root partition', () => {
    const text = openshift(`boot_device:
  luks:
    tpm2: true
    threshold: 1
    discard: true
`);
    expect(configOf(text).storage).toEqual({
      luks: [
        {
          name: 'root',
          label: 'luks-root',
          device: '/dev/disk/by-partlabel/root',
          clevis: { tpm2: true, threshold: 1 },
          discard: true,
          wipeVolume: true,
        },
      ],
      filesystems: [root],
    });
    expect(warnings(text)).toContainEqual(expect.stringMatching(/^a\.bu:\d+:\d+: .*only has an effect at first boot/));
  });

  it.each([
    ['x86_64', ['bios-1', 'esp-1', 'boot-1', 'root-1'], 2],
    ['aarch64', ['reserved-1', 'esp-1', 'boot-1', 'root-1'], 2],
    ['ppc64le', ['prep-1', 'reserved-1', 'boot-1', 'root-1'], 0],
  ])('mirrors the disks in the layout of %s', (layout, labels, esps) => {
    const text = fcos(`boot_device:\n  layout: ${layout}\n  mirror:\n    devices: [/dev/sda, /dev/sdb]\n`);
    const { disks = [], raid, filesystems = [] } = configOf(text).storage ?? {};
    expect(disks.map(({ device, wipeTable }) => [device, wipeTable])).toEqual([
      ['/dev/sda', true],
      ['/dev/sdb', true],
    ]);
    expect(disks[0]?.partitions?.map(({ label }) => label)).toEqual(labels);
    expect(raid).toMatchObject([
      { name: 'md-boot', devices: ['/dev/disk/by-partlabel/boot-1', '/dev/disk/by-partlabel/boot-2'] },
      { name: 'md-root', level: 'raid1' },
    ]);
    expect(filesystems.filter(({ format }) => format === 'vfat')).toHaveLength(esps);
    expect(filesystems.slice(-2)).toEqual([
      { device: '/dev/md/md-boot', format: 'ext4', label: 'boot', wipeFilesystem: true },
      { ...root, device: '/dev/md/md-root' },
    ]);
  });

  it('is under what the file says itself, which findings name by its own line', () => {
    const text = (format: string) =>
      fcos(`boot_device:
  luks: {tpm2: true}
storage:
  filesystems:
  - device: /dev/sdq
    format: ${format}
  - {device: /dev/mapper/root, format: ext4}
`);
    expect(configOf(text('xfs')).storage?.filesystems).toEqual([
      { ...root, format: 'ext4' },
      { device: '/dev/sdq', format: 'xfs' },
    ]);
    expect(problems(text('zfs'))).toEqual([
      expect.stringMatching(/^a\.bu:8:5: storage\.filesystems\[0\]\.format: \/dev\/sdq: is none of/),
    ]);
  });

  it('with FIPS has the cipher that was asked for then, unless the file names one', () => {
    const luks = 'boot_device: {luks: {tpm2: true}}\nopenshift: {fips: true}\n';
    const options = (text: string) => configOf(text).storage?.luks?.map((volume) => volume.options);
    expect(options(openshift(luks, '4.19.0'))).toEqual([['--cipher', 'aes-cbc-essiv:sha256']]);
    expect(options(openshift(luks, '4.20.0'))).toEqual([undefined]);
    const own = 'storage: {luks: [{name: d, device: /dev/sdb, options: [--cipher=x]}]}\nopenshift: {fips: true}\n';
    expect(options(openshift(own, '4.8.0'))).toEqual([['--cipher=x']]);
  });
});
