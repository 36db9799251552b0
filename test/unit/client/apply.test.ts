import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { apiFlavour } from '../../../machine-config/api/flavour.js';
import { FakeTerminal } from '../../support/command-run.js';

const flavour = apiFlavour('openshift');
const API = 'apiVersion: machineconfiguration.openshift.io/v1\n';
const POOL = `${API}kind: MachineConfigPool
metadata: {name: infra}
spec:
  machineConfigSelector: {matchLabels: {${flavour.roleLabel}: infra}}
  nodeSelector: {matchLabels: {infra: ""}}
`;
const config = (name: string, spec: string) =>
  `${API}kind: MachineConfig\nmetadata:\n  name: ${name}\n  labels: {${flavour.roleLabel}: infra}\nspec:\n  ${spec}\n`;
const FCOS = 'variant: fcos\nversion: 1.5.0\nstorage: {files: [{path: /etc/b, contents: {inline: b}}]}\n';

let folder: string;
let terminal: FakeTerminal;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'drydock-apply-'));
  terminal = new FakeTerminal();
});
afterEach(() => rmSync(folder, { recursive: true }));

function write(name: string, text: string): string {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
}
const stored = (kind: 'machineConfig' | 'machineConfigPool', name: string) =>
  terminal.cluster.peek(flavour[kind], name);
const actions = (out: string) =>
  out
    .trim()
    .split('\n')
    .slice(1)
    .map((line) => line.split(/ {3,}/));

test('brings configs and pools to the cluster, configs first; again it changes nothing', async () => {
  write('1-pool.yaml', POOL);
  write('2-config.yaml', config('50-infra-a', 'kernelArguments: [quiet]'));
  write('3-extra.bu', FCOS);
  const first = await terminal.run('apply', '-f', folder, '--role', 'infra');
  expect([first.code, first.err]).toEqual([0, '']);
  expect(actions(first.out)).toEqual([
    ['MachineConfig', '50-infra-a', 'created'],
    ['MachineConfig', '99-infra-3-extra', 'created'],
    ['MachineConfigPool', 'infra', 'created'],
  ]);
  expect(stored('machineConfig', '99-infra-3-extra')).toMatchObject({
    spec: { config: { storage: { files: [{ path: '/etc/b', contents: { source: 'data:,b' } }] } } },
  });
  const again = await terminal.run('apply', '-f', folder, '--role', 'infra');
  expect(actions(again.out).map(([, , action]) => action)).toEqual(['unchanged', 'unchanged', 'unchanged']);
  write('2-config.yaml', config('50-infra-a', 'fips: false'));
  const changed = await terminal.run('apply', '-f', folder, '--role', 'infra');
  expect(actions(changed.out)[0]).toEqual(['MachineConfig', '50-infra-a', 'configured']);
  expect(stored('machineConfig', '50-infra-a')).toMatchObject({ spec: { fips: false } });
  expect(stored('machineConfig', '50-infra-a')).not.toHaveProperty('spec.kernelArguments');
});

test('an object read from a cluster is applied without what only the server says', async () => {
  const metadata = 'metadata:\n  uid: x\n  resourceVersion: "7"\n  generation: 3\n  name:';
  const file = write(
    'a.yaml',
    `${config('50-infra-a', 'fips: false').replace('metadata:\n  name:', metadata)}status: {a: b}\n`,
  );
  expect(await terminal.run('apply', '-f', file)).toMatchObject({ code: 0, err: '' });
  expect(stored('machineConfig', '50-infra-a')).not.toHaveProperty('status');
});

test.each([
  [
    'a.yaml',
    config('50-a', 'config: {storage: {files: [{path: /etc/a, mode: 644}]}, ignition: {version: 3.4.0}}'),
    /a\.yaml \(line 7\): MachineConfig 50-a: spec\.config\.storage\.files\[0\]\.mode: .*write 420/,
  ],
  ['a.yaml', config('50-a', 'kernelArgument: [a]'), /50-a: spec\.kernelArgument: .*write kernelArguments/],
  [
    'a.yaml',
    POOL.replace('spec:', 'spec:\n  maxUnavailable: many'),
    /a\.yaml \(line \d+\): MachineConfigPool infra: spec\.maxUnavailable/,
  ],
  [
    'a.yaml',
    'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n',
    /a\.yaml \(line 1\): "ConfigMap" of "v1" is not applied here, use kubectl/,
  ],
  ['a.yaml', `${API}kind: MachineConfig\nspec: {}\n`, /a\.yaml.*has no metadata\.name/],
  ['a.bu', FCOS, /a\.bu:1:1: variant: this variant names no MachineConfig; give the role/],
  ['a.bu', `${FCOS}storag: {}\n`, /a\.bu:4:1: storag: unknown key; did you mean "storage"\?/],
  ['a.yaml', '# nothing\n', /there is no object to apply/],
])('%s is refused with file, line and reason, and nothing of it is sent', async (name, text, message) => {
  write('0.yaml', name === 'a.yaml' && text.startsWith('#') ? '' : config('10-good', 'fips: false'));
  write(name, text);
  const writes: string[] = [];
  terminal.cluster.intercept(({ verb }) => {
    if (!['get', 'list'].includes(verb)) writes.push(verb);
  });
  const run = await terminal.run('apply', '-f', folder);
  expect(run).toMatchObject({ code: 1, out: '' });
  expect(run.err).toMatch(message);
  expect(writes).toEqual([]);
});

test('the same object twice is refused', async () => {
  write('a.yaml', config('50-a', 'fips: false'));
  write('b.yaml', config('50-a', 'fips: true'));
  expect((await terminal.run('apply', '-f', folder)).err).toMatch(/b\.yaml.*MachineConfig 50-a is in the files twice/);
});

test('a dry run stores nothing', async () => {
  const file = write('a.yaml', config('50-a', 'fips: false'));
  const run = await terminal.run('apply', '-f', file, '--dry-run');
  expect(actions(run.out)).toEqual([['MachineConfig', '50-a', 'created (dry run)']]);
  expect(stored('machineConfig', '50-a')).toBeUndefined();
});

test('a field that another one manages is a conflict that says how to take it over', async () => {
  const file = write('a.yaml', config('50-a', 'fips: false'));
  terminal.cluster.failNext({ verb: 'patch', kind: 'MachineConfig' }, { code: 'Conflict' });
  const run = await terminal.run('apply', '-f', file);
  expect(run).toMatchObject({ code: 1, err: expect.stringContaining('--force-conflicts') as string });
});
