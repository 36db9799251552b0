import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { isButaneFile, translateButaneFile } from '../../../client/butane-file.js';
import { offlineRender } from '../../../client/offline-render.js';
import { apiFlavour } from '../../../machine-config/api/flavour.js';
import { parseMachineConfig } from '../../../machine-config/api/parse.js';
import { formatRenderFinding, renderPool } from '../../../machine-config/render/render-pool.js';
import { fileContents } from '../../../machine-config/ignition/contents.js';
import type { IgnitionConfig } from '../../../machine-config/ignition/config.js';

/** Files from the field, beside the repository; other people's, so they are not in it. */
const CORPUS = path.join(import.meta.dirname, '../../../../shared/corpus');
const present = existsSync(CORPUS);
const textOf = (name: string) => readFileSync(path.join(CORPUS, name), 'utf8');
const files = present
  ? readdirSync(CORPUS).filter((name) => name.endsWith('.yaml') && isButaneFile(name, textOf(name)))
  : [];
const flavour = apiFlavour('openshift');

/** Files that are refused as MachineConfig of role worker: line, and what is said. The others are translated. */
const REFUSED: Readonly<Record<string, readonly [number, RegExp]>> = {
  '106': [18, /storage\.files\[1\]\.contents\.local: .*is not in/],
  '109': [39, /storage\.files\[1\]\.contents\.local: .*is not in/],
  '110': [9, /passwd\.users\[1\]\.name: .*is not core/],
  '112': [45, /storage\.files\[0\]\.contents\.local: .*is not in/],
  '113': [6, /passwd\.users\[0\]\.name: .*is not core/],
  '116': [7, /is not valid YAML/],
};

/** The same ones as Ignition configs, where any user and all of Ignition may be. */
const REFUSED_BY_ITSELF = ['106', '109', '112', '116'];

function translated(name: string, role?: string) {
  return translateButaneFile(path.join(CORPUS, name), textOf(name), { flavour, role });
}

/** What a rendered config puts on a node: contents unpacked, whatever way they were packed. */
function meaningOf(machineConfig: unknown): unknown {
  const parsed = parseMachineConfig(machineConfig);
  const object = parsed.ok ? parsed.value : {};
  const rendered = renderPool({ pool: 'worker', machineConfigs: [object], flavour });
  if (rendered.outcome === 'refused') return rendered.problems.map(formatRenderFinding);
  const { config, ...spec } = rendered.config.spec ?? {};
  const { storage, ...rest } = config as unknown as IgnitionConfig;
  const contents = storage?.files?.map((file) => ({ ...file, contents: Buffer.from(fileContents(file)).toString() }));
  return { ...spec, ...rest, ...storage, files: contents, metadata: parsed.ok && parsed.value.metadata };
}

describe.skipIf(!present)('Butane files from the field', () => {
  it('are there, and each expectation is about one of them', () => {
    expect(files.length).toBeGreaterThan(12);
    for (const number of Object.keys(REFUSED)) expect(files.some((name) => name.startsWith(`${number}-`))).toBe(true);
  });

  it.each(files)('%s is translated, or refused with file, line, column and cause', async (name) => {
    const expected = REFUSED[name.split('-')[0] ?? ''];
    const { result, problems } = translated(name, 'worker');
    if (expected === undefined) {
      expect(problems).toEqual([]);
      const machineConfig = result.outcome === 'machineConfig' ? result.machineConfig : undefined;
      expect(parseMachineConfig(machineConfig)).toMatchObject({ ok: true });
      const file = path.join(CORPUS, name);
      expect(await offlineRender({ files: [file], role: 'worker' })).toMatchObject({ outcome: 'rendered' });
    } else {
      expect(problems[0]).toMatch(expected[1]);
      expect(problems[0]).toMatch(new RegExp(`/${name}:${expected[0]}:\\d+: `));
    }
  });

  it.each(files)('%s by itself is a MachineConfig, an Ignition config or refused', (name) => {
    const { result } = translated(name);
    const isRefused = REFUSED_BY_ITSELF.includes(name.split('-')[0] ?? '');
    const isOpenshift = textOf(name).includes('variant: openshift');
    expect(result.outcome).toBe(isRefused ? 'refused' : isOpenshift ? 'machineConfig' : 'ignition');
  });

  it.each([
    ['49-butane-chrony.yaml', '50-chrony-generated.yaml'],
    ['82-butane-source.yaml', '81-mixed-compression.yaml'],
  ])('%s means what %s means, which Butane made of it', (source, made) => {
    const { result } = translated(source);
    const ours = result.outcome === 'machineConfig' ? result.machineConfig : undefined;
    const theirs: unknown = parse(textOf(made));
    const meaning = meaningOf(ours);
    expect(meaning).toMatchObject({ files: expect.arrayContaining([expect.anything()]) as unknown });
    expect(meaning).toEqual(meaningOf(theirs));
    const version = ({ spec }: { spec?: { config?: { ignition?: unknown } } }) => spec?.config?.ignition;
    expect(version(ours as object)).toEqual(version(theirs as object));
  });
});
