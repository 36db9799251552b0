import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { localFolder } from '../../../client/local-folder.js';
import { FakeTerminal } from '../../support/command-run.js';

const ROLE = 'machineconfiguration.openshift.io/role';
const OPENSHIFT = `variant: openshift
version: 4.14.0
metadata:
  name: 99-worker-a
  labels: {${ROLE}: worker}
storage:
  files:
  - path: /etc/a
    contents: {local: a.txt}
`;
const FCOS = 'variant: fcos\nversion: 1.5.0\nstorage: {files: [{path: /etc/b, contents: {inline: b}}]}\n';

let folder: string;
let terminal: FakeTerminal;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'drydock-butane-'));
  terminal = new FakeTerminal();
});
afterEach(() => rmSync(folder, { recursive: true }));

function write(name: string, text: string): string {
  const file = join(folder, name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  return file;
}

describe('drydock butane', () => {
  test('prints the MachineConfig as YAML or JSON, with the local files that are beside the file', async () => {
    write('a.txt', 'hello');
    const file = write('a.bu', OPENSHIFT);
    const yaml = await terminal.run('butane', file);
    expect([yaml.code, yaml.err]).toEqual([0, '']);
    expect(parse(yaml.out)).toMatchObject({
      kind: 'MachineConfig',
      metadata: { name: '99-worker-a' },
      spec: { config: { storage: { files: [{ contents: { source: 'data:,hello' } }] } } },
    });
    expect(parse((await terminal.run('butane', file, '-o', 'yaml')).out)).toEqual(parse(yaml.out));
    expect(JSON.parse((await terminal.run('butane', file, '--output', 'json')).out)).toEqual(parse(yaml.out));
  });

  test('prints an Ignition config for fcos, and a MachineConfig where the role is given', async () => {
    const file = write('My_File.bu', FCOS);
    expect(parse((await terminal.run('butane', file)).out)).toMatchObject({ ignition: { version: '3.4.0' } });
    const named = await terminal.run('butane', file, '--role', 'infra');
    expect(parse(named.out)).toMatchObject({ metadata: { name: '99-infra-my-file', labels: { [ROLE]: 'infra' } } });
    const own = await terminal.run('butane', file, '--role', 'infra', '--name', '50-b');
    expect(parse(own.out)).toMatchObject({ metadata: { name: '50-b' } });
    expect(await terminal.run('butane', file, '--name', '50-b')).toMatchObject({ code: 2, out: '' });
  });

  test('takes the local files from another folder, and refuses what leads out of it with the place', async () => {
    write('files/a.txt', 'hello');
    write('secret', 'x');
    const ok = await terminal.run('butane', write('a.bu', OPENSHIFT), '--files-dir', join(folder, 'files'));
    expect(ok.code).toBe(0);
    const out = await terminal.run(
      'butane',
      write('b.bu', OPENSHIFT.replace('a.txt', '../secret')),
      '--files-dir',
      join(folder, 'files'),
    );
    expect(out).toMatchObject({ code: 1, out: '' });
    expect(out.err).toContain(
      'b.bu:9:16: storage.files[0].contents.local: /etc/a: "../secret" leads out of the folder',
    );
  });

  test('says all problems, the first on the last line', async () => {
    const run = await terminal.run('butane', write('a.bu', `${FCOS}systemm: {}\nstorag: {}\n`));
    expect(run.code).toBe(1);
    expect(run.err).toMatch(
      /a\.bu:5:1: storag: .*"storage"\?\ndrydock: .*a\.bu:4:1: systemm: .*"systemd"\? \(and 1 more\)\n$/,
    );
  });

  test('warns on stderr, which --strict makes a refusal', async () => {
    const file = write(
      'a.bu',
      'variant: fcos\nversion: 1.5.0\nsystemd: {units: [{name: a.service, enabled: true, contents: "[Unit]\\n"}]}\n',
    );
    const warned = await terminal.run('butane', file);
    expect(warned).toMatchObject({
      code: 0,
      err: expect.stringMatching(/^warning: .*a\.bu:3:\d+: .*no \[Install\]/) as string,
    });
    expect(await terminal.run('butane', file, '--strict')).toMatchObject({ code: 1, out: '' });
  });

  test('refuses a file that is not there or no text', async () => {
    expect((await terminal.run('butane', join(folder, 'none.bu'))).err).toMatch(/none\.bu: cannot be read/);
    writeFileSync(join(folder, 'x.bu'), Uint8Array.of(0xff, 0xfe, 0xfd));
    expect((await terminal.run('butane', join(folder, 'x.bu'))).err).toMatch(/is not UTF-8 text/);
  });
});

describe('drydock render', () => {
  test('takes Butane files, by name and from folders, with the other ones', async () => {
    write('a.txt', 'hello');
    write('a.bu', OPENSHIFT);
    write('b.bu', FCOS);
    const run = await terminal.run('render', '-f', folder, '--pool', 'worker', '--role', 'worker');
    expect([run.code, run.err]).toEqual([0, '']);
    expect(run.out).toMatch(/path: \/etc\/a\n[^]*path: \/etc\/b\n/);
    const without = await terminal.run('render', '-f', folder);
    expect(without.err).toMatch(/b\.bu:1:1: variant: this variant names no MachineConfig; give the role .* --role/);
  });

  test('names the line of the Butane file for what is wrong with the pool as a whole', async () => {
    write('a.txt', 'hello');
    const below = FCOS.replace('/etc/b', '/etc/a/b');
    const run = await terminal.run('render', '-f', write('a.bu', OPENSHIFT), write('b.bu', below), '--role', 'worker');
    expect(run.err).toMatch(/b\.bu \(line 3\): MachineConfig 99-worker-b: .*lies below \/etc\/a/);
  });
});

describe('the folder of the local files', () => {
  test.each(['../outside', '/etc/hostname', 'link-out', 'folder-out/secret', 'a/../../outside', 'pipe', 'none', 'a'])(
    'never gives %s',
    (given) => {
      write('outside', 'secret');
      write('elsewhere/secret', 'secret');
      const inside = join(folder, 'in');
      mkdirSync(join(inside, 'a'), { recursive: true });
      symlinkSync(join(folder, 'outside'), join(inside, 'link-out'));
      symlinkSync('../elsewhere', join(inside, 'folder-out'));
      // Whoever reads from it waits for ever.
      execFileSync('mkfifo', [join(inside, 'pipe')]);
      const read = localFolder(inside).readFile(given);
      expect(read.ok ? 'given' : read.error).toMatch(/^"/);
    },
  );

  test('gives a file through a link that stays inside', () => {
    write('real', 'x');
    symlinkSync('real', join(folder, 'alias'));
    expect(localFolder(folder).readFile('alias')).toMatchObject({ ok: true });
  });

  test('gives a tree with its executables, its links as links, and nothing through links out of it', () => {
    write('tree/b/run', '#!/bin/sh\n');
    chmodSync(join(folder, 'tree/b/run'), 0o700);
    write('tree/a', 'x');
    write('other/secret', 'x');
    symlinkSync('../other', join(folder, 'tree/c'));
    const tree = localFolder(folder).readTree('tree');
    expect(
      tree.ok && tree.entries.map((entry) => [entry.path, entry.kind, entry.kind === 'file' && entry.executable]),
    ).toEqual([
      ['a', 'file', false],
      ['b/run', 'file', true],
      ['c', 'link', false],
    ]);
    expect(localFolder(join(folder, 'tree')).readTree('c')).toMatchObject({ ok: false });
    expect(localFolder(folder).readTree('tree/a')).toMatchObject({ ok: false });
  });
});
