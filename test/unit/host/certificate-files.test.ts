import { chmod, mkdir, readdir, readlink, rename, symlink, writeFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { syncCertificateFiles } from '../../../activities/host/certificate-files.js';
import type { CertificateFile } from '../../../machine-config/certificates/files.js';
import { bring, fakeHost, file, losePowerAt, rendered, treeOf, type FakeHost } from '../../support/fake-host.js';

const SOURCE = 'ca.crt of Secret drydock/ca';
const STATE = ['/var/lib/drydock', '/var/lib/drydock-lab'];
const ca = (path: string, text: string | undefined, mode = 0o600): CertificateFile => ({
  path,
  source: SOURCE,
  mode,
  ...(text === undefined ? {} : { contents: Buffer.from(text) }),
});
const sync = (fake: FakeHost, files: CertificateFile[], more: { declared?: string[]; managed?: string[] } = {}) =>
  syncCertificateFiles(fake.host, fake.store, {
    files,
    declared: new Set(more.declared ?? files.map(({ path }) => path)),
    managed: new Set(more.managed ?? []),
  });
const onDisk = (fake: FakeHost) => treeOf(fake.root, STATE);
const blobs = (fake: FakeHost) => readdir(fake.path('/var/lib/drydock/blobs')).catch(() => []);

it('writes what differs, complete and with its mode, and nothing a second time', async () => {
  const fake = await fakeHost();
  const wanted = [ca('/etc/pki/new/ca.pem', 'one'), ca('/etc/motd', 'two', 0o640)];
  expect(await sync(fake, wanted)).toEqual({
    written: [
      { path: '/etc/pki/new/ca.pem', source: SOURCE },
      { path: '/etc/motd', source: SOURCE },
    ],
    putBack: [],
    problems: [],
  });
  const tree = await onDisk(fake);
  expect(tree['/etc/pki/new/ca.pem']).toMatch(/^file 600 \d+:\d+ one$/);
  expect(tree['/etc/motd']).toMatch(/^file 640 \d+:\d+ two$/);
  expect(tree['/etc/pki/new']).toMatch(/^directory 755 /);
  const before = await treeOf(fake.root);
  expect(await sync(fake, wanted)).toEqual({ written: [], putBack: [], problems: [] });
  expect(await treeOf(fake.root)).toEqual(before);
});

it('tells what others did to a file from news', async () => {
  const fake = await fakeHost();
  await sync(fake, [ca('/etc/ca.d/ca', 'one')]);
  expect((await sync(fake, [ca('/etc/ca.d/ca', 'two')])).written).toEqual([{ path: '/etc/ca.d/ca', source: SOURCE }]);
  await chmod(fake.path('/etc/ca.d/ca'), 0o666);
  expect((await sync(fake, [ca('/etc/ca.d/ca', 'two')])).written).toMatchObject([
    { spoilt: 'expected mode 0600, found 0666' },
  ]);
  expect((await sync(fake, [ca('/etc/ca.d/ca', 'two', 0o644)])).written[0]).not.toHaveProperty('spoilt');
  await writeFile(fake.path('/etc/ca.d/ca'), 'a secret');
  const { written } = await sync(fake, [ca('/etc/ca.d/ca', 'two', 0o644)]);
  expect(written).toMatchObject([{ spoilt: 'other contents (expected 3 bytes, found 8)' }]);
});

it('puts everything back when the entries go, folders that were made included, and forgets it', async () => {
  const fake = await fakeHost();
  await symlink('/etc/hostname', fake.path('/etc/linked'));
  await mkdir(fake.path('/etc/theirs'));
  const before = await onDisk(fake);
  await sync(fake, [ca('/etc/a/b/c/ca', 'x'), ca('/etc/motd', 'x'), ca('/etc/linked', 'x'), ca('/etc/theirs/ca', 'x')]);
  expect(await onDisk(fake)).not.toEqual(before);
  const { putBack, problems } = await sync(fake, []);
  expect([...putBack].sort()).toEqual(['/etc/a/b/c/ca', '/etc/linked', '/etc/motd', '/etc/theirs/ca']);
  expect(problems).toEqual([]);
  expect(await onDisk(fake)).toEqual(before);
  expect(await readlink(fake.path('/etc/linked'))).toBe('/etc/hostname');
  expect(await fake.store.certificates()).toEqual({ files: {}, folders: [] });
  expect(await blobs(fake)).toEqual([]);
});

it('leaves a folder that it made and in which others put something', async () => {
  const fake = await fakeHost();
  await sync(fake, [ca('/etc/a/b/ca', 'x')]);
  await writeFile(fake.path('/etc/a/theirs'), 'y');
  await sync(fake, []);
  const tree = await onDisk(fake);
  expect(tree).not.toHaveProperty(['/etc/a/b']);
  expect(tree['/etc/a/theirs']).toContain('y');
});

it('leaves a file whose object cannot be read now as it is', async () => {
  const fake = await fakeHost();
  await sync(fake, [ca('/etc/motd', 'one')]);
  expect(await sync(fake, [ca('/etc/motd', undefined)])).toEqual({ written: [], putBack: [], problems: [] });
  // An entry that is refused is still there.
  expect(await sync(fake, [], { declared: ['/etc/motd'] })).toMatchObject({ putBack: [] });
  expect(await fake.text('/etc/motd')).toBe('one');
  await sync(fake, []);
  expect(await fake.text('/etc/motd')).toBe('A machine of the lab.\n');
});

it('never takes a file for its own that was not written yet', async () => {
  const fake = await fakeHost();
  const before = await onDisk(fake);
  await sync(fake, [ca('/etc/motd', undefined)]);
  expect(await fake.store.certificates()).toEqual({ files: {}, folders: [] });
  expect(await onDisk(fake)).toEqual(before);
});

it('survives a loss of power at any step: what is begun again ends as if nothing had happened', async () => {
  const first = [ca('/etc/a/ca', 'one'), ca('/etc/motd', 'one'), ca('/etc/chrony.conf', 'one')];
  const second = [ca('/etc/a/ca', 'two'), ca('/etc/b/ca', 'two'), ca('/etc/chrony.conf', 'one')];
  let losses = 0;
  for (let dieAt = 0; dieAt < 3; dieAt++) {
    const fake = await fakeHost();
    const before = await onDisk(fake);
    for (const wanted of [first, second, []]) {
      await losePowerAt(
        fake,
        (_, index) => index === dieAt && ++losses > 0,
        () => sync(fake, wanted),
      );
      await sync(fake, wanted);
      const tree = await onDisk(fake);
      for (const { path, contents = '' } of wanted)
        expect(tree[path]).toMatch(new RegExp(` ${contents.toString()}$`, 'u'));
    }
    expect(await onDisk(fake)).toEqual(before);
  }
  expect(losses).toBe(9);
});

it('leaves to a config what that manages, and hands over what was there before', async () => {
  const fake = await fakeHost();
  await sync(fake, [ca('/etc/motd', 'ours')]);
  await bring(fake, rendered('rendered-worker-1', { storage: { files: [file('/etc/motd', 'of the config')] } }));
  const { problems, putBack, written } = await sync(fake, [ca('/etc/motd', 'ours')], { managed: ['/etc/motd'] });
  expect(problems).toEqual([
    '/etc/motd: the rendered config of this node manages it, which wins; take it out of the MachineConfigs or out of spec.certificates',
  ]);
  expect([putBack, written]).toEqual([[], []]);
  expect(await fake.text('/etc/motd')).toBe('of the config');
  await bring(fake, rendered('rendered-worker-2', {}));
  expect(await fake.text('/etc/motd')).toBe('A machine of the lab.\n');
});

it('keeps its originals through updates that clean up after themselves', async () => {
  const fake = await fakeHost();
  await sync(fake, [ca('/etc/motd', 'ours')]);
  for (const name of ['rendered-worker-1', 'rendered-worker-2']) {
    await bring(fake, rendered(name, { storage: { files: [file(`/etc/${name}`, name)] } }));
  }
  expect(await fake.text('/etc/motd')).toBe('ours');
  await sync(fake, []);
  expect(await fake.text('/etc/motd')).toBe('A machine of the lab.\n');
});

it('refuses where it may not write, one file at a time', async () => {
  const fake = await fakeHost();
  fake.host = { ...fake.host, protectedPaths: () => Promise.resolve(['/etc/kubernetes/kubelet.conf']) };
  await mkdir(fake.path('/etc/kubernetes'));
  await symlink('/etc/kubernetes', fake.path('/etc/k8s'));
  await symlink('../../../outside', fake.path('/etc/out'));
  await mkdir(fake.path('/etc/folder'));
  const paths = [
    ['/etc/k8s/kubelet.conf', 'what this node or its worker depends on'],
    ['/etc/out/ca', 'leads out of the root'],
    ['/etc/folder', 'is a directory'],
    ['/etc/motd/below', 'is not a directory'],
    ['/proc/x/y', 'may not be managed'],
  ] as const;
  const before = await onDisk(fake);
  const { problems } = await sync(fake, [...paths.map(([path]) => ca(path, 'x')), ca('/etc/good/ca', 'x')]);
  expect(problems).toHaveLength(paths.length);
  for (const [path, why] of paths) {
    expect(problems.find((problem) => problem.startsWith(`${path}: `))).toContain(why);
  }
  const after = await onDisk(fake);
  expect(after['/etc/good/ca']).toMatch(/ x$/);
  expect(Object.keys(after).filter((path) => !(path in before))).toEqual(['/etc/good', '/etc/good/ca']);
});

it('follows an entry whose folder leads elsewhere now, and puts back what it left', async () => {
  const fake = await fakeHost();
  for (const folder of ['one', 'two']) await mkdir(fake.path(`/etc/${folder}`));
  await symlink('one', fake.path('/etc/now'));
  await sync(fake, [ca('/etc/now/ca', 'x')]);
  expect(await fake.text('/etc/one/ca')).toBe('x');
  await symlink('two', fake.path('/etc/next'));
  await rename(fake.path('/etc/next'), fake.path('/etc/now'));
  await sync(fake, [ca('/etc/now/ca', 'x')]);
  expect(await fake.text('/etc/two/ca')).toBe('x');
  expect(await onDisk(fake)).not.toHaveProperty(['/etc/one/ca']);
});
