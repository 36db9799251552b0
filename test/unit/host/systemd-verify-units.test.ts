import { execFileSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { runProgram, ProgramFailed } from '../../../activities/host/run-program.js';
import { verifyUnits } from '../../../activities/host/verify-units.js';

/** The targets that every unit depends on, from the machine that the test runs on. */
const VENDOR = '/usr/lib/systemd/system';
const hasSystemdAnalyze = (() => {
  try {
    return (
      Number(/^systemd (\d+)/.exec(execFileSync('systemd-analyze', ['--version'], { encoding: 'utf8' }))?.[1]) >= 250
    );
  } catch {
    return false;
  }
})();
if (!hasSystemdAnalyze)
  process.stdout.write('skipped: unit files are verified by a real systemd-analyze, version 250 or newer\n');

let root: string;

async function put(path: string, text: string, mode = 0o644): Promise<void> {
  await mkdir(dirname(join(root, path)), { recursive: true });
  await writeFile(join(root, path), text);
  await chmod(join(root, path), mode);
}

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'drydock-verify-'));
  for (const target of [
    'basic.target',
    'sysinit.target',
    'shutdown.target',
    'timers.target',
    'sockets.target',
    'multi-user.target',
  ]) {
    await put(`${VENDOR}/${target}`, '[Unit]\nDefaultDependencies=no\n');
  }
  for (const slice of ['system.slice', '-.slice']) await put(`${VENDOR}/${slice}`, '[Slice]\n');
  await put('usr/bin/true', '#!/bin/sh\n', 0o755);
  await symlink('usr/bin', join(root, 'bin'));
});
afterEach(() => rm(root, { recursive: true, force: true }));

interface Plan {
  /** Unit files and drop-ins by their path in /etc/systemd/system; undefined: will be gone. */
  readonly files?: Readonly<Record<string, string | undefined>>;
  readonly others?: readonly string[];
}

describe.skipIf(!hasSystemdAnalyze).each([
  ['below another root, as systemd 250 does', 252],
  ['before the units of the host, as older systemd does', 239],
])('units verified %s', (_, version) => {
  function verify(units: readonly string[], { files = {}, others = [] }: Plan) {
    const planned = new Map(
      Object.entries(files).map(([name, text]) => [
        `/etc/systemd/system/${name}`,
        text === undefined ? undefined : Buffer.from(text),
      ]),
    );
    return verifyUnits(units, { files: planned, others: new Set(others) }, { root, run: runProgram, version });
  }

  test('a good unit is found good', async () => {
    const files = { 'good.service': '[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n' };
    expect(await verify(['good.service'], { files })).toEqual({ errors: [], warnings: [] });
  });

  test('an unknown key and an unknown section are warnings, with file and line', async () => {
    const files = { 'odd.service': '[Service]\nExecStart=/bin/true\nColour=red\n[Paint]\nx=y\n' };
    const { errors, warnings } = await verify(['odd.service'], { files });
    expect(errors).toEqual([]);
    expect(warnings).toEqual([
      expect.stringMatching(/^odd\.service: \/etc\/systemd\/system\/odd\.service line 3: Unknown .*Colour/),
      expect.stringMatching(/^odd\.service: \/etc\/systemd\/system\/odd\.service line 4: Unknown section 'Paint'/),
    ]);
  });

  test('a value that systemd does not take is a warning that names the key and hides the value', async () => {
    const files = { 'odd.service': '[Service]\nExecStart=/bin/true\nUMask=pa55word\nEnvironment=pa55word\n' };
    const { errors, warnings } = await verify(['odd.service'], { files });
    expect(errors).toEqual([]);
    expect(warnings).toContain(
      'odd.service: /etc/systemd/system/odd.service line 3: the value of UMask= is not understood and has no effect',
    );
    expect(warnings.join()).not.toContain('pa55word');
  });

  test('a service without anything to start is an error', async () => {
    const { errors } = await verify(['empty.service'], { files: { 'empty.service': '[Service]\nType=oneshot\n' } });
    expect(errors[0]).toMatch(/^empty\.service: Service has no ExecStart=/);
  });

  test('a file that is no unit file is an error that names the line', async () => {
    const { errors } = await verify(['bad.service'], { files: { 'bad.service': '[Service\nExecStart=/bin/true\n' } });
    expect(errors).toContain('bad.service: /etc/systemd/system/bad.service line 1 is no section header');
  });

  test('a program that neither host nor update has is an error', async () => {
    const files = { 'p.service': '[Service]\nExecStart=/usr/local/bin/drydock-no-such --flag\n' };
    expect(await verify(['p.service'], { files })).toEqual({
      errors: ['p.service: there is no program /usr/local/bin/drydock-no-such'],
      warnings: [],
    });
  });

  test('a program that comes with the same config is no error, also where a link is among its parents', async () => {
    const files = {
      'p.service': '[Service]\nExecStart=/bin/drydock-no-such\nExecStartPre=/usr/local/bin/drydock-none\n',
    };
    const others = ['/usr/bin/drydock-no-such', '/usr/local/bin/drydock-none'];
    expect(await verify(['p.service'], { files, others })).toEqual({ errors: [], warnings: [] });
  });

  test('a template is verified as an instance, and an instance by its template', async () => {
    const files = {
      't@.service': '[Service]\nExecStart=/usr/local/bin/drydock-no-such %i\n',
      'u@.service': '[Service]\nExecStart=/usr/local/bin/drydock-none %i\n',
    };
    expect((await verify(['t@.service'], { files })).errors).toEqual([
      't@.service: there is no program /usr/local/bin/drydock-no-such',
    ]);
    expect((await verify(['u@one.service'], { files })).errors).toEqual([
      'u@one.service: there is no program /usr/local/bin/drydock-none',
    ]);
  });

  test('a drop-in is verified with the unit of the host, whose own oddities are not told', async () => {
    await put(`${VENDOR}/vendor.service`, '[Service]\nExecStart=/usr/bin/true\nOwnOddity=1\n');
    const files = {
      'vendor.service.d/10.conf': '[Service]\nExecStart=\nExecStart=/usr/local/bin/drydock-no-such\nColour=red\n',
    };
    const { errors, warnings } = await verify(['vendor.service'], { files });
    expect(errors).toEqual(['vendor.service: there is no program /usr/local/bin/drydock-no-such']);
    expect(warnings).toEqual([expect.stringMatching(/^vendor\.service: .*10\.conf line 4: Unknown .*Colour/)]);
  });

  test('a drop-in that goes is not seen any more', async () => {
    await put(`${VENDOR}/vendor.service`, '[Service]\nExecStart=/usr/bin/true\n');
    await put('etc/systemd/system/vendor.service.d/10.conf', '[Service]\nExecStart=\n');
    // Old systemd looks at the host that it runs on; here the drop-in stands for what is planned to go.
    const { errors } = await verify(['vendor.service'], { files: { 'vendor.service.d/10.conf': undefined } });
    expect(errors).toEqual([]);
  });

  test('a mask and a unit that goes are nothing to verify', async () => {
    await mkdir(join(root, 'etc/systemd/system'), { recursive: true });
    await symlink('/dev/null', join(root, 'etc/systemd/system/masked.service'));
    await put('etc/systemd/system/old.service', '[Service]\n');
    const plan = { files: { 'old.service': undefined } };
    expect(await verify(['masked.service', 'old.service', 'nowhere.service'], plan)).toEqual({
      errors: [],
      warnings: [],
    });
  });

  test('a timer or path without the unit that it starts is a warning, and with it none', async () => {
    const timer = { 'a.timer': '[Timer]\nOnCalendar=daily\n', 'b.path': '[Path]\nPathExists=/run/x\nUnit=c.service\n' };
    expect(await verify(['a.timer', 'b.path'], { files: timer })).toEqual({
      errors: [],
      warnings: [
        'a.timer: starts a.service, which this host does not have',
        'b.path: starts c.service, which this host does not have',
      ],
    });
    const service = '[Service]\nExecStart=/bin/true\n';
    const files = { ...timer, 'a.service': service, 'c.service': service };
    expect(await verify(['a.timer', 'b.path'], { files })).toEqual({ errors: [], warnings: [] });
  });

  test('a timer with a calendar that nobody understands is an error', async () => {
    const files = { 'a.timer': '[Timer]\nOnCalendar=sometimes\n', 'a.service': '[Service]\nExecStart=/bin/true\n' };
    const { errors } = await verify(['a.timer'], { files });
    expect(errors[0]).toMatch(/^a\.timer: Timer unit lacks value setting/);
  });

  test('what is wrong with other units is not told', async () => {
    const files = { 'good.service': '[Service]\nExecStart=/bin/true\n', 'other.service': '[Service]\nColour=1\n' };
    expect(await verify(['good.service'], { files })).toEqual({ errors: [], warnings: [] });
  });

  test('nothing is left behind', async () => {
    const temporary = join(root, 'tmp');
    await mkdir(temporary);
    vi.stubEnv('TMPDIR', temporary);
    onTestFinished(() => void vi.unstubAllEnvs());
    await verify(['good.service'], { files: { 'good.service': '[Service]\nExecStart=/bin/true\n' } });
    expect(await readdir(temporary)).toEqual([]);
  });
});

describe.skipIf(!hasSystemdAnalyze)('units that need others', () => {
  const verify = (files: Record<string, string>, others: string[] = []) =>
    verifyUnits(
      Object.keys(files),
      {
        files: new Map(Object.entries(files).map(([name, text]) => [`/etc/systemd/system/${name}`, Buffer.from(text)])),
        others: new Set(others),
      },
      { root, run: runProgram, version: 252 },
    );
  const needs = '[Unit]\nRequires=needed.service\nAfter=needed.service\n[Service]\nExecStart=/bin/true\n';

  test('one that requires a unit which does not exist is an error', async () => {
    expect((await verify({ 'a.service': needs })).errors[0]).toMatch(/^a\.service: .*Unit needed\.service not found/);
  });

  test('which a generator may make of a file of the same config is a warning', async () => {
    const { errors, warnings } = await verify({ 'a.service': needs }, ['/etc/containers/systemd/needed.container']);
    expect(errors).toEqual([]);
    expect(warnings[0]).toMatch(/needed\.service not found/);
  });

  test('which a generator has made on this host is there', async () => {
    await put('run/systemd/generator/needed.service', '[Service]\nExecStart=/bin/true\n');
    expect(await verify({ 'a.service': needs })).toEqual({ errors: [], warnings: [] });
  });

  test('units that wait for each other in a circle are an error', async () => {
    const circle = (other: string) => `[Unit]\nRequires=${other}\nAfter=${other}\n[Service]\nExecStart=/bin/true\n`;
    const { errors } = await verify({ 'a.service': circle('b.service'), 'b.service': circle('a.service') });
    expect(errors.join()).toContain('ordering cycle');
  });
});

test('a host without systemd-analyze has its units unverified, and says so', async () => {
  const run = () => Promise.reject(new ProgramFailed('systemd-analyze: no such program', { isMissing: true }));
  const planned = {
    files: new Map([['/etc/systemd/system/a.service', Buffer.from('[Service]\n')]]),
    others: new Set<string>(),
  };
  expect(await verifyUnits(['a.service'], planned, { root, run })).toEqual({
    errors: [],
    warnings: ['the units were not verified: systemd-analyze: no such program'],
  });
});
