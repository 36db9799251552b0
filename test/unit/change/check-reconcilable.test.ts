import { describe, expect, it } from 'vitest';
import {
  checkReconcilable,
  type ReconcileOptions,
  type StorageOverride,
} from '../../../machine-config/change/check-reconcilable.js';
import { EMPTY_CONTENT, type ConfigContent } from '../../../machine-config/change/content.js';
import type { IgnitionUser } from '../../../machine-config/ignition/config.js';
import { file, makeContent, withFiles, type Sections } from './make-content.js';

const check = (old: ConfigContent, next: ConfigContent, options: Partial<ReconcileOptions> = {}) =>
  checkReconcilable(old, next, { sshUser: 'core', ...options });
const users = (...list: IgnitionUser[]) => makeContent({ passwd: { users: list } });
const fieldOf = (result: ReturnType<typeof check>) => (result.ok ? undefined : result.field);

describe('checkReconcilable', () => {
  it('accepts changes of files, units, arguments, extensions, kernel type and image', () => {
    const next = makeContent(
      { storage: { files: [file('/a')] }, systemd: { units: [{ name: 'a.service' }] } },
      { kernelArguments: ['a'], extensions: ['usbguard'], kernelType: 'realtime', osImageURL: 'q' },
    );
    expect(check(EMPTY_CONTENT, next)).toEqual({ ok: true });
    expect(check(next, EMPTY_CONTENT)).toEqual({ ok: true });
  });

  const sections: [string, Sections][] = [
    ['spec.config.storage.disks', { storage: { disks: [{ device: '/dev/sda' }] } }],
    ['spec.config.storage.filesystems', { storage: { filesystems: [{ device: '/dev/sda1', path: '/var' }] } }],
    ['spec.config.storage.raid', { storage: { raid: [{ name: 'md0', devices: ['/dev/a', '/dev/b'] }] } }],
    ['spec.config.storage.luks', { storage: { luks: [{ name: 'l', device: '/dev/c' }] } }],
    ['spec.config.storage.directories', { storage: { directories: [{ path: '/etc/d' }] } }],
    ['spec.config.storage.links', { storage: { links: [{ path: '/etc/l', target: '/etc/m' }] } }],
    ['spec.config.kernelArguments', { kernelArguments: { shouldExist: ['a'] } }],
    ['spec.config.passwd.groups', { passwd: { groups: [{ name: 'g' }] } }],
    ['spec.config.ignition.proxy', { ignition: { proxy: { httpProxy: 'http://p' } } }],
    ['spec.config.ignition.timeouts', { ignition: { timeouts: { httpTotal: 5 } } }],
    ['spec.config.ignition.config', { ignition: { config: { merge: [{ source: 'data:,{}' }] } } }],
    [
      'spec.config.ignition.security',
      { ignition: { security: { tls: { certificateAuthorities: [{ source: 'data:,c' }] } } } },
    ],
  ];
  it.each(sections)('refuses that %s comes or goes, and accepts it unchanged', (field, section) => {
    const content = makeContent(section);
    expect(fieldOf(check(makeContent(), content))).toBe(field);
    expect(fieldOf(check(content, makeContent()))).toBe(field);
    expect(check(content, makeContent(section))).toEqual({ ok: true });
  });

  it.each<[StorageOverride, Sections]>([
    ['Disks', sections[0]![1]],
    ['FileSystems', sections[1]![1]],
    ['Raid', sections[2]![1]],
  ])('accepts a change that the override %s allows, and no other override does', (override, section) => {
    const others = (['Disks', 'FileSystems', 'Raid'] as const).filter((other) => other !== override);
    expect(check(EMPTY_CONTENT, makeContent(section), { overrides: [override] })).toEqual({ ok: true });
    expect(check(EMPTY_CONTENT, makeContent(section), { overrides: others }).ok).toBe(false);
  });

  it('does not mind another order of disks and directories', () => {
    const storage = {
      disks: [{ device: '/dev/a' }, { device: '/dev/b' }],
      directories: [{ path: '/a' }, { path: '/b' }],
    };
    const reversed = { disks: [...storage.disks].reverse(), directories: [...storage.directories].reverse() };
    expect(check(makeContent({ storage }), makeContent({ storage: reversed }))).toEqual({ ok: true });
  });

  it('refuses append, also when it is old, and names the file', () => {
    const content = withFiles(file('/etc/hosts', '', { append: [{ source: 'data:,x' }] }));
    const result = check(content, content);
    expect(fieldOf(result)).toBe('spec.config.storage.files.append');
    expect(result).toHaveProperty('message', expect.stringContaining('/etc/hosts'));
  });

  it('refuses to switch FIPS on or off', () => {
    const fips = { ...EMPTY_CONTENT, fips: true };
    expect(fieldOf(check(EMPTY_CONTENT, fips))).toBe('spec.fips');
    expect(fieldOf(check(fips, EMPTY_CONTENT))).toBe('spec.fips');
    expect(check(fips, fips)).toEqual({ ok: true });
  });
});

describe('checkReconcilable, users', () => {
  const core: IgnitionUser = { name: 'core', sshAuthorizedKeys: ['k1'] };

  it('accepts other keys and another password of the one user, and that it goes altogether', () => {
    expect(check(users(core), users({ ...core, sshAuthorizedKeys: ['k2'], passwordHash: 'h' }))).toEqual({ ok: true });
    expect(check(users(core), makeContent())).toEqual({ ok: true });
    expect(check(makeContent(), users(core))).toEqual({ ok: true });
  });

  it('refuses to leave the user with neither key nor password', () => {
    expect(fieldOf(check(users(core), users({ name: 'core' })))).toBe('spec.config.passwd.users');
  });

  it('refuses any other change of the user and names the field', () => {
    expect(fieldOf(check(users(core), users({ ...core, shell: '/bin/zsh' })))).toBe('spec.config.passwd.users.shell');
    expect(fieldOf(check(users({ ...core, homeDir: '/h' }), users(core)))).toBe('spec.config.passwd.users.homeDir');
  });

  it('lets keys change while what first boot made stays as it is', () => {
    const made = { ...core, shell: '/bin/zsh' };
    const other = { name: 'bob', uid: 7 };
    expect(check(users(made, other), users(other, { ...made, sshAuthorizedKeys: ['k2'] }))).toEqual({ ok: true });
  });

  it('refuses that another user comes, changes or goes', () => {
    const bob = { name: 'bob', sshAuthorizedKeys: ['k'] };
    expect(check(users(core), users(core, bob))).toMatchObject({
      ok: false,
      message: expect.stringContaining('bob') as string,
    });
    expect(check(users(core, bob), users(core)).ok).toBe(false);
    expect(check(users(core, bob), users(core, { ...bob, sshAuthorizedKeys: ['k9'] })).ok).toBe(false);
  });

  it('follows the flavour in whose keys may change', () => {
    const boot = { name: 'boot', sshAuthorizedKeys: ['k'] };
    expect(check(EMPTY_CONTENT, users(boot), { sshUser: 'boot' })).toEqual({ ok: true });
    expect(check(EMPTY_CONTENT, users(boot)).ok).toBe(false);
  });

  it('shows no keys or hashes in messages', () => {
    const secret = { name: 'bob', sshAuthorizedKeys: ['hunter2'], passwordHash: 'hunter2' };
    expect(JSON.stringify(check(users(core), users(core, secret)))).not.toContain('hunter2');
  });
});
