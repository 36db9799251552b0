import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { EMPTY_CONTENT, type ConfigContent } from '../../../machine-config/change/content.js';
import { countChanges, diffConfigs, isSameOnNode } from '../../../machine-config/change/diff-configs.js';
import type { IgnitionUnit } from '../../../machine-config/ignition/config.js';
import { file, makeContent, withFiles } from './make-content.js';

const encoded = (path: string, contents: object) => makeContent({ storage: { files: [{ path, contents }] } });
const unit = (...units: IgnitionUnit[]) => makeContent({ systemd: { units } });
const core = (...sshAuthorizedKeys: string[]) =>
  makeContent({ passwd: { users: [{ name: 'core', sshAuthorizedKeys }] } });

describe('diffConfigs, files', () => {
  it('names files that come, change and go', () => {
    const diff = diffConfigs(
      withFiles(file('/etc/gone'), file('/etc/b', 'old'), file('/etc/same', 'x')),
      withFiles(file('/etc/same', 'x'), file('/etc/new'), file('/etc/b', 'new')),
    );
    expect(diff.files).toEqual({ added: ['/etc/new'], changed: ['/etc/b'], removed: ['/etc/gone'] });
    expect(countChanges(diff).files).toBe(3);
  });

  it.each([
    ['base64', { source: `data:;base64,${Buffer.from('a b').toString('base64')}` }],
    ['gzip', { source: `data:;base64,${gzipSync('a b').toString('base64')}`, compression: 'gzip' }],
    ['another media type', { source: 'data:text/plain;charset=utf-8,a%20b' }],
    ['a given hash', { source: 'data:,a%20b', verification: { hash: 'sha256-00' } }],
  ])('takes the same bytes in %s for no change', (_, contents) => {
    const diff = diffConfigs(encoded('/etc/a', { source: 'data:,a%20b' }), encoded('/etc/a', contents));
    expect(isSameOnNode(diff)).toBe(true);
  });

  it.each([
    ['an explicit default mode', { mode: 0o644 }],
    ['root by name', { user: { name: 'root' }, group: { name: 'root' } }],
    ['root by id', { user: { id: 0 } }],
    ['overwrite', { overwrite: true }],
  ])('takes %s for no change', (_, more) => {
    expect(isSameOnNode(diffConfigs(withFiles(file('/a', 'x')), withFiles(file('/a', 'x', more))))).toBe(true);
  });

  it.each([
    ['another mode', { mode: 0o600 }],
    ['another owner', { user: { id: 1000 } }],
    ['another group', { group: { name: 'wheel' } }],
  ])('takes %s for a change', (_, more) => {
    const diff = diffConfigs(withFiles(file('/a', 'x')), withFiles(file('/a', 'x', more)));
    expect(diff.files.changed).toEqual(['/a']);
  });

  it('takes another order of the same files for no change', () => {
    const [a, b] = [file('/a', 'x'), file('/b', 'y')];
    expect(isSameOnNode(diffConfigs(withFiles(a, b), withFiles(b, a)))).toBe(true);
  });
});

describe('diffConfigs, units', () => {
  const a: IgnitionUnit = {
    name: 'a.service',
    contents: '[Service]\n',
    dropins: [{ name: '1.conf', contents: '[Unit]\n' }],
  };

  it.each<[string, IgnitionUnit]>([
    ['contents', { ...a, contents: '[Service]\nUser=x\n' }],
    ['enabled: false, which is not the same as absent', { ...a, enabled: false }],
    ['a mask', { ...a, mask: true }],
    ['the contents of a drop-in', { ...a, dropins: [{ name: '1.conf', contents: '[Install]\n' }] }],
    ['a drop-in less', { name: 'a.service', contents: '[Service]\n' }],
    ['the name of a drop-in', { ...a, dropins: [{ name: '2.conf', contents: '[Unit]\n' }] }],
  ])('sees a change of %s', (_, changed) => {
    const diff = diffConfigs(unit(a), unit(changed));
    expect(diff.units).toEqual({ added: [], changed: ['a.service'], removed: [] });
  });

  it('names units that come and go', () => {
    const diff = diffConfigs(unit(a), unit({ name: 'b.service' }));
    expect(diff.units).toEqual({ added: ['b.service'], changed: [], removed: ['a.service'] });
  });

  it('takes mask: false, an empty drop-in and another order of drop-ins for no change', () => {
    const more = { name: '0.conf', contents: '[Unit]\nAfter=x\n' };
    const before = unit({ ...a, dropins: [...(a.dropins ?? []), more] });
    const after = unit({ ...a, mask: false, dropins: [more, { name: '9.conf', contents: '' }, ...(a.dropins ?? [])] });
    expect(isSameOnNode(diffConfigs(before, after))).toBe(true);
  });
});

describe('diffConfigs, everything else', () => {
  it('counts SSH keys that come and go and does not mind their order', () => {
    expect(diffConfigs(core('k1', 'k2'), core('k3', 'k2')).sshKeys).toEqual({ added: 1, removed: 1 });
    expect(isSameOnNode(diffConfigs(core('k1', 'k2'), core('k2', 'k1', 'k2')))).toBe(true);
    expect(diffConfigs(core('k1'), EMPTY_CONTENT).sshKeys).toEqual({ added: 0, removed: 1 });
  });

  it('sees a changed password, and other changes of users', () => {
    const user = (more: object) => makeContent({ passwd: { users: [{ name: 'core', ...more }] } });
    expect(diffConfigs(user({ passwordHash: 'a' }), user({ passwordHash: 'b' }))).toMatchObject({
      password: true,
      passwd: true,
    });
    expect(diffConfigs(user({}), user({ shell: '/bin/sh' }))).toMatchObject({ password: false, passwd: true });
  });

  it('minds the order and the number of kernel arguments', () => {
    const args = (...kernelArguments: string[]) => makeContent({}, { kernelArguments });
    expect(diffConfigs(args('a=1', 'b'), args('b', 'a=1')).kernelArguments).toEqual({
      changed: true,
      added: 0,
      removed: 0,
    });
    expect(countChanges(diffConfigs(args('a=1', 'b'), args('b', 'a=1'))).kernelArguments).toBe(1);
    expect(diffConfigs(args('a'), args('a', 'a', 'c')).kernelArguments).toEqual({
      changed: true,
      added: 2,
      removed: 0,
    });
  });

  it.each<[string, Partial<ConfigContent>]>([
    ['osImage', { osImageURL: 'q/os@sha256:2' }],
    ['osImage', { baseOSExtensionsContainerImage: 'q/ext@sha256:2' }],
    ['kernelType', { kernelType: 'realtime' }],
    ['extensions', { extensions: ['usbguard'] }],
    ['fips', { fips: true }],
  ])('sees a change of %s', (field, fields) => {
    const diff = diffConfigs(EMPTY_CONTENT, { ...EMPTY_CONTENT, ...fields });
    expect(diff).toHaveProperty(field, true);
    expect(isSameOnNode(diff)).toBe(false);
  });

  it('takes extensions in another order for no change', () => {
    const [a, b] = [
      ['usbguard', 'ipsec'],
      ['ipsec', 'usbguard'],
    ].map((extensions) => makeContent({}, { extensions }));
    expect(isSameOnNode(diffConfigs(a!, b!))).toBe(true);
  });

  it('shows no contents, keys or hashes', () => {
    const secret = makeContent({
      storage: { files: [file('/etc/secret', 'hunter2')] },
      passwd: { users: [{ name: 'core', sshAuthorizedKeys: ['hunter2'], passwordHash: 'hunter2' }] },
      systemd: { units: [{ name: 'a.service', contents: 'hunter2' }] },
    });
    expect(JSON.stringify(diffConfigs(EMPTY_CONTENT, secret))).not.toContain('hunter2');
  });
});
