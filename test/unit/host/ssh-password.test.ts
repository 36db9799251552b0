import { chmod, link, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { applyPlan } from '../../../activities/host/apply.js';
import { planUpdate } from '../../../activities/host/plan.js';
import { hashRefusal, holdingShadowLock } from '../../../activities/host/shadow.js';
import { recover } from '../../../activities/host/undo.js';
import { verifyHost } from '../../../activities/host/verify.js';
import type { MachineConfig } from '../../../machine-config/api/machine-config.js';
import { fakeHost, rendered, treeOf, type FakeHost } from '../../support/fake-host.js';
import { PATIENCE } from '../../support/patience.js';

const NOW = '2026-11-30T12:00:00.000Z';
const SHADOW = '/etc/shadow';
const HASH = '$6$saltsalt$Jq1gWb0d4y2nDoA4S5r8bQkqE0o3T5C6uVwXyZ1234567890abcdefghijklmnopqrstuvwxyz';
const OTHER_HASH = '$y$j9T$F5Jx5fExrKuPp53xLKQ..1$X3DX6M94c7o.9agCG9G317fhZg9SqC.5i5rd.RhAtQ7';
const BEFORE = `root:*:19700:0:99999:7:::\ncore:!:19700:0:99999:7:::\nalice:$6$alice$alicealicealicealice:19701:0:99999:7:::\n`;
const withHash = (passwordHash: string | undefined, more: object = {}) =>
  rendered('r', {
    passwd: { users: [{ name: 'core', ...(passwordHash === undefined ? {} : { passwordHash }), ...more }] },
  });

async function host(shadow = BEFORE): Promise<FakeHost> {
  const fake = await fakeHost();
  await writeFile(fake.path(SHADOW), shadow);
  await chmod(fake.path(SHADOW), 0o640);
  return fake;
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

const line = async (fake: FakeHost, name: string) =>
  (await fake.text(SHADOW)).split('\n').find((candidate) => candidate.startsWith(`${name}:`));

/** All that Drydock keeps on the host, as text. */
async function memoryOf(fake: FakeHost): Promise<string> {
  const tree = await treeOf(fake.path('/var/lib/drydock'));
  return Object.values(tree).join('\n');
}

describe('the password of the one user', () => {
  it('is set in its line alone, with the day of the change, and the file keeps its mode', async () => {
    const fake = await host();
    await bring(fake, withHash(HASH));
    const [, hash, day, ...rest] = (await line(fake, 'core'))!.split(':');
    expect(hash).toBe(HASH);
    expect(Number(day)).toBeGreaterThan(20_000);
    expect(rest.join(':')).toBe('0:99999:7:::');
    expect(await line(fake, 'alice')).toBe('alice:$6$alice$alicealicealicealice:19701:0:99999:7:::');
    expect((await stat(fake.path(SHADOW))).mode & 0o777).toBe(0o640);
    expect((await readdir(fake.path('/etc'))).filter((name) => name.includes('shadow'))).toEqual(['shadow']);
  });

  it('is the old one again, with its day, when no config sets it any more', async () => {
    const fake = await host();
    await bring(fake, withHash(HASH));
    await bring(fake, withHash(OTHER_HASH));
    expect(await line(fake, 'core')).toContain(OTHER_HASH);
    await bring(fake, withHash(undefined));
    expect(await fake.text(SHADOW)).toBe(BEFORE);
  });

  it('is locked, never empty, where there was none before', async () => {
    const fake = await host(BEFORE.replace('core:!:', 'core::'));
    await bring(fake, withHash(HASH));
    await bring(fake, withHash(undefined));
    expect(await line(fake, 'core')).toBe('core:*:19700:0:99999:7:::');
  });

  it('is locked where another program had set the one of the old config', async () => {
    const fake = await host(BEFORE.replace('core:!:', `core:${HASH}:`));
    const { store, host: machine } = fake;
    const plan = await planUpdate({
      host: machine,
      store,
      current: withHash(HASH),
      target: withHash(undefined),
      sshUser: 'core',
    });
    await applyPlan({ host: machine, store, plan, from: 'before', now: NOW });
    expect(await line(fake, 'core')).toBe('core:*::0:99999:7:::');
  });

  it('is not touched while it is the same, in the next update neither', async () => {
    const fake = await host(BEFORE.replace('core:!:', `core:${HASH}:`));
    const before = await stat(fake.path(SHADOW));
    const plan = await bring(fake, withHash(HASH));
    expect(plan.changes.map(({ path }) => path)).not.toContain(SHADOW);
    await bring(
      fake,
      rendered('r2', { passwd: withHash(HASH).spec?.config?.passwd, storage: { files: [{ path: '/etc/x' }] } }),
    );
    expect(await stat(fake.path(SHADOW))).toMatchObject({ ino: before.ino, mtimeMs: before.mtimeMs });
  });

  it('costs the node nothing and is named without being told', async () => {
    const fake = await host();
    const plan = await planTo(fake, withHash(HASH));
    expect(plan.cost).toBe('none');
    expect(plan.changes.map(({ where }) => where)).toContain('passwd.users (core).passwordHash');
    await bring(fake, withHash(HASH));
    expect(fake.steps.join('\n')).not.toContain('$6$');
  });

  it('drifts when somebody sets another one, which is told without the hash', async () => {
    const fake = await host();
    const config = withHash(HASH);
    await bring(fake, config);
    const verify = () => verifyHost(config, { host: fake.host, sshUser: 'core', booted: false });
    expect(await verify()).toEqual([]);
    await writeFile(fake.path(SHADOW), (await fake.text(SHADOW)).replace(HASH, OTHER_HASH));
    expect(await verify()).toEqual([{ path: SHADOW, kind: 'contents', words: 'the password of core is another one' }]);
    await writeFile(fake.path(SHADOW), BEFORE.replace(/^core.*\n/m, ''));
    expect(await verify()).toMatchObject([{ path: SHADOW, kind: 'missing' }]);
  });

  it('comes back after a crash, and the password that somebody else set meanwhile stays', async () => {
    const fake = await host();
    const { host: machine, store } = fake;
    const plan = await planTo(fake, withHash(HASH));
    let died = false;
    fake.onStep = (step) => {
      if (step !== 'closing the change' || died) return;
      died = true;
      return new Promise(() => undefined);
    };
    void applyPlan({ host: machine, store, plan, from: 'before', now: NOW });
    await expect.poll(() => died, PATIENCE).toBe(true);
    const theirs = 'alice:$6$new$newnewnewnewnewnew:20000:0:99999:7:::';
    await writeFile(fake.path(SHADOW), (await fake.text(SHADOW)).replace(/^alice.*$/m, theirs));
    expect(await recover(machine, store)).toBe('undone');
    expect(await fake.text(SHADOW)).toBe(BEFORE.replace(/^alice.*$/m, theirs));
  });

  it('is all that is kept of the file', async () => {
    const fake = await host();
    const plan = await planTo(fake, withHash(HASH));
    await applyPlan({ host: fake.host, store: fake.store, plan, from: 'before', now: NOW });
    const memory = await memoryOf(fake);
    expect(memory).toContain('core:!:19700');
    expect(memory).not.toContain('alicealice');
  });

  it('must be a hash, and the account must have a line', async () => {
    const fake = await host(BEFORE.replace(/^core.*\n/m, ''));
    await expect(planTo(fake, withHash(HASH))).rejects.toThrow(
      'passwd.users (core).passwordHash: /etc/shadow: /etc/shadow has no line for core',
    );
    await expect(planTo(fake, withHash('hunter2'))).rejects.toThrow(/is not a hash as crypt\(5\)/);
    await expect(planTo(fake, withHash('hunter2'))).rejects.not.toThrow(/hunter2/);
    for (const good of [HASH, OTHER_HASH, '*', '!', '!!', '$2b$12$abcdefghijklmnopqrstuv'])
      expect(hashRefusal(good)).toBeUndefined();
    for (const bad of ['', 'x', `${HASH}:0`, `${HASH}\n`, '$6$', 'abJnggxhB/yWI'])
      expect(hashRefusal(bad), bad).toBeDefined();
  });
});

describe('the lock of /etc/shadow', () => {
  it('is held meanwhile and given back', async () => {
    const fake = await host();
    const lock = fake.path('/etc/shadow.lock');
    const seen = await holdingShadowLock(fake.root, () => readFile(lock, 'latin1'));
    expect(seen).toBe(`${process.pid}\0`);
    await expect(stat(lock)).rejects.toThrow('ENOENT');
  });

  it('waits for a program that holds it', async () => {
    const fake = await host();
    const lock = fake.path('/etc/shadow.lock');
    await writeFile(lock, `${process.pid}`);
    let isOver = false;
    const held = holdingShadowLock(fake.root, () => Promise.resolve()).then(() => (isOver = true));
    await expect.poll(() => stat(fake.path('/etc/.shadow.drydock-lock')).then(() => true), PATIENCE).toBe(true);
    expect(isOver).toBe(false);
    await rm(lock);
    await held;
  });

  it('is taken over from a program that is gone, and from a worker that was killed', async () => {
    const fake = await host();
    const lock = fake.path('/etc/shadow.lock');
    await writeFile(lock, '4194399');
    await holdingShadowLock(fake.root, () => Promise.resolve());
    // The process id of the killed worker belongs to somebody else now.
    await writeFile(fake.path('/etc/.shadow.drydock-lock'), '1\0');
    await link(fake.path('/etc/.shadow.drydock-lock'), lock);
    await holdingShadowLock(fake.root, () => Promise.resolve());
    expect((await readdir(join(fake.root, 'etc'))).filter((name) => name.includes('shadow'))).toEqual(['shadow']);
  });
});
