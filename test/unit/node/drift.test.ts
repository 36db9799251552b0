import {
  appendFile,
  chmod,
  chown,
  copyFile,
  mkdir,
  rename,
  rmdir,
  symlink,
  unlink,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import { describe, expect, it, vi } from 'vitest';
import { FORCE_FILE } from '../../../activities/host/force.js';
import { withHostLock } from '../../../activities/host/lock.js';
import { DRYDOCK_ANNOTATIONS } from '../../../machine-config/api/flavour.js';
import { driftingNode, KEYS } from '../../support/drifting-node.js';
import { file, rendered, treeOf } from '../../support/fake-host.js';
import { Gate } from '../../support/gate.js';
import { PATIENCE } from '../../support/patience.js';

const isRoot = process.geteuid?.() === 0;
const UNIT = '[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n';
const UNITS = '/etc/systemd/system';
const WANTS = `${UNITS}/multi-user.target.wants`;
const KEY = 'ssh-ed25519 AAAA admin';

/** Something of every kind that is managed. */
const EVERYTHING = {
  storage: {
    files: [
      file('/etc/app/plain.conf', 'one\n', { mode: 0o640 }),
      file('/etc/app/second.conf', 'two\n'),
      {
        path: '/etc/app/packed.conf',
        contents: {
          source: `data:;base64,${gzipSync('packed\n').toString('base64')}`,
          compression: 'gzip',
        },
      },
    ],
  },
  systemd: {
    units: [
      {
        name: 'ours.service',
        enabled: true,
        contents: UNIT,
        dropins: [{ name: '10-ours.conf', contents: '[Unit]\n' }],
      },
      { name: 'off.service', enabled: false, contents: UNIT },
      { name: 'masked.service', mask: true, contents: UNIT },
      { name: 'pool@.service', contents: UNIT },
      { name: 'pool@one.service', enabled: true },
      { name: 'chronyd.service', dropins: [{ name: 'none.conf', contents: '' }] },
    ],
  },
  passwd: { users: [{ name: 'core', sshAuthorizedKeys: [KEY] }] },
};
const PLAIN = '/etc/app/plain.conf';
const SECOND = '/etc/app/second.conf';
const node = () => driftingNode(EVERYTHING, { kernelArguments: ['quiet'] });
type Drifting = Awaited<ReturnType<typeof node>>;

/** What is done to the disk, what the reason has to say of it, and how it is put back. */
type Case = readonly [name: string, words: readonly string[], spoil: Act, mend: Act];
type Act = (test: Drifting) => Promise<unknown>;
const at = (test: Drifting, path: string) => test.fake.path(path);
const put =
  (path: string, text: string): Act =>
  (test) =>
    writeFile(at(test, path), text);
const remove =
  (path: string): Act =>
  (test) =>
    unlink(at(test, path));
const mode =
  (path: string, bits: number): Act =>
  (test) =>
    chmod(at(test, path), bits);
const link =
  (path: string, target: string): Act =>
  (test) =>
    symlink(target, at(test, path));
const move =
  (from: string, to: string): Act =>
  (test) =>
    rename(at(test, from), at(test, to));
const both =
  (...acts: Act[]): Act =>
  async (test) => {
    for (const act of acts) await act(test);
  };
const KEYS_FILE = '/home/core/.ssh/authorized_keys.d/ignition';
const ARGUMENTS = '/var/lib/drydock-lab/kernel-arguments';

const CASES: readonly Case[] = [
  ['contents of a file', [PLAIN, 'other contents'], put(PLAIN, 'ONE\n'), put(PLAIN, 'one\n')],
  ['a file that is gone', [PLAIN, 'found nothing'], move(PLAIN, `${PLAIN}.away`), move(`${PLAIN}.away`, PLAIN)],
  ['mode', [PLAIN, 'expected mode 0640, found 0400'], mode(PLAIN, 0o400), mode(PLAIN, 0o640)],
  ['a bit for other users’ rights', [PLAIN, 'found 4640'], mode(PLAIN, 0o4640), mode(PLAIN, 0o640)],
  [
    'contents of a packed file',
    ['/etc/app/packed.conf', 'other contents'],
    put('/etc/app/packed.conf', 'x'),
    put('/etc/app/packed.conf', 'packed\n'),
  ],
  [
    'a folder in the place of a file',
    [PLAIN, 'expected a file, found a directory'],
    both(move(PLAIN, '/etc/kept'), (test) => mkdir(at(test, PLAIN))),
    both((test) => rmdir(at(test, PLAIN)), move('/etc/kept', PLAIN)),
  ],
  [
    'a link to an equal file in the place of a file',
    [PLAIN, 'expected a file, found a link'],
    both(move(PLAIN, '/etc/kept'), link(PLAIN, '/etc/kept')),
    both(remove(PLAIN), move('/etc/kept', PLAIN)),
  ],
  [
    'a parent folder that is moved away',
    [PLAIN, SECOND, 'found nothing'],
    move('/etc/app', '/etc/away'),
    move('/etc/away', '/etc/app'),
  ],
  [
    'a file in the place of a parent folder',
    [PLAIN, '/etc/app is not a directory'],
    both(move('/etc/app', '/etc/away'), put('/etc/app', '')),
    both(remove('/etc/app'), move('/etc/away', '/etc/app')),
  ],
  [
    'a unit',
    [`${UNITS}/ours.service`, 'contents'],
    put(`${UNITS}/ours.service`, ''),
    put(`${UNITS}/ours.service`, UNIT),
  ],
  [
    'a template',
    [`${UNITS}/pool@.service`, 'contents'],
    put(`${UNITS}/pool@.service`, ''),
    put(`${UNITS}/pool@.service`, UNIT),
  ],
  [
    'a drop-in',
    ['10-ours.conf', 'other contents'],
    put(`${UNITS}/ours.service.d/10-ours.conf`, '[Unit]\nAfter=x\n'),
    put(`${UNITS}/ours.service.d/10-ours.conf`, '[Unit]\n'),
  ],
  [
    'a drop-in that must not be there',
    ['none.conf', 'expected nothing'],
    both((test) => mkdir(at(test, `${UNITS}/chronyd.service.d`)), put(`${UNITS}/chronyd.service.d/none.conf`, 'x')),
    remove(`${UNITS}/chronyd.service.d/none.conf`),
  ],
  [
    'a unit that is disabled',
    ['ours.service', 'expected enabled, found disabled'],
    remove(`${WANTS}/ours.service`),
    link(`${WANTS}/ours.service`, '../ours.service'),
  ],
  [
    'an instance that is disabled',
    ['pool@one.service', 'expected enabled'],
    remove(`${WANTS}/pool@one.service`),
    link(`${WANTS}/pool@one.service`, '../pool@.service'),
  ],
  [
    'a unit that is enabled',
    ['off.service', 'expected disabled, found enabled'],
    link(`${WANTS}/off.service`, '../off.service'),
    remove(`${WANTS}/off.service`),
  ],
  [
    'a mask that is gone',
    [`${UNITS}/masked.service`, 'found nothing'],
    remove(`${UNITS}/masked.service`),
    link(`${UNITS}/masked.service`, '/dev/null'),
  ],
  [
    'a mask that leads elsewhere',
    [`${UNITS}/masked.service`, 'expected a link to /dev/null, found one to /etc/motd'],
    both(remove(`${UNITS}/masked.service`), link(`${UNITS}/masked.service`, '/etc/motd')),
    both(remove(`${UNITS}/masked.service`), link(`${UNITS}/masked.service`, '/dev/null')),
  ],
  [
    'a unit that is masked',
    ['off.service', 'expected a file, found a link'],
    both(remove(`${UNITS}/off.service`), link(`${UNITS}/off.service`, '/dev/null')),
    both(remove(`${UNITS}/off.service`), put(`${UNITS}/off.service`, UNIT)),
  ],
  ['SSH keys', [KEYS_FILE, 'other contents'], put(KEYS_FILE, ''), put(KEYS_FILE, `${KEY}\n`)],
  [
    'the folder of SSH keys',
    ['/home/core/.ssh', 'expected mode 0700, found 0777'],
    mode('/home/core/.ssh', 0o777),
    mode('/home/core/.ssh', 0o700),
  ],
  [
    'an account that is gone',
    ['passwd', 'core'],
    move('/etc/passwd', '/etc/passwd.away'),
    move('/etc/passwd.away', '/etc/passwd'),
  ],
];

describe('drift in', () => {
  it.each(CASES)('%s degrades the node at the change, and mended the node is well', async (_, words, spoil, mend) => {
    const test = await node();
    await test.monitor();
    await spoil(test);
    const spoilt = await treeOf(test.fake.root, ['/var/lib/drydock']);
    await test.degraded(test.config.metadata.name, ...words);
    expect([...test.drifts.values()]).toContain(1);
    expect(await treeOf(test.fake.root, ['/var/lib/drydock'])).toEqual(spoilt);
    expect(await test.events()).toMatchObject([{ type: 'Warning', reason: 'ConfigDriftDetected' }]);
    await mend(test);
    await test.recovered();
    expect([...test.drifts.values()]).not.toContain(1);
    const told = (await test.events()).map(({ reason }) => reason).sort();
    expect(told).toEqual(['ConfigDriftDetected', 'ConfigDriftResolved']);
    expect(test.fake.reboots).toEqual([]);
  });

  it.runIf(isRoot)('the owner degrades the node, and mended the node is well', async () => {
    const test = await node();
    await test.monitor();
    await chown(test.fake.path(PLAIN), 1000, 0);
    await test.degraded(PLAIN, 'expected owner 0:0, found 1000:0');
    await chown(test.fake.path(PLAIN), 0, 0);
    await chmod(test.fake.path(PLAIN), 0o640);
    await test.recovered();
  });

  it('staged kernel arguments, which nothing watches here, is found by a scan', async () => {
    const test = await node();
    const monitor = await test.monitor();
    await put(ARGUMENTS, 'quiet\nsplash\n')(test);
    await monitor.check();
    await test.degraded('/proc/cmdline', 'splash');
    await put(ARGUMENTS, 'quiet\n')(test);
    await monitor.check();
    await test.recovered();
  });

  it('what no event tells of is found by the scan on the timer', async () => {
    const test = await node();
    await test.monitor({ scanSeconds: 0.05 });
    await put(ARGUMENTS, '')(test);
    await test.degraded('/proc/cmdline');
  });

  it('what happened before the start is found at the start, and so is its end', async () => {
    const test = await node();
    await put(PLAIN, 'x')(test);
    const first = await test.monitor();
    await test.degraded(PLAIN);
    await first.stop();
    await put(PLAIN, 'one\n')(test);
    await test.monitor();
    await test.recovered();
  });
});

describe('what is no drift', () => {
  const EDITORS: readonly [string, Act][] = [
    ['touch', (test) => utimes(at(test, PLAIN), 1, 1)],
    ['a write of what is there already', put(PLAIN, 'one\n')],
    ['the same by a file beside it and a rename', both(put('/etc/app/.new', 'one\n'), mode('/etc/app/.new', 0o640), move('/etc/app/.new', PLAIN))],
    ['a backup beside the file', (test) => copyFile(at(test, PLAIN), at(test, `${PLAIN}~`))],
    ['an editor that moves the old file away and writes a new one', both(move(PLAIN, `${PLAIN}~`), put(PLAIN, 'one\n'), mode(PLAIN, 0o640))],
    ['another file in the same folder', put('/etc/app/foreign', 'x')],
    ['a unit of somebody else that is enabled', both(put(`${UNITS}/other.service`, UNIT), link(`${WANTS}/other.service`, '../other.service'))],
  ]; // prettier-ignore

  it.each(EDITORS)('%s leaves the node Done', async (_, act) => {
    const test = await node();
    const monitor = await test.monitor();
    const writes = vi.fn();
    test.cluster.intercept(({ verb }) => {
      if (verb === 'patch') writes();
    });
    await act(test);
    await monitor.check();
    // What comes after it is found: by then it has been looked at.
    await put(SECOND, 'x')(test);
    expect(await test.degraded(SECOND)).not.toContain(PLAIN);
    expect(writes).toHaveBeenCalledTimes(1);
  });
});

describe('a node that has drifted', () => {
  it('names the latest drift, and a look of everything that differs', async () => {
    const test = await node();
    await test.monitor();
    await put(PLAIN, 'x')(test);
    await test.degraded(PLAIN);
    await put(PLAIN, 'one\n')(test);
    await test.recovered();
    await put(SECOND, 'y')(test);
    expect(await test.degraded(SECOND)).not.toContain(PLAIN);
    await put(PLAIN, 'x')(test);
    await test.degraded(PLAIN, SECOND);
    await put(SECOND, 'two\n')(test);
    await vi.waitFor(() => expect(test.annotations()[KEYS.reason]).not.toContain(SECOND), PATIENCE);
    await test.degraded(PLAIN);
    expect(Object.fromEntries(test.drifts)).toEqual({ [`${PLAIN} contents`]: 1, [`${SECOND} contents`]: 0 });
  });

  it('never tells contents, in at most 2,000 characters', async () => {
    const files = Array.from({ length: 60 }, (_, index) => file(`/etc/app/${'long'.repeat(40)}-${index}`, 'secret'));
    const test = await driftingNode({ storage: { files } });
    await test.monitor();
    await rename(test.fake.path('/etc/app'), test.fake.path('/etc/away'));
    const reason = await test.degraded('found nothing', 'put it back as declared');
    expect(reason.length).toBeLessThanOrEqual(2_000);
    const [event] = await test.events();
    expect(event?.message.length).toBeLessThanOrEqual(1_024);
    await rename(test.fake.path('/etc/away'), test.fake.path('/etc/app'));
    await test.recovered();
    await writeFile(test.fake.path(`/etc/app/${'long'.repeat(40)}-7`), 'a SECRET of ours');
    await test.degraded('other contents');
    const said = JSON.stringify([test.annotations(), await test.events(), test.logger.warn.mock.calls]);
    expect(said).not.toMatch(/SECRET|secret/);
  });

  it('is told by one Event, however often it is looked at', async () => {
    const test = await node();
    const monitor = await test.monitor();
    await put(PLAIN, 'x')(test);
    await test.degraded(PLAIN);
    for (let times = 0; times < 3; times++) await monitor.check();
    await put(PLAIN, 'y')(test);
    await monitor.check();
    expect(await test.events()).toMatchObject([{ reason: 'ConfigDriftDetected', count: 1 }]);
  });

  it('is told again although the API was away, once it is back', async () => {
    const test = await node();
    await test.monitor();
    let isAway = true;
    test.cluster.intercept(() => {
      if (isAway) throw new Error('away');
    });
    await put(PLAIN, 'x')(test);
    await vi.waitFor(() => expect(test.logger.warn).toHaveBeenCalled(), PATIENCE);
    expect(Object.fromEntries(test.drifts)).toEqual({ [`${PLAIN} contents`]: 1 });
    expect(test.annotations()[KEYS.state]).toBe('Done');
    isAway = false;
    await test.degraded(PLAIN);
  });

  it('says so again when somebody made the Node say something else', async () => {
    const test = await node();
    const monitor = await test.monitor();
    await put(PLAIN, 'x')(test);
    await test.degraded(PLAIN);
    await test.annotate({ [KEYS.state]: 'Done', [KEYS.reason]: '' });
    await monitor.check();
    await test.degraded(PLAIN);
  });

  it('whose update failed keeps that as its reason, and is told by Event and metric', async () => {
    const test = await node();
    const failure = JSON.stringify({ target: 'rendered-worker-2', attempts: 1, at: '2026-11-30T11:00:00Z' });
    const failed = {
      [KEYS.state]: 'Degraded',
      [KEYS.reason]: 'it failed',
      [DRYDOCK_ANNOTATIONS.failure]: failure,
      [KEYS.desiredConfig]: 'rendered-worker-2',
    };
    await test.annotate(failed);
    const monitor = await test.monitor();
    await put(PLAIN, 'x')(test);
    await vi.waitFor(async () => expect(await test.events()).toHaveLength(1), PATIENCE);
    await monitor.check();
    expect(test.annotations()).toMatchObject(failed);
    expect(await test.events()).toMatchObject([{ reason: 'ConfigDriftDetected', count: 1 }]);
    await put(PLAIN, 'one\n')(test);
    await vi.waitFor(() => expect(test.drifts.get(`${PLAIN} contents`)).toBe(0), PATIENCE);
    await monitor.check();
    expect(test.annotations()).toMatchObject(failed);
  });

  it('forgets that an update was refused for it once it is mended, so that the update is tried at once', async () => {
    const test = await node();
    await put(PLAIN, 'x')(test);
    const refused = { target: 'rendered-worker-2', attempts: 1, at: '2026-11-30T11:59:00Z', code: 'Drifted' };
    await test.annotate({ [KEYS.state]: 'Degraded', [DRYDOCK_ANNOTATIONS.failure]: JSON.stringify(refused) });
    await test.monitor();
    await test.degraded(PLAIN);
    await put(PLAIN, 'one\n')(test);
    await test.recovered();
    expect(test.annotations()[DRYDOCK_ANNOTATIONS.failure]).toBeUndefined();
  });

  it('in the middle of being prepared goes on Working when it is mended', async () => {
    const test = await node();
    await test.annotate({ [KEYS.state]: 'Working', [KEYS.desiredConfig]: 'rendered-worker-2' });
    await test.monitor();
    await put(PLAIN, 'x')(test);
    await test.degraded(PLAIN);
    await put(PLAIN, 'one\n')(test);
    await vi.waitFor(() => expect(test.annotations()).toMatchObject({ [KEYS.state]: 'Working', [KEYS.reason]: '' }), {
      ...PATIENCE,
    });
  });
});

describe('an update', () => {
  it('that is open is not taken for drift; what it leaves behind is compared with the new config', async () => {
    const test = await node();
    const monitor = await test.monitor();
    const next = rendered('rendered-worker-2', { storage: { files: [file('/etc/next', 'new')] } });
    const patches = vi.fn();
    test.cluster.intercept(({ verb }) => {
      if (verb === 'patch') patches();
    });
    await test.bring(next);
    await writeFile(test.fake.path('/etc/next'), 'spoilt while it was open');
    await monitor.check();
    expect(patches).not.toHaveBeenCalled();
    expect([...test.drifts.values()]).not.toContain(1);
    await test.annotate(test.done('rendered-worker-2'));
    await test.fake.store.removeJournal();
    // Not one of the old config's paths, which are all gone.
    expect(await test.degraded('rendered-worker-2', '/etc/next')).not.toContain('/etc/app');
    await writeFile(test.fake.path('/etc/next'), 'new');
    await test.recovered();
  });

  it('that holds the host is waited for', async () => {
    const test = await node();
    await test.monitor();
    const gate = new Gate();
    const holding = withHostLock(test.fake.host, 'a step', () => gate.wait());
    await gate.reached;
    await put(PLAIN, 'x')(test);
    await vi.waitFor(() => expect(test.drifts.get(`${PLAIN} contents`)).toBe(1), PATIENCE);
    expect(test.annotations()[KEYS.state]).toBe('Done');
    gate.open();
    await holding;
    await test.degraded(PLAIN);
  });

  it.each(['get', 'patch'])('that begins before the %s of the Node is seen, and nothing is said', async (before) => {
    const test = await node();
    await test.monitor();
    const next = rendered('rendered-worker-2', { storage: { files: [file(SECOND, 'x')] } });
    let hasBegun = false;
    test.cluster.intercept(async ({ verb, identity }) => {
      if (verb !== before || identity === 'admin' || hasBegun) return;
      hasBegun = true;
      await test.annotate({ [DRYDOCK_ANNOTATIONS.applying]: 'rendered-worker-2' });
      await writeFile(test.fake.path(SECOND), 'two\n');
      await test.bring(next);
    });
    await put(SECOND, 'x')(test);
    await vi.waitFor(async () => expect(await test.fake.store.journal()).toBeDefined(), PATIENCE);
    const monitor = await test.monitor();
    await monitor.check();
    expect(test.annotations()[KEYS.state]).toBe('Done');
  });
});

describe('the force file', () => {
  const force = (test: Drifting) => test.annotations()[DRYDOCK_ANNOTATIONS.force];

  it('on a drifted node asks once for the config to be applied again, and no more when it goes', async () => {
    const test = await node();
    await test.monitor();
    await put(PLAIN, 'x')(test);
    await test.degraded(PLAIN);
    expect(force(test)).toBeUndefined();
    await put(FORCE_FILE, '')(test);
    await vi.waitFor(() => expect(force(test)).toBe(test.bootId), PATIENCE);
    await remove(FORCE_FILE)(test);
    await vi.waitFor(() => expect(force(test)).toBeUndefined(), PATIENCE);
    await test.degraded(PLAIN);
  });

  it('that is there before the drift counts as well, in the same write', async () => {
    const test = await node();
    await put(FORCE_FILE, '')(test);
    await test.monitor();
    expect(force(test)).toBeUndefined();
    await put(PLAIN, 'x')(test);
    await test.degraded(PLAIN);
    expect(force(test)).toBe(test.bootId);
  });

  it('on a node whose update failed asks for it, too', async () => {
    const test = await node();
    const failure = JSON.stringify({ target: 'rendered-worker-2', attempts: 1, at: '2026-11-30T11:00:00Z' });
    await test.annotate({ [KEYS.state]: 'Degraded', [DRYDOCK_ANNOTATIONS.failure]: failure });
    await test.monitor();
    await put(FORCE_FILE, '')(test);
    await vi.waitFor(() => expect(force(test)).toBe(test.bootId), PATIENCE);
  });

  it('stays asked for while the forced update is open, which consumes the file', async () => {
    const test = await node();
    const monitor = await test.monitor();
    await put(PLAIN, 'x')(test);
    await put(FORCE_FILE, '')(test);
    await vi.waitFor(() => expect(force(test)).toBe(test.bootId), PATIENCE);
    await test.bring(test.config);
    await remove(FORCE_FILE)(test);
    await monitor.check();
    expect(force(test)).toBe(test.bootId);
  });
});

describe('a storm of changes', () => {
  it('of 10,000 neither stalls the event loop nor keeps drift from being found', async () => {
    const test = await node();
    await test.monitor();
    let isOver = false;
    const storm = (async () => {
      for (let index = 0; index < 5_000; index++) {
        await appendFile(test.fake.path(SECOND), 'x');
        await writeFile(test.fake.path(SECOND), 'two\n');
      }
      isOver = true;
    })();
    await put(PLAIN, 'x')(test);
    await test.degraded(PLAIN);
    expect(isOver).toBe(false);
    await storm;
    await put(PLAIN, 'one\n')(test);
    await test.recovered();
  }, 60_000);

  it('that never comes to rest is looked at all the same', async () => {
    const test = await node();
    await test.monitor({ pace: { quiet: 60_000, longestQuiet: 20, rest: 0 } });
    await put(PLAIN, 'x')(test);
    await test.degraded(PLAIN);
  });

  it('is one more look when the rest after the last one is over', async () => {
    const test = await node();
    const looked = vi.spyOn(test.deps.metrics!, 'looked');
    const monitor = await test.monitor({ pace: { quiet: 0, longestQuiet: 0, rest: 60_000 } });
    looked.mockClear();
    for (let times = 0; times < 20; times++) {
      await utimes(test.fake.path(PLAIN), times, times);
      // Long enough for one that would not rest.
      await treeOf(test.fake.path('/etc'));
    }
    expect(looked).not.toHaveBeenCalled();
    await monitor.check();
    expect(looked).toHaveBeenCalled();
  });

  it('that changes nothing in the end costs the API nothing', async () => {
    const test = await node();
    const looked = vi.spyOn(test.deps.metrics!, 'looked');
    await test.monitor();
    await put(PLAIN, 'x')(test);
    await test.degraded(PLAIN);
    await test.events();
    const calls = vi.fn();
    test.cluster.intercept(({ verb, identity }) => {
      if (identity !== 'admin') calls(verb);
    });
    for (let times = 0; times < 3; times++) {
      looked.mockClear();
      await utimes(test.fake.path(PLAIN), times, times);
      await vi.waitFor(() => expect(looked).toHaveBeenCalled(), PATIENCE);
    }
    expect(calls).not.toHaveBeenCalled();
  });
});

describe('the end', () => {
  it('comes by the signal as by stop, and lets nobody wait', async () => {
    const test = await node();
    const monitor = await test.monitor();
    const asked = monitor.check();
    test.end();
    await asked;
    await monitor.stop();
    await monitor.check();
    await put(PLAIN, 'x')(test);
    await monitor.check();
    expect(test.annotations()[KEYS.state]).toBe('Done');
  });
});
