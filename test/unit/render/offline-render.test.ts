import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { offlineRender, type OfflineRenderInput } from '../../../client/offline-render.js';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'drydock-render-'));
});
afterEach(() => rm(folder, { recursive: true }));

async function write(name: string, text: string): Promise<string> {
  const file = path.join(folder, name);
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, text);
  return file;
}

const HEADER = 'apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\n';
const machineConfig = (name: string, spec: string, role = 'worker') =>
  `${HEADER}metadata:\n  name: ${name}\n  labels: {machineconfiguration.openshift.io/role: ${role}}\nspec:\n${spec}\n`;
const withMode = (mode: string) =>
  machineConfig(
    'a',
    `  config:\n    ignition: {version: 3.4.0}\n    storage:\n      files:\n      - path: /etc/a\n        mode: ${mode}\n        contents: {source: "data:,a"}`,
  );
const kernelArgument = (name: string, argument: string, role?: string) =>
  machineConfig(name, `  kernelArguments: [${argument}]`, role);

async function rendered(input: OfflineRenderInput) {
  const result = await offlineRender(input);
  if (result.outcome === 'refused') throw new Error(result.reason);
  return result;
}
async function reason(...files: string[]) {
  const result = await offlineRender({ files });
  return result.outcome === 'refused' ? result.reason.replaceAll(`${folder}/`, '') : 'rendered';
}
const argumentsOf = async (input: OfflineRenderInput) => (await rendered(input)).config.spec?.kernelArguments;

describe('numbers in YAML', () => {
  it.each([
    ['0644', 0o644],
    ['0400', 0o400],
    ['0o644', 0o644],
    ['420', 420],
  ])('mode %s is read as kubectl reads it', async (text, mode) => {
    const { config } = await rendered({ files: [await write('a.yaml', withMode(text))] });
    expect(config.spec?.config).toMatchObject({ storage: { files: [{ mode }] } });
  });

  it('are read so also below a YAML 1.2 directive', async () => {
    const file = await write('a.yaml', `%YAML 1.2\n---\n${withMode('0600')}`);
    expect((await rendered({ files: [file] })).config.spec?.config).toMatchObject({
      storage: { files: [{ mode: 0o600 }] },
    });
  });

  it.each([
    ["'0644'", 'the string "0644", must be a whole number; write 420'],
    ['644', 'it looks like octal 0644 read as a decimal number, write 420'],
  ])('mode %s is refused, with file and line', async (text, message) => {
    const answer = await reason(await write('a.yaml', withMode(text)));
    expect(answer).toMatch(/^a\.yaml \(line 12\): MachineConfig a: spec\.config\.storage\.files\[0\]\.mode: /);
    expect(answer).toContain(message);
  });
});

describe('the output', () => {
  it('is YAML that old and new readers read alike', async () => {
    const file = await write(
      'a.yaml',
      machineConfig('a', '  kernelArguments: ["0644", "yes", "0o17", "1e3", "12:30", "2020-01-01", "null", "~"]'),
    );
    const { config, yaml } = await rendered({ files: [file] });
    expect(parse(yaml, { version: '1.1' })).toEqual(config);
    expect(parse(yaml, { version: '1.2' })).toEqual(config);
  });
});

describe('which files are read', () => {
  it('JSON, several documents, Lists, and files without extension that are named', async () => {
    const list = { apiVersion: 'v1', kind: 'List', items: [parse(kernelArgument('b', 'b')) as unknown] };
    const files = [
      await write('two.yaml', `${kernelArgument('a', 'a')}---\n---\n${kernelArgument('d', 'd')}`),
      await write('list.json', JSON.stringify(list)),
      await write('noextension', kernelArgument('c', 'c')),
    ];
    expect(await argumentsOf({ files })).toEqual(['a', 'b', 'c', 'd']);
  });

  it('a folder with all below it, without hidden files and other extensions', async () => {
    await write('sub/b.yml', kernelArgument('b', 'b'));
    await write('a.yaml', kernelArgument('a', 'a'));
    await write('.hidden.yaml', kernelArgument('c', 'c'));
    await write('readme.md', kernelArgument('d', 'd'));
    expect(await argumentsOf({ files: [folder] })).toEqual(['a', 'b']);
  });
});

describe('the pool', () => {
  it('without one asked for is all MachineConfigs together, named all', async () => {
    const files = [await write('a.yaml', `${kernelArgument('a', 'a', 'x')}---\n${kernelArgument('b', 'b', 'worker')}`)];
    const result = await rendered({ files });
    expect(result.config.metadata.name).toMatch(/^rendered-all-/);
    expect(result.sources).toEqual(['b', 'a']);
  });

  it('selects by the role of its name, a custom one also by role worker', async () => {
    const roles = ['master', 'worker', 'infra', 'other'].map((role) => kernelArgument(role, role, role));
    const files = [await write('a.yaml', roles.join('---\n'))];
    expect(await argumentsOf({ files, pool: 'master' })).toEqual(['master']);
    expect(await argumentsOf({ files, pool: 'worker' })).toEqual(['worker']);
    expect(await argumentsOf({ files, pool: 'infra' })).toEqual(['worker', 'infra']);
  });

  it('of the files selects by its own selector', async () => {
    const pool =
      'apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfigPool\nmetadata: {name: infra}\nspec:\n  machineConfigSelector: {matchLabels: {machineconfiguration.openshift.io/role: other}}\n';
    const files = [
      await write('a.yaml', [pool, kernelArgument('a', 'a', 'infra'), kernelArgument('b', 'b', 'other')].join('---\n')),
    ];
    expect(await argumentsOf({ files, pool: 'infra' })).toEqual(['b']);
  });

  it('that selects nothing is refused', async () => {
    const files = [await write('a.yaml', kernelArgument('a', 'a', 'infra'))];
    expect(await offlineRender({ files, pool: 'master' })).toMatchObject({
      outcome: 'refused',
      reason: expect.stringContaining('the pool master selects none of the 1 MachineConfigs') as string,
    });
  });
});

describe('the flavour', () => {
  const alauda = kernelArgument('a', 'a').replaceAll('openshift.io', 'alauda.io').replace('/v1', '/v1alpha1');

  it('is that of the files where none is asked for', async () => {
    const { config } = await rendered({ files: [await write('a.yaml', alauda)] });
    expect(config.apiVersion).toBe('machineconfiguration.alauda.io/v1alpha1');
  });

  it('is one at a time', async () => {
    const files = [await write('a.yaml', alauda)];
    expect(await offlineRender({ files, flavour: 'openshift' })).toMatchObject({ outcome: 'refused' });
    expect(await reason(...files, await write('b.yaml', kernelArgument('b', 'b')))).toContain('one flavour at a time');
  });
});

describe('what cannot be rendered is refused with its file', () => {
  it.each([
    ['Butane', 'variant: fcos\nversion: 1.5.0\n', 'a.yaml:1:1: variant: this variant names no MachineConfig'],
    [
      'a bare Ignition config',
      '{"ignition": {"version": "3.4.0"}}',
      'is an Ignition config and no MachineConfig; put it under spec.config',
    ],
    ['broken YAML', `${HEADER}metadata: {name: a`, 'is not valid YAML'],
    ['the same key twice', `${HEADER}kind: MachineConfig\n`, 'a.yaml:3: is not valid YAML: Map keys must be unique'],
    ['text', 'hello', 'is not a Kubernetes object'],
    ['an object without kind', 'a: 1', 'has no kind'],
    ['no object at all', '# nothing\n', 'there is no MachineConfig to render'],
    ['a MachineConfig without name', `${HEADER}metadata: {}\n`, 'has no metadata.name'],
    [
      'a label that is no string',
      `${HEADER}metadata: {name: a, labels: {x: 1}}\n`,
      'metadata.labels["x"] of the MachineConfig is no string',
    ],
    [
      'another API version',
      kernelArgument('a', 'a').replace('/v1', '/v2'),
      'write machineconfiguration.openshift.io/v1',
    ],
    [
      'only a pool',
      'apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfigPool\nmetadata: {name: p}\n',
      'there is no MachineConfig to render, only MachineConfigPool p',
    ],
    [
      'a Template',
      'apiVersion: template.openshift.io/v1\nkind: Template\nmetadata: {name: t}\nobjects: []\n',
      'process it first',
    ],
    [
      'a bomb of aliases',
      `a: &a [1,1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n`,
      'alias',
    ],
    ['nesting without end', `a: ${'['.repeat(20_000)}`, 'is not valid YAML'],
  ])('%s', async (_, text, message) => {
    const answer = await reason(await write('a.yaml', text));
    expect(answer).toContain('a.yaml');
    expect(answer).toContain(message);
    expect(answer).not.toContain('\n');
  });

  it('bytes that are no UTF-8', async () => {
    const file = path.join(folder, 'a.yaml');
    await writeFile(file, Buffer.from([0xff, 0xfe, 0x61]));
    expect(await reason(file)).toBe('a.yaml: is not UTF-8 text; save it as UTF-8');
  });

  it('a file that is not there', async () => {
    expect(await reason(path.join(folder, 'none.yaml'))).toBe(
      'none.yaml: cannot be read: there is no such file or folder',
    );
  });

  it('every problem of every file is listed', async () => {
    const files = [await write('a.yaml', withMode('644')), await write('b.yaml', kernelArgument('b', '1'))];
    const result = await offlineRender({ files });
    expect(result.outcome === 'refused' && result.problems).toEqual([
      expect.stringMatching(/a\.yaml \(line 12\): MachineConfig a: /),
      expect.stringMatching(/b\.yaml \(line 7\): MachineConfig b: spec\.kernelArguments\[0\]: is 1/),
    ]);
  });
});

it('a second MachineConfig of the same name is warned about, and the order of the files makes no difference', async () => {
  const [one, two] = [await write('1.yaml', kernelArgument('a', 'x')), await write('2.yaml', kernelArgument('a', 'z'))];
  const result = await rendered({ files: [one, two] });
  expect(result.warnings).toEqual([expect.stringContaining('2.yaml: a second MachineConfig a')]);
  expect((await rendered({ files: [two, one] })).yaml).toBe(result.yaml);
});
