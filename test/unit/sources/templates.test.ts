import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ControllerConfigSpec } from '../../../machine-config/api/controller-config.js';
import { renderPool } from '../../../machine-config/render/render-pool.js';
import { renderedName } from '../../../machine-config/render/name.js';
import { generateFromTemplates, type TemplateInputs } from '../../../machine-config/sources/templates/generate.js';
import { templateFilesOf, type TemplateFiles } from '../../../machine-config/sources/templates/layout.js';
import { controllerConfig, flavour, pathsIn, pool, textIn } from './make-objects.js';

const POOLS = [pool('worker'), pool('master'), pool('infra', 'worker')];

const file = (name: string, text: string): string =>
  `path: /etc/${name}\nmode: 0640\ncontents:\n  inline: |\n    ${text}\n`;
const files = (entries: Record<string, string>): TemplateFiles => new Map(Object.entries(entries));

function generate(templates: TemplateInputs['templates'], spec: ControllerConfigSpec = {}, owned: string[] = []) {
  return generateFromTemplates({
    flavour,
    controllerConfig: controllerConfig(spec),
    templates,
    pools: POOLS,
    owned: new Set(owned),
  });
}
const configNamed = (result: ReturnType<typeof generate>, name: string) =>
  result.configs.find(({ metadata }) => metadata.name === name);

describe('configs from templates', () => {
  it('are named by their folder and labelled with their role; custom pools get theirs from worker', () => {
    const result = generate(
      files({
        'common/files/a.yaml': file('a', 'of {{role}}'),
        'common/kubelet/files/k.yaml': file('k', 'kubelet'),
        'worker/01-worker-extra/files/e.yaml': file('e', 'extra'),
      }),
    );
    expect(result.warnings).toEqual([]);
    expect(result.problem).toBeUndefined();
    expect(result.configs.map(({ metadata }) => [metadata.name, metadata.labels])).toEqual(
      [
        ['00-master', 'master'],
        ['01-master-kubelet', 'master'],
        ['00-worker', 'worker'],
        ['01-worker-extra', 'worker'],
        ['01-worker-kubelet', 'worker'],
      ].map(([name, role]) => [name, { [flavour.roleLabel]: role }]),
    );
    expect(textIn(configNamed(result, '00-worker'), '/etc/a')).toBe('of worker\n');
    expect(textIn(configNamed(result, '00-master'), '/etc/a')).toBe('of master\n');
    expect(configNamed(result, '00-worker')?.spec?.config).toMatchObject({ storage: { files: [{ mode: 0o640 }] } });
  });

  it('of a custom pool with a folder of its own are those of that folder alone', () => {
    const result = generate(
      files({ 'common/files/a.yaml': file('a', 'a'), 'infra/01-infra-x/files/x.yaml': file('x', 'x') }),
    );
    expect(result.configs.map(({ metadata }) => metadata.name)).toEqual(['01-infra-x', '00-master', '00-worker']);
  });

  it('let a role replace a common file, take it away, or leave it out by what it renders to', () => {
    const result = generate(
      files({
        'common/files/a.yaml': file('a', 'common'),
        'common/files/b.yaml': file('b', 'common'),
        'common/files/c.yaml': `{{#if (eq role "master")}}\n${file('c', 'masters only')}{{/if}}\n`,
        'worker/00-worker/files/a.yaml': file('a', 'own'),
        'worker/00-worker/files/b.yaml': '',
      }),
    );
    expect(pathsIn(configNamed(result, '00-master'))).toEqual(['/etc/a', '/etc/b', '/etc/c']);
    expect(pathsIn(configNamed(result, '00-worker'))).toEqual(['/etc/a']);
    expect(textIn(configNamed(result, '00-worker'), '/etc/a')).toBe('own\n');
  });

  it('take units and their drop-ins', () => {
    const unit =
      'name: a.service\nenabled: true\ndropins:\n  - name: b.conf\n    contents: |\n      [Service]\n      Nice=1\n';
    const result = generate(files({ 'common/units/a.yaml': unit }));
    expect(configNamed(result, '00-worker')?.spec?.config).toMatchObject({
      systemd: {
        units: [{ name: 'a.service', enabled: true, dropins: [{ name: 'b.conf', contents: '[Service]\nNice=1\n' }] }],
      },
    });
  });

  it('are filled in with the ControllerConfig, with its templateValues, and with values.yaml where it has none', () => {
    const templates = files({
      'values.yaml': 'a: default\nb: default\n',
      'common/files/a.yaml': file('a', '{{values.a}} {{values.b}} {{config.clusterDNSIP}} {{config.containerRuntime}}'),
    });
    const result = generate(templates, { clusterDNSIP: '10.96.0.10', templateValues: { b: 'mine' } });
    expect(textIn(configNamed(result, '00-worker'), '/etc/a')).toBe('default mine 10.96.0.10 containerd\n');
  });

  it('do not depend on the order in which files and pools are read', () => {
    const entries = { 'common/files/b.yaml': file('b', 'b'), 'common/files/a.yaml': file('a', 'a') };
    const inputs = { flavour, controllerConfig: controllerConfig(), owned: new Set<string>() };
    const one = generateFromTemplates({ ...inputs, pools: POOLS, templates: files(entries) });
    const other = generateFromTemplates({
      ...inputs,
      pools: POOLS.toReversed(),
      templates: new Map(Object.entries(entries).reverse()),
    });
    expect(JSON.stringify(other)).toBe(JSON.stringify(one));
  });

  it('leave an empty 00-config where they are turned off, since a pool needs one', () => {
    const result = generate(undefined, {}, ['00-worker', '01-worker-kubelet']);
    expect(result.configs).toEqual([
      expect.objectContaining({ spec: { config: { ignition: { version: '3.4.0' } } } }) as unknown,
    ]);
    expect(result.configs[0]?.metadata.name).toBe('00-worker');
    expect(generate(undefined).configs).toEqual([]);
  });

  it('say which templates nobody uses', () => {
    const result = generate(files({ 'edge/00-edge/files/a.yaml': file('a', 'a') }));
    expect(result.warnings).toEqual([expect.stringContaining('there is no pool edge') as string]);
  });

  it.each([
    [
      'a value that is not there',
      'common/files/a.yaml',
      file('a', '{{values.pasueImage}}'),
      'no value values.pasueImage',
    ],
    ['a place that is none', 'worker/files/a.yaml', file('a', 'a'), 'is no place of a template'],
    ['a config of another name', 'worker/50-mine/files/a.yaml', file('a', 'a'), 'name it 00-worker or 01-worker-NAME'],
    ['what is no YAML', 'common/files/a.yaml', 'path: [', 'is no YAML once it is filled in'],
    ['a list', 'common/files/a.yaml', '- a\n', 'must be one file as an object'],
    ['a file without a path', 'common/files/a.yaml', 'contents:\n  inline: a\n', 'path is missing'],
    [
      'a mode that is text',
      'common/files/a.yaml',
      'path: /a\nmode: rw\ncontents: {inline: a}\n',
      'mode must be a number',
    ],
    [
      'inline and source',
      'common/files/a.yaml',
      'path: /a\ncontents: {inline: a, source: "data:,"}\n',
      'inline and source',
    ],
    ['an unknown key', 'common/files/a.yaml', 'path: /a\nmoed: 0644\ncontents: {inline: a}\n', 'moed'],
    ['a unit of no known type', 'common/units/a.yaml', 'name: a\ncontents: "[Service]"\n', 'units[0]'],
  ])('are refused as a whole for %s', (_, name, text, message) => {
    const result = generate(files({ [name]: text, 'common/files/z.yaml': file('z', 'z') }));
    expect(result.configs).toEqual([]);
    expect(result.problem?.message).toContain(message);
    expect(result.problem?.message).not.toContain('\n');
  });

  it('are refused with the reason for which templates cannot be read', () => {
    const problem = { reason: 'TemplatesNotFound', message: 'ConfigMap a/b is not there' };
    expect(generate(problem)).toMatchObject({ configs: [], problem });
  });

  it('come from a ConfigMap, with "__" for a slash', () => {
    const templates = templateFilesOf({ 'worker__00-worker__files__a.yaml': file('a', 'a') });
    expect(configNamed(generate(templates), '00-worker')).toBeDefined();
  });
});

const BUILT_IN = path.join(import.meta.dirname, '../../../templates');

function builtIn(version: string): TemplateFiles {
  const folder = path.join(BUILT_IN, version);
  const names = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return new Map(
    names.map((entry) => {
      const where = path.join(entry.parentPath, entry.name);
      return [path.relative(folder, where), readFileSync(where, 'utf8')];
    }),
  );
}

describe('the built-in templates', () => {
  const versions = readdirSync(BUILT_IN, { withFileTypes: true }).filter((entry) => entry.isDirectory());

  /**
   * Released versions are frozen: a digest here is only ever added. Another one than what is written here would be a
   * rollout on every node whose administrator only upgraded Drydock.
   */
  const FROZEN: Record<string, Record<string, string>> = {
    v1: {
      'containerd 00-master': '37befa99a285c36a',
      'containerd 00-worker': '37befa99a285c36a',
      'containerd 01-master-container-runtime': '0c37ebfb77f736d9',
      'containerd 01-master-kubelet': '28e93afe99fc2347',
      'containerd 01-worker-container-runtime': '0c37ebfb77f736d9',
      'containerd 01-worker-kubelet': '28e93afe99fc2347',
      'crio 00-master': '37befa99a285c36a',
      'crio 00-worker': '37befa99a285c36a',
      'crio 01-master-container-runtime': '1b0afa2a71645adb',
      'crio 01-master-kubelet': 'fa7bb843f72bf746',
      'crio 01-worker-container-runtime': '1b0afa2a71645adb',
      'crio 01-worker-kubelet': 'fa7bb843f72bf746',
    },
  };

  it.each(versions.map(({ name }) => name))('%s gives what it always gave', (version) => {
    const digests: Record<string, string> = {};
    for (const containerRuntime of ['containerd', 'crio'] as const) {
      const { configs, problem } = generate(builtIn(version), { containerRuntime });
      expect(problem).toBeUndefined();
      for (const { metadata, spec } of configs) {
        const digest = createHash('sha256').update(renderedName('p', spec ?? {}));
        digests[`${containerRuntime} ${metadata.name}`] = digest.digest('hex').slice(0, 16);
      }
    }
    expect(digests).toEqual(FROZEN[version]);
  });

  it.each(['containerd', 'crio'] as const)('can be rendered for nodes with %s', (containerRuntime) => {
    const result = generate(builtIn('v1'), { containerRuntime });
    const machineConfigs = result.configs.filter(({ metadata }) => metadata.labels?.[flavour.roleLabel] === 'worker');
    const rendered = renderPool({ pool: 'worker', machineConfigs, flavour });
    expect(rendered).toMatchObject({ outcome: 'rendered', warnings: [] });
  });

  it('leave the kubelet and the container runtime of other nodes alone', () => {
    const result = generate(builtIn('v1'), { nodeFlavour: 'openshift', templateValues: { containerdConfig: false } });
    expect(pathsIn(configNamed(result, '01-worker-container-runtime'))).toEqual([]);
    expect(configNamed(result, '01-worker-kubelet')?.spec?.config).toEqual({ ignition: { version: '3.4.0' } });
  });
});
