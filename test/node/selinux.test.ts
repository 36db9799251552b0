import { beforeAll, expect, test } from 'vitest';
import { startMachines, type Machine } from '../../dev/real-nodes/real-node.js';
import { file, rendered } from '../support/fake-host.js';
import { MachineUnderTest } from '../support/machine-under-test.js';
import { describeRealNodes, useLab } from '../support/real-node.js';

/*
 * Contexts by the real chcon and matchpathcon, over a policy's real file of contexts. No kernel enforces them here: that
 * SELinux is on is said by a file in its place, which the worker alone sees, and what is compared are the labels on disk.
 */

const context = (type: string) => `system_u:object_r:${type}:s0`;
const RULES = [
  ['/.*', '', context('default_t')],
  ['/etc(/.*)?', '', context('etc_t')],
  ['/etc/systemd/system(/.*)?', '', context('systemd_unit_file_t')],
  ['/etc/systemd/system/[^/]+', '-l', context('unit_link_t')],
  ['/etc/app(/.*)?', '-d', context('app_folder_t')],
  ['/etc/nothing(/.*)?', '', '<<none>>'],
  ['/usr/local/bin(/.*)?', '', context('bin_t')],
  ['/usr/local/bin/tool', '-l', context('link_t')],
  ['/home/[^/]+/\\.ssh(/.*)?', '', context('ssh_home_t')],
];
/** `name type context`, as policies have it; the last line that fits decides. */
const FILE_CONTEXTS = RULES.map((rule) => `${rule.filter((word) => word !== '').join('\t')}\n`).join('');

const WITH_SELINUX = [
  ...['unshare', '--mount', 'sh', '-c'],
  'mount -t tmpfs lab /sys/fs && mkdir /sys/fs/selinux && echo 0 >/sys/fs/selinux/enforce && exec "$@"',
  'sh',
];

const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA one';
const UNIT = '[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n';
const OLD = rendered('rendered-worker-old', {
  storage: { files: [file('/etc/labelled.conf', 'old\n')] },
  systemd: { units: [{ name: 'masked.service', mask: true }] },
});
const NEW = rendered('rendered-worker-new', {
  storage: {
    files: [
      file('/etc/labelled.conf', 'new\n'),
      file('/etc/app/sub/coming.conf', 'coming\n'),
      file('/etc/nothing/x', 'x\n'),
      file('/usr/local/bin/tool', '#!/bin/sh\n', { mode: 0o755 }),
    ],
  },
  systemd: {
    units: [
      { name: 'masked.service', mask: false, contents: UNIT },
      { name: 'hidden.service', mask: true },
      { name: 'coming.service', enabled: true, contents: UNIT, dropins: [{ name: 'a.conf', contents: '[Unit]\n' }] },
    ],
  },
  passwd: { users: [{ name: 'core', sshAuthorizedKeys: [KEY] }] },
});

describeRealNodes('a machine with SELinux on', () => {
  const lab = useLab({ temporal: false, kubernetes: false });
  let machine: MachineUnderTest;

  beforeAll(async () => {
    const [started] = await startMachines(lab(), [{ name: 'selinux' }]);
    machine = await MachineUnderTest.prepare(lab(), started as Machine);
    await machine.write('/etc/selinux/config', 'SELINUX=permissive\nSELINUXTYPE=lab\n');
    await machine.write('/etc/selinux/lab/contexts/files/file_contexts', FILE_CONTEXTS);
    // A kernel with SELinux has a context for every file, also for those that have none on the disk.
    await machine.succeed(['chcon', '--recursive', context('before_t'), '/etc', '/home', '/usr/local/bin', '/var/lib']);
  }, 300_000);

  const contextOf = async (path: string) => {
    const { code, stdout, stderr } = await machine.machine.exec(['stat', '--format=%C', path]);
    if (code !== 0 && !stderr.includes('No data available')) throw new Error(stderr);
    return code === 0 ? stdout.trim() : 'none';
  };
  const bring = async (target: typeof OLD, more: { failAt?: number } = {}) => {
    const { answers } = await machine.drive({ do: 'apply', target, ...more }, WITH_SELINUX);
    if (more.failAt === undefined) await machine.drive({ do: 'forget' });
    return answers.at(-1);
  };

  test('gives what a config writes the contexts that the policy says, and keeps those of what it replaces', async () => {
    expect(await bring(OLD)).toMatchObject({ applied: OLD.metadata.name });
    expect(await contextOf('/etc/labelled.conf')).toBe(context('etc_t'));
    expect(await contextOf('/etc/systemd/system/masked.service')).toBe(context('unit_link_t'));
    await machine.succeed(['chcon', context('special_t'), '/etc/labelled.conf']);

    expect(await bring(NEW)).toMatchObject({ applied: NEW.metadata.name });
    const expected: Readonly<Record<string, string>> = {
      '/etc/labelled.conf': context('special_t'),
      '/etc/app/sub/coming.conf': context('etc_t'),
      '/etc/app': context('app_folder_t'),
      '/etc/app/sub': context('app_folder_t'),
      '/etc/nothing/x': 'none',
      '/usr/local/bin/tool': context('bin_t'),
      // A link to /dev/null before, whose context it must not have.
      '/etc/systemd/system/masked.service': context('systemd_unit_file_t'),
      '/etc/systemd/system/hidden.service': context('unit_link_t'),
      '/etc/systemd/system/coming.service': context('systemd_unit_file_t'),
      '/etc/systemd/system/coming.service.d/a.conf': context('systemd_unit_file_t'),
      '/home/core/.ssh/authorized_keys': context('ssh_home_t'),
    };
    const found: Record<string, string> = {};
    for (const path of Object.keys(expected)) found[path] = await contextOf(path);
    expect(found).toEqual(expected);
  });

  test('puts a failed change back with the contexts that were there', async () => {
    const before = await contextOf('/etc/labelled.conf');
    expect(before).toBe(context('special_t'));
    const { steps } = (await bring(OLD)) as { steps: number };
    expect(await bring(NEW, { failAt: steps - 1 })).toMatchObject({
      error: expect.stringContaining('failed on purpose') as string,
    });
    expect(await contextOf('/etc/labelled.conf')).toBe(before);
    expect(await contextOf('/etc/systemd/system/masked.service')).toBe(context('unit_link_t'));
  });
});
