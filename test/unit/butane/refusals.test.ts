import { describe, expect, it } from 'vitest';
import { configOf, fcos, openshift, problems, translate } from './translating.js';

const WORKER = { machineConfig: { name: '99-worker-b', role: 'worker' } };
const flatcar = (sections: string) => `variant: flatcar\nversion: 1.1.0\n${sections}`;

describe('the header', () => {
  it.each([
    ['', 'a.bu:1:1: is empty; begin it with variant and version'],
    ['- a\n', 'a.bu:1:1: is no Butane file'],
    ['version: 1.5.0\n', 'a.bu:1:1: variant: is missing; write one of openshift, fcos, flatcar'],
    ['# r4e\nvariant: r4e\nversion: 1.0.0\n', 'a.bu:2:1: variant: "r4e" is not translated'],
    ['variant: fcos\n', 'version: is missing; write one of fcos 1.0.0 to 1.6.0'],
    [fcos('', '1.5'), 'a.bu:2:1: version: "1.5" is no version of fcos (three numbers are needed, as in 1.5.0)'],
    [fcos('', '1.9.0'), '"1.9.0" is no version of fcos that Drydock knows; known are 1.0.0 to 1.6.0'],
    [fcos('', '1.7.0-experimental'), 'is no version of fcos that may be relied on'],
    [openshift('', '4.7.0'), 'a.bu:2:1: version: "4.7.0" is no version of openshift; known are 4.8.0 to 4.22.0'],
    ['variant: fcos\nversion: 1.5.0\n---\nvariant: fcos\n', 'a.bu:1:1: has several YAML documents'],
    ['variant: fcos\nversion: 1.5.0\nstorage: {\n', 'is not valid YAML'],
    ['variant: fcos\nversion: 1.5.0\npasswd: !mine aGk=\n', 'a.bu:3:9: is not valid YAML: Unresolved tag'],
    ['variant: fcos\nversion: 1.5.0\nvariant: fcos\n', 'a.bu:3:1: is not valid YAML: Map keys must be unique'],
    ['variant: openshift\nversion: 4.14.0\n', 'a.bu:1:1: variant: openshift needs metadata'],
    [
      'variant: openshift\nversion: 4.14.0\nmetadata:\n  name: a\n  labels: {a: b}\n',
      'a.bu:5:3: metadata.labels: has no machineconfiguration.openshift.io/role, so no pool would select it',
    ],
    [
      'variant: openshift\nversion: 4.14.0\nmetadata:\n  labels: {machineconfiguration.openshift.io/role: worker}\n',
      'a.bu:3:1: metadata.name: is missing',
    ],
    [openshift('').replace('99-worker-a', 'No_Name'), 'a.bu:4:3: metadata.name: '],
  ])('is refused: %j', (text, message) => {
    expect(problems(text)).toEqual([expect.stringContaining(message)]);
  });
});

describe('an unknown key', () => {
  it.each([
    ['storag:\n  files: []\n', 'a.bu:6:1: storag: unknown key; did you mean "storage"?'],
    [
      'storage:\n  files:\n  - path: /etc/a\n    contnets: {inline: a}\n',
      'a.bu:9:5: storage.files[0].contnets: /etc/a: unknown key; did you mean "contents"?',
    ],
    ['storage:\n  files:\n  - path: /etc/a\n    contents:\n      inlin: a\n', 'a.bu:10:7: '],
    ['systemd:\n  units:\n  - name: a.service\n    enabeld: true\n', 'did you mean "enabled"?'],
    [
      'passwd:\n  users:\n  - name: core\n    sshAuthorizedKeys: [k]\n',
      'a.bu:9:5: passwd.users[0].sshAuthorizedKeys: core: unknown key; did you mean "ssh_authorized_keys"?',
    ],
    ['passwd:\n  users:\n  - user: core\n', 'a.bu:8:5: passwd.users[0].user: unknown key; did you mean "name"?'],
    ['systemd: {networkd: null}\n', 'systemd.networkd: unknown key; known here: units'],
    ['openshift: {kernelArguments: [a]}\n', 'did you mean "kernel_arguments"?'],
  ])('is refused with its place and what is meant, also where it says nothing: %j', (sections, message) => {
    expect(problems(openshift(sections))).toEqual([expect.stringContaining(message)]);
  });
});

describe('a value of the wrong type', () => {
  it.each([
    [
      'storage: {files: [{path: /etc/a, mode: "0644"}]}\n',
      'a.bu:6:34: storage.files[0].mode: /etc/a: is the string "0644", must be a whole number; write 420',
    ],
    [
      'storage: {files: [{path: /etc/a, mode: 644}]}\n',
      'storage.files[0].mode: /etc/a: 644 is 01204, must be at most 0777; it looks like octal 0644',
    ],
    ['storage: {files: [{path: /etc/a, mode: 0888}]}\n', 'is the string "0888"'],
    ['storage: {files: {path: /etc/a}}\n', 'a.bu:6:11: storage.files: is an object, must be a list'],
    ['storage: {files: [null]}\n', 'storage.files[0]: is null, must be an object'],
    ['systemd: {units: [{name: a.service, enabled: "true"}]}\n', 'must be true or false; write true without quotes'],
    ['systemd: {units: [{enabled: true}]}\n', 'systemd.units[0].name: is missing'],
  ])('is refused: %j', (sections, message) => {
    expect(problems(openshift(sections))).toEqual([expect.stringContaining(message)]);
  });

  it('is none where the text is what the place takes', () => {
    const text = openshift(`openshift:
  kernel_arguments: [on, 42, 0x10]
storage:
  files:
  - path: /etc/a
    contents: {inline: 0644}
`);
    expect(translate(text)).toMatchObject({
      machineConfig: {
        spec: {
          kernelArguments: ['on', '42', '0x10'],
          config: { storage: { files: [{ contents: { source: 'data:,0644' } }] } },
        },
      },
    });
  });
});

describe('YAML', () => {
  it('with anchors, aliases and merged keys is read, and findings name the place of the alias or key', () => {
    const text = fcos(`storage:
  files:
  - &base
    path: /etc/a
    mode: 0600
  - <<: *base
    path: /etc/b
  - path: /etc/c
    mode: 0640
    <<: [*base]
`);
    expect(configOf(text).storage?.files).toEqual([
      { path: '/etc/a', mode: 0o600 },
      { path: '/etc/b', mode: 0o600 },
      { path: '/etc/c', mode: 0o640 },
    ]);
  });

  it('whose aliases stand for millions of values is refused and not read to its end', () => {
    const levels = Array.from(
      { length: 9 },
      (_, level) => `- &l${level + 1} [${Array(10).fill(`*l${level}`).join(', ')}]`,
    );
    const text = fcos(`passwd:\n  users:\n  - name: core\n    groups:\n    - &l0 [a]\n    ${levels.join('\n    ')}\n`);
    expect(translate(text).outcome).toBe('refused');
  });

  it('nested without end is refused', () => {
    expect(translate(fcos(`storage: ${'['.repeat(20_000)}`)).outcome).toBe('refused');
    expect(translate(fcos(`storage: ${'['.repeat(2000)}${']'.repeat(2000)}\n`)).outcome).toBe('refused');
  });
});

describe('what a newer version has', () => {
  it.each([
    [
      fcos('storage: {files: [{path: /a, contents: {local: a}}]}\n', '1.0.0'),
      'exists from fcos 1.1.0 on, and this file says 1.0.0',
    ],
    [fcos('storage: {trees: [{local: a}]}\n', '1.0.0'), 'a.bu:3:11: storage.trees: exists from fcos 1.1.0 on'],
    [fcos('boot_device: {luks: {tpm2: true}}\n', '1.2.0'), 'a.bu:3:1: boot_device: exists from fcos 1.3.0 on'],
    [
      fcos('systemd: {units: [{name: a.service, contents_local: a}]}\n', '1.4.0'),
      'contents_local: a.service: exists from fcos 1.5.0 on',
    ],
    [
      openshift('passwd: {users: [{name: core, ssh_authorized_keys_local: [a]}]}\n', '4.13.0'),
      'exists from openshift 4.14.0 on',
    ],
    [openshift('passwd: {users: [{name: core, password_hash: a}]}\n', '4.12.0'), 'exists from openshift 4.13.0 on'],
    [
      openshift('storage: {files: [{path: /a, contents: {source: "data:,", compression: gzip}}]}\n', '4.9.0'),
      'exists from openshift 4.10.0 on',
    ],
    [
      openshift('storage: {luks: [{name: a, device: /dev/a, cex: {enabled: true}}]}\n', '4.18.0'),
      'exists from openshift 4.19.0 on',
    ],
    [flatcar('storage: {luks: [{name: a, device: /dev/a, cex: {enabled: true}}]}\n'), 'is refused in variant flatcar'],
    [flatcar('storage: {luks: [{name: a, device: /dev/a, clevis: {tpm2: true}}]}\n'), 'whose image has no clevis'],
    [flatcar('boot_device: {luks: {tpm2: true}}\n'), 'a.bu:3:1: boot_device: is refused in variant flatcar'],
    [fcos('metadata: {name: a}\n'), 'a.bu:3:1: metadata: is refused in variant fcos: belongs to variant openshift'],
    [fcos('openshift: {fips: true}\n'), 'a.bu:3:1: openshift: is refused in variant fcos'],
  ])('is refused with the version that has it: %j', (text, message) => {
    expect(problems(text)).toEqual([expect.stringContaining(message)]);
  });
});

describe('what a MachineConfig cannot carry', () => {
  it.each([
    [
      'storage: {directories: [{path: /opt/a}]}\n',
      'a.bu:6:11: storage.directories: is refused in variant openshift: is only made at first boot',
    ],
    ['storage: {links: [{path: /a, target: /b}]}\n', 'a.bu:6:11: storage.links: is refused in variant openshift'],
    [
      'storage: {files: [{path: /a, append: [{inline: a}]}]}\n',
      'a.bu:6:30: storage.files[0].append: /a: is refused in variant openshift: would be appended again',
    ],
    [
      'storage: {files: [{path: /a, contents: {source: "https://example.com/a"}}]}\n',
      'storage.files[0].contents.source: /a: links to remote content (https:)',
    ],
    ['storage: {files: [{path: /a, mode: 01777}]}\n', 'storage.files[0].mode: /a: 1023 is 01777, must be at most 0777'],
    ['storage: {files: [{path: /var/lib/drydock/x}]}\n', "holds Drydock's own journal"],
    ['passwd: {groups: [{name: a}]}\n', 'a.bu:6:10: passwd.groups: is refused in variant openshift'],
    [
      'passwd: {users: [{name: core, uid: 1000}]}\n',
      'a.bu:6:31: passwd.users[0].uid: core: is refused in variant openshift: is only set at first boot',
    ],
    ['passwd: {users: [{name: me}]}\n', 'a.bu:6:19: passwd.users[0].name: me: is not core'],
    [
      'kernel_arguments: {should_exist: [a]}\n',
      'a.bu:6:1: kernel_arguments: is refused in variant openshift: write openshift.kernel_arguments',
    ],
    ['grub: {users: [{name: root, password_hash: a}]}\n', 'grub: '],
    [
      'ignition: {config: {replace: {source: "https://example.com/a"}}}\n',
      'ignition.config.replace: pulls in another config',
    ],
    [
      'openshift: {kernel_type: fast}\n',
      'a.bu:6:13: openshift.kernel_type: "fast" is none of default, realtime, 64k-pages',
    ],
    ['openshift: {extensions: [usbguard, vim]}\n', 'a.bu:6:36: openshift.extensions[1]: "vim" is no extension'],
    ['systemd: {units: [{name: drydock-node.service}]}\n', "is a unit of Drydock's own"],
  ])('is refused with the reason and the place: %j', (sections, message) => {
    expect(problems(openshift(sections, '4.13.0'))).toEqual([expect.stringContaining(message)]);
  });

  it.each([
    ['passwd: {users: [{name: me, groups: [wheel]}]}\n', 'a.bu:3:19: passwd.users[0].name: me: is not core'],
    [
      'kernel_arguments: {should_not_exist: [quiet]}\n',
      'a.bu:3:20: kernel_arguments.should_not_exist: cannot be said in a MachineConfig',
    ],
    [
      'kernel_arguments: {should_exist: ["a=\\"b"]}\n',
      'a.bu:3:35: kernel_arguments.should_exist[0]: has a double quote',
    ],
    [
      'grub: {users: [{name: root, password_hash: a}]}\n',
      'a.bu:3:1: grub: is refused in variant fcos: is no part of a MachineConfig',
    ],
  ])('is refused in fcos too: %j', (sections, message) => {
    expect(problems(fcos(sections), WORKER)).toEqual([expect.stringContaining(message)]);
  });
});

describe('sugar that cannot be', () => {
  const file = (contents: string) => fcos(`storage:\n  files:\n  - path: /etc/a\n    contents: {${contents}}\n`);
  const mount = (rest: string) =>
    fcos(`storage:\n  filesystems:\n  - {device: /dev/sdb, with_mount_unit: true${rest}}\n`);
  const boot = (rest: string) => fcos(`boot_device: {${rest}}\n`);
  it.each([
    [
      file('inline: a, local: b'),
      'a.bu:6:27: storage.files[0].contents.local: /etc/a: stands beside inline; write only one',
    ],
    [file('source: "data:,", inline: a'), 'contents.inline: /etc/a: stands beside source'],
    [file('local: missing'), 'a.bu:6:16: storage.files[0].contents.local: /etc/a: "missing" is not there'],
    [
      file('inline: a, verification: {hash: sha256-abc}'),
      'storage.files[0].contents.verification.hash: /etc/a: must be',
    ],
    [fcos('systemd: {units: [{name: a.service, contents: a, contents_local: b}]}\n'), 'stands beside contents'],
    [fcos('systemd: {units: [{name: a.service, contents_local: bytes}]}\n'), 'is not UTF-8 text'],
    [
      fcos('systemd: {units: [{name: a.service, contents_local: unit}]}\n'),
      'a.bu:3:37: systemd.units[0].contents_local: a.service: line 1 is a section header',
    ],
    [
      fcos('passwd: {users: [{name: core, ssh_authorized_keys_local: [missing]}]}\n'),
      'a.bu:3:59: passwd.users[0].ssh_authorized_keys_local[0]: core: "missing"',
    ],
    [fcos('storage:\n  trees:\n  - local: missing\n'), 'a.bu:5:5: storage.trees[0].local: "missing" is no folder'],
    [
      fcos('storage:\n  trees:\n  - local: tree\n  files:\n  - {path: /a, contents: {inline: a}}\n'),
      'a.bu:5:5: storage.trees[0]: /a of the tree has contents in storage.files too',
    ],
    [
      fcos('storage:\n  trees:\n  - local: tree\n  directories:\n  - {path: /a}\n'),
      '/a of the tree is something else in this file',
    ],
    [
      openshift('storage:\n  trees:\n  - local: linked\n'),
      'a.bu:8:5: storage.trees[0]: the link /l of the tree is refused in variant openshift',
    ],
    [mount(', path: /var/a'), 'a.bu:5:24: storage.filesystems[0].with_mount_unit: /var/a: needs a format'],
    [mount(', format: ext4'), 'needs a path beside it'],
    [mount(', format: swap').replace('1.5.0', '1.3.0'), 'makes no swap unit in fcos 1.3.0'],
    [boot('layout: x86_64'), 'a.bu:3:1: boot_device: asks for nothing'],
    [boot('layout: sparc, luks: {tpm2: true}'), 'a.bu:3:15: boot_device.layout: is none of x86_64, aarch64, ppc64le'],
    [boot('mirror: {devices: [/dev/sda]}'), 'a.bu:3:24: boot_device.mirror.devices: has one device'],
    [boot('luks: {tpm2: true, device: /dev/dasda}').replace('1.5.0', '1.6.0'), 'boot_device.luks.device: is of s390x'],
    [boot('mirror: {devices: [/dev/sda, dev/sdb]}'), 'a.bu:3:1: boot_device: dev/sdb: is not absolute'],
  ])('is refused with its place: %j', (text, message) => {
    const files = { bytes: Uint8Array.of(0xff, 0xfe), unit: '[Unit\n', 'tree/a': 'x', 'linked/l': '->a' };
    expect(problems(text, { files })).toEqual([expect.stringContaining(message)]);
  });
});

it('all problems are said, in the order of the file, and never keys, hashes or contents', () => {
  const text = openshift(`passwd:
  users:
  - name: core
    uid: 7
    password_hash: [SECRET1]
    ssh_authorized_keys: [{SECRET2: 1}]
storage:
  files:
  - path: /etc/a
    contents: {inline: [SECRET3]}
    mood: 1
`);
  const said = problems(text);
  expect(said.map((line) => Number(line.split(':')[1]))).toEqual([9, 10, 11, 15, 16]);
  expect(said.join()).not.toContain('SECRET');
});
