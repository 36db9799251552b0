import { appendFile, chmod, chown, lstat, mkdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { describe, expect, it } from 'vitest';
import { applyPlan } from '../../../activities/host/apply.js';
import type { Host } from '../../../activities/host/host.js';
import { withKeyBlock, withKeyBlockOf } from '../../../activities/host/key-block.js';
import { ABSENT, type PathState } from '../../../activities/host/path-state.js';
import { planUpdate } from '../../../activities/host/plan.js';
import { recover } from '../../../activities/host/undo.js';
import { verifyHost } from '../../../activities/host/verify.js';
import type { MachineConfig } from '../../../machine-config/api/machine-config.js';
import { fakeHost, rendered, treeOf, type FakeHost } from '../../support/fake-host.js';
import { PATIENCE } from '../../support/patience.js';

const NOW = '2026-11-30T12:00:00.000Z';
const KEYS = '/home/core/.ssh/authorized_keys';
const STATE = ['/var/lib/drydock'];

const users = (...users: object[]) => ({ passwd: { users } });
const keys = (...sshAuthorizedKeys: string[]) => users({ name: 'core', sshAuthorizedKeys });

/** A host whose sshd reads only a file that others write as well. */
async function sharingHost(): Promise<FakeHost> {
  const fake = await fakeHost();
  const shared: Host = {
    ...fake.host,
    sshKeyPlace: ({ home }) => Promise.resolve({ path: `${home}/.ssh/authorized_keys`, shared: true }),
  };
  return Object.assign(fake, { host: shared });
}

async function planTo({ host, store }: FakeHost, target: MachineConfig) {
  return planUpdate({ host, store, current: await store.currentConfig(), target, sshUser: 'core' });
}

async function bring(fake: FakeHost, target: MachineConfig) {
  const { host, store } = fake;
  const plan = await planTo(fake, target);
  await applyPlan({ host, store, plan, from: 'before', now: NOW });
  await store.removeJournal();
  await store.collectGarbage();
  return plan;
}

const drift = (fake: FakeHost, config: MachineConfig) =>
  verifyHost(config, { host: fake.host, sshUser: 'core', booted: false });

async function put(fake: FakeHost, text: string, mode = 0o600, path = KEYS) {
  await mkdir(dirname(fake.path(path)), { recursive: true, mode: 0o700 });
  if (process.geteuid?.() === 0) await chown(dirname(fake.path(path)), 1000, 1000);
  await writeFile(fake.path(path), text);
  await chmod(fake.path(path), mode);
  if (process.geteuid?.() === 0) await chown(fake.path(path), 1000, 1000);
}

const FOREIGN = 'ssh-ed25519 AAAAforeign alice\n# her second one\nssh-rsa AAAA bob';
const BLOCK = (count: number, ...lines: string[]) =>
  `# BEGIN Drydock (${count} lines): keys from MachineConfigs, to be changed there\n${lines.map((line) => `${line}\n`).join('')}# END Drydock\n`;

describe('keys in a file that others write as well', () => {
  it('stand in a marked block, and the other lines stay byte for byte, without a final line break too', async () => {
    const fake = await sharingHost();
    await put(fake, FOREIGN);
    const before = await treeOf(fake.root, STATE);
    await bring(fake, rendered('r1', keys('ssh-ed25519 AAAA1 one', 'ssh-ed25519 AAAA2 two')));
    expect(await fake.text(KEYS)).toBe(BLOCK(2, 'ssh-ed25519 AAAA1 one', 'ssh-ed25519 AAAA2 two') + FOREIGN);
    await bring(fake, rendered('r2', keys('ssh-ed25519 AAAA3 three')));
    expect(await fake.text(KEYS)).toBe(BLOCK(1, 'ssh-ed25519 AAAA3 three') + FOREIGN);
    await bring(fake, rendered('r3', {}));
    expect(await treeOf(fake.root, STATE)).toEqual(before);
  });

  it('are united over all entries of the user, each once', async () => {
    const fake = await sharingHost();
    const two = users(
      { name: 'core', sshAuthorizedKeys: ['a 1', 'a 2'] },
      { name: 'core', sshAuthorizedKeys: ['a 2 ', 'a 3'] },
    );
    await bring(fake, rendered('r1', two));
    expect(await fake.text(KEYS)).toBe(BLOCK(3, 'a 1', 'a 2', 'a 3'));
  });

  it('take the file with them where there was none and nobody else wrote into it', async () => {
    const fake = await sharingHost();
    const before = await treeOf(fake.root, STATE);
    await bring(fake, rendered('r1', keys('a 1')));
    expect((await stat(fake.path(KEYS))).mode & 0o777).toBe(0o600);
    await bring(fake, rendered('r2', {}));
    expect(await treeOf(fake.root, STATE)).toEqual(before);

    await bring(fake, rendered('r3', keys('a 1')));
    await writeFile(fake.path(KEYS), `${await fake.text(KEYS)}a theirs`);
    await bring(fake, rendered('r4', {}));
    expect(await fake.text(KEYS)).toBe('a theirs');
  });

  it('stay where somebody moved them, with lines of others on both sides', async () => {
    const fake = await sharingHost();
    const config = rendered('r1', keys('a 1'));
    await bring(fake, config);
    await writeFile(fake.path(KEYS), `above\n${await fake.text(KEYS)}below\n`);
    expect(await drift(fake, config)).toEqual([]);
    await bring(fake, rendered('r2', keys('a 2')));
    expect(await fake.text(KEYS)).toBe(`above\n${BLOCK(1, 'a 2')}below\n`);
    await bring(fake, rendered('r3', {}));
    expect(await fake.text(KEYS)).toBe('above\nbelow\n');
  });

  it('drift when the block is edited, moved out of a readable file or made writable, and not by what others write', async () => {
    const fake = await sharingHost();
    await put(fake, FOREIGN);
    const config = rendered('r1', keys('a 1'));
    await bring(fake, config);
    await writeFile(fake.path(KEYS), `${await fake.text(KEYS)}\na theirs\n`);
    expect(await drift(fake, config)).toEqual([]);

    const good = await fake.text(KEYS);
    await writeFile(fake.path(KEYS), good.replace('a 1\n', 'a 1\na smuggled\n'));
    expect(await drift(fake, config)).toMatchObject([{ path: KEYS, kind: 'contents' }]);
    await writeFile(fake.path(KEYS), `${good}${BLOCK(1, 'a again')}`);
    expect(await drift(fake, config)).toMatchObject([{ path: KEYS, kind: 'contents' }]);
    await writeFile(fake.path(KEYS), good);
    await chmod(fake.path(KEYS), 0o666);
    expect(await drift(fake, config)).toMatchObject([{ path: KEYS, kind: 'mode' }]);
    await rm(fake.path(KEYS));
    expect(await drift(fake, config)).toMatchObject([{ path: KEYS, kind: 'missing' }]);
  });

  it('keep the mode that the file has, mend one that sshd would refuse, and give it back', async () => {
    const fake = await sharingHost();
    await put(fake, FOREIGN, 0o640);
    await bring(fake, rendered('r1', keys('a 1')));
    expect((await stat(fake.path(KEYS))).mode & 0o777).toBe(0o640);
    await bring(fake, rendered('r2', {}));

    await chmod(fake.path(KEYS), 0o664);
    await bring(fake, rendered('r3', keys('a 1')));
    expect((await stat(fake.path(KEYS))).mode & 0o777).toBe(0o644);
    await bring(fake, rendered('r4', {}));
    expect((await stat(fake.path(KEYS))).mode & 0o777).toBe(0o664);
  });

  it('are not written into a link or a folder, and no line may look like a marker', async () => {
    const fake = await sharingHost();
    await mkdir(dirname(fake.path(KEYS)), { recursive: true });
    await symlink('/root/keys', fake.path(KEYS));
    await expect(planTo(fake, rendered('r1', keys('a 1')))).rejects.toThrow(
      /passwd\.users.*authorized_keys: .* is a link/,
    );
    await expect(planTo(fake, rendered('r1', keys('# END Drydock')))).rejects.toThrow(/marks Drydock's own keys/);
  });

  it('lose nothing that others write between the plan and the change, nor before it is undone', async () => {
    const fake = await sharingHost();
    await put(fake, 'a alice\n');
    const { host, store } = fake;
    const plan = await planTo(fake, rendered('r1', keys('a 1')));
    await writeFile(fake.path(KEYS), 'a alice\na bob\n');
    await applyPlan({ host, store, plan, from: 'before', now: NOW });
    expect(await fake.text(KEYS)).toBe(`${BLOCK(1, 'a 1')}a alice\na bob\n`);

    await store.removeJournal();
    const next = await planTo(fake, rendered('r2', keys('a 2')));
    let died = false;
    fake.onStep = (step) => {
      if (step !== 'closing the change' || died) return;
      died = true;
      return new Promise(() => undefined);
    };
    void applyPlan({ host, store, plan: next, from: 'r1', now: NOW });
    await expect.poll(() => died, PATIENCE).toBe(true);
    await writeFile(fake.path(KEYS), `${await fake.text(KEYS)}a carol\n`);
    expect(await recover(host, store)).toBe('undone');
    expect(await fake.text(KEYS)).toBe(`${BLOCK(1, 'a 1')}a alice\na bob\na carol\n`);
  });

  it('lose nothing that others write at the very moment, and give up where somebody writes all the time', async () => {
    for (const busyFor of [3, Number.POSITIVE_INFINITY]) {
      const fake = await sharingHost();
      await put(fake, 'a alice\n');
      let writes = 0;
      const label: Host['label'] = async (_temporary, path) => {
        if (path !== KEYS || writes >= busyFor) return;
        writes += 1;
        await appendFile(fake.path(KEYS), `a other ${writes}\n`);
      };
      Object.assign(fake, { host: { ...fake.host, label } });
      const changed = bring(fake, rendered('r1', keys('a 1')));
      if (busyFor === 3) {
        await changed;
        expect(await fake.text(KEYS)).toBe(`${BLOCK(1, 'a 1')}a alice\na other 1\na other 2\na other 3\n`);
      } else {
        await expect(changed).rejects.toThrow(/authorized_keys: others write it all the time/);
        expect(await fake.text(KEYS)).toMatch(/^a alice\na other 1\n/);
      }
    }
  });

  it('are undone to the byte, wherever the update stops', async () => {
    const pristine = await sharingHost();
    await put(pristine, FOREIGN, 0o664);
    const counted = await sharingHost();
    await put(counted, FOREIGN, 0o664);
    await bring(counted, rendered('r1', keys('a 1')));
    const total = counted.steps.length;
    const before = await treeOf(pristine.root, STATE);
    for (let at = 0; at < total; at++) {
      const fake = await sharingHost();
      await put(fake, FOREIGN, 0o664);
      fake.onStep = (_step, index) => {
        if (index === at) throw new Error('stopped');
      };
      await expect(bring(fake, rendered('r1', keys('a 1')))).rejects.toThrow('stopped');
      const tree = await treeOf(fake.root, STATE);
      for (const path of Object.keys(before))
        if (path.includes('.ssh')) expect(tree[path], `step ${at}`).toBe(before[path]);
    }
  });

  it('leave their place, and their block, when sshd is told to look elsewhere', async () => {
    const fake = await sharingHost();
    await put(fake, FOREIGN);
    await bring(fake, rendered('r1', keys('a 1')));
    const own: Host = {
      ...fake.host,
      sshKeyPlace: ({ home }) => Promise.resolve({ path: `${home}/.ssh/authorized_keys.d/ignition`, shared: false }),
    };
    const moved = Object.assign(fake, { host: own });
    await bring(moved, rendered('r2', keys('a 1')));
    expect(await moved.text(KEYS)).toBe(FOREIGN);
    expect(await moved.text('/home/core/.ssh/authorized_keys.d/ignition')).toBe('a 1\n');
  });
});

describe('the marked block', () => {
  const file = (text: string): PathState => ({
    kind: 'file',
    contents: Buffer.from(text, 'latin1'),
    mode: 0o600,
    uid: 1,
    gid: 1,
  });
  const contents = (state: PathState) => (state.kind === 'file' ? state.contents.toString('latin1') : state.kind);
  const block = { kind: 'keys' as const, lines: ['a 1', 'a 2'], uid: 1, gid: 1 };

  it('keeps bytes that are no UTF-8', () => {
    const found = file('a b \xff\xfe\n');
    expect(contents(withKeyBlockOf(found, withKeyBlock(block, found)))).toBe('a b \xff\xfe\n');
  });

  it('is taken out whole where somebody removed its end, and takes no line of others with it', () => {
    const whole = contents(withKeyBlock(block, file('a theirs\n')));
    const found = file(whole.replace('# END Drydock\n', ''));
    expect(contents(withKeyBlockOf(file('a theirs\n'), found))).toBe('a theirs\n');
  });

  it('leaves an empty file that was there before', () => {
    expect(contents(withKeyBlockOf(file(''), withKeyBlock(block, file(''))))).toBe('');
    expect(withKeyBlockOf(ABSENT, withKeyBlock(block, ABSENT))).toEqual(ABSENT);
  });
});

describe("the account that a config's user stands for", () => {
  it('gets folders of its own with the right mode, also where they were wrong before', async () => {
    const fake = await fakeHost();
    await mkdir(fake.path('/home/core/.ssh'), { mode: 0o777 });
    await chmod(fake.path('/home/core/.ssh'), 0o777);
    await bring(fake, rendered('r1', keys('a 1')));
    const owner = fake.host.ownerOnDisk({ uid: 1000, gid: 1000 });
    for (const path of ['/home/core/.ssh', '/home/core/.ssh/authorized_keys.d']) {
      expect(await stat(fake.path(path))).toMatchObject({ uid: owner.uid, gid: owner.gid });
      expect((await stat(fake.path(path))).mode & 0o7777).toBe(0o700);
    }
    expect((await lstat(fake.path('/home/core'))).mode & 0o7777).toBe(0o755);
    expect((await stat(fake.path('/home/core/.ssh/authorized_keys.d/ignition'))).mode & 0o7777).toBe(0o600);
  });

  it('is another one of the host where the worker is told so, and must exist', async () => {
    const fake = await fakeHost();
    Object.assign(fake, { host: { ...fake.host, sshAccount: 'boot' } });
    await bring(fake, rendered('r1', keys('a 1')));
    expect(await fake.text('/home/boot/.ssh/authorized_keys.d/ignition')).toBe('a 1\n');
    await expect(stat(fake.path('/home/core/.ssh'))).rejects.toThrow('ENOENT');
    Object.assign(fake, { host: { ...fake.host, sshAccount: 'nobody-here' } });
    await expect(planTo(fake, rendered('r2', keys('a 1')))).rejects.toThrow(
      'the user nobody-here, which core stands for, does not exist on this host: create it first',
    );
  });

  it('is the only one that may be configured', async () => {
    const fake = await fakeHost();
    await expect(planTo(fake, rendered('r1', users({ name: 'alice', sshAuthorizedKeys: ['a'] })))).rejects.toThrow(
      'passwd.users[0] (alice): only the user core can be configured; remove the others',
    );
  });

  it('may have neither keys nor password', async () => {
    const fake = await fakeHost();
    expect((await planTo(fake, rendered('r1', users({ name: 'core' })))).changes).toEqual([]);
    expect(await readFile(fake.path('/etc/passwd'), 'utf8')).toContain('core');
  });
});
