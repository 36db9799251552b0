import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { parseAllDocuments } from 'yaml';
import { describe, expect, it } from 'vitest';
import type {
  ContainerRuntimeConfig,
  ContainerRuntimeSettings,
} from '../../../machine-config/api/container-runtime-config.js';
import type { MachineConfig } from '../../../machine-config/api/machine-config.js';
import {
  generateContainerRuntime,
  problemsOf,
  type ContainerRuntimeInputs,
} from '../../../machine-config/sources/container-runtime/generate.js';
import { controllerConfig, flavour, pathsIn, pool, textIn, withFile } from './make-objects.js';

const POOLS = [pool('worker'), pool('master')];
const STORAGE = '/etc/containers/storage.conf';

function object(name: string, settings: ContainerRuntimeSettings, labels: Record<string, string> = { tier: 'worker' }) {
  return {
    metadata: { name, uid: `${name}-uid`, generation: 1, creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: { machineConfigPoolSelector: { matchLabels: labels }, containerRuntimeConfig: settings },
  } satisfies ContainerRuntimeConfig;
}

type Runtime = 'crio' | 'containerd';
function generate(
  runtime: Runtime,
  objects: ContainerRuntimeConfig[],
  others: Partial<Pick<ContainerRuntimeInputs, 'machineConfigs' | 'nodes'>> = {},
) {
  return generateContainerRuntime({
    flavour,
    containerRuntimeConfigs: objects,
    controllerConfig: controllerConfig({ containerRuntime: runtime }),
    pools: POOLS,
    machineConfigs: [],
    nodes: [],
    ...others,
  });
}

/** The files of one object for the pool worker, by path. */
function written(runtime: Runtime, settings: ContainerRuntimeSettings, machineConfigs: MachineConfig[] = []) {
  const [result] = generate(runtime, [object('a', settings)], { machineConfigs });
  expect(result?.problem).toBeUndefined();
  const [config] = result?.configs ?? [];
  return Object.fromEntries(pathsIn(config).map((file) => [file, textIn(config, file)]));
}

const dropIn = (name: string) => `/etc/crio/crio.conf.d/01-ctrcfg-${name}`;

describe('a ContainerRuntimeConfig for CRI-O', () => {
  it.each<[ContainerRuntimeSettings, string, string]>([
    [{ pidsLimit: 2048 }, dropIn('pidsLimit'), '[crio.runtime]\npids_limit = 2048\n'],
    [{ pidsLimit: 0 }, dropIn('pidsLimit'), '[crio.runtime]\npids_limit = 0\n'],
    [{ logSizeMax: '10k' }, dropIn('logSizeMax'), '[crio.runtime]\nlog_size_max = 10000\n'],
    [{ logSizeMax: '1.5Mi' }, dropIn('logSizeMax'), '[crio.runtime]\nlog_size_max = 1572864\n'],
    [{ logSizeMax: -1 }, dropIn('logSizeMax'), '[crio.runtime]\nlog_size_max = -1\n'],
    [{ logLevel: 'debug' }, dropIn('logLevel'), '[crio.runtime]\nlog_level = "debug"\n'],
    [{ defaultRuntime: 'crun' }, dropIn('defaultRuntime'), '[crio.runtime]\ndefault_runtime = "crun"\n'],
    [
      { additionalArtifactStores: [{ path: '/mnt/a' }, { path: '/mnt/b' }] },
      dropIn('additionalArtifactStores'),
      '[crio.image]\nadditional_artifact_stores = [ "/mnt/a", "/mnt/b" ]\n',
    ],
  ])('writes %j', (settings, file, text) => {
    expect(written('crio', settings)).toEqual({ [file]: text });
  });

  it.each<[ContainerRuntimeSettings]>([[{}], [{ logSizeMax: '0k' }], [{ overlaySize: 0 }], [{ logLevel: '' }]])(
    'writes nothing for %j',
    (settings) => {
      expect(written('crio', settings)).toEqual({});
    },
  );

  it('writes a storage.conf as containers-storage has it, with the size and the stores', () => {
    const settings = {
      overlaySize: '8G',
      additionalImageStores: [{ path: '/mnt/i' }],
      additionalLayerStores: [{ path: '/mnt/l' }],
    };
    expect(written('crio', settings)[STORAGE]).toBe(
      [
        '[storage]',
        'driver = "overlay"',
        'runroot = "/run/containers/storage"',
        'graphroot = "/var/lib/containers/storage"',
        '',
        '[storage.options]',
        'size = "8G"',
        'additionalimagestores = [ "/mnt/i" ]',
        'additionallayerstores = [ "/mnt/l:ref" ]',
        '',
      ].join('\n'),
    );
  });

  it('keeps what a MachineConfig of the pool says in storage.conf', () => {
    const present = withFile(
      '50-storage',
      'worker',
      STORAGE,
      '[storage]\ngraphroot = "/data"\n[storage.options]\nsize = "1G"\nx = 1\n',
    );
    const text = written('crio', { overlaySize: '2G' }, [present])[STORAGE];
    expect(text).toBe('[storage]\ngraphroot = "/data"\n\n[storage.options]\nsize = "2G"\nx = 1\n');
  });

  it('builds on those that come before it, also when it is generated again', () => {
    const objects = [object('a', { overlaySize: '2G' }), object('b', { additionalImageStores: [{ path: '/i' }] })];
    const first = generate('crio', objects);
    const text = textIn(first[1]?.configs[0], STORAGE);
    expect(text).toContain('size = "2G"\nadditionalimagestores = [ "/i" ]');
    const owned = first.flatMap(({ source, configs }) =>
      configs.map((config) => ({
        ...config,
        metadata: {
          ...config.metadata,
          ownerReferences: [{ apiVersion: 'x/v1', kind: source.kind, name: source.name, uid: source.uid }],
        },
      })),
    );
    expect(generate('crio', objects, { machineConfigs: owned })).toEqual(first);
  });

  it('is refused where storage.conf of another MachineConfig is no TOML', () => {
    const present = withFile('50-storage', 'worker', STORAGE, '[storage\n');
    const [result] = generate('crio', [object('a', { overlaySize: '2G' })], { machineConfigs: [present] });
    expect(result).toMatchObject({ configs: [], problem: { reason: 'UnreadablePresent' } });
    expect(result?.problem?.message).toMatch(
      /^\/etc\/containers\/storage\.conf of MachineConfig 50-storage is no TOML, line \d/u,
    );
  });
});

describe('a ContainerRuntimeConfig for containerd', () => {
  it('sets the log level', () => {
    expect(written('containerd', { logLevel: 'warn', pidsLimit: 0, overlaySize: '0', logSizeMax: 0 })).toEqual({
      '/etc/containerd/conf.d/01-ctrcfg-logLevel.toml': 'version = 2\n\n[debug]\nlevel = "warn"\n',
    });
  });

  it('sets the default runtime, and says how it is started', () => {
    expect(written('containerd', { defaultRuntime: 'crun' })).toEqual({
      '/etc/containerd/conf.d/01-ctrcfg-defaultRuntime.toml': [
        'version = 2',
        '',
        '[plugins."io.containerd.grpc.v1.cri".containerd]',
        'default_runtime_name = "crun"',
        '',
        '[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.crun]',
        'runtime_type = "io.containerd.runc.v2"',
        '',
        '[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.crun.options]',
        'BinaryName = "crun"',
        'SystemdCgroup = true',
        '',
      ].join('\n'),
    });
  });

  it.each<[ContainerRuntimeSettings, string]>([
    [{ pidsLimit: 2048 }, 'podPidsLimit in a KubeletConfig'],
    [{ logSizeMax: '50Mi' }, 'containerLogMaxSize in a KubeletConfig'],
    [{ overlaySize: '8G' }, 'ephemeral-storage'],
    [{ additionalImageStores: [{ path: '/i' }] }, 'only CRI-O'],
  ])('is refused for what containerd cannot do: %j', (settings, words) => {
    const [result] = generate('containerd', [object('a', settings)]);
    expect(result).toMatchObject({ configs: [], problem: { reason: 'InvalidField' } });
    expect(result?.problem?.message).toContain(`spec.containerRuntimeConfig.${Object.keys(settings).join()}: `);
    expect(result?.problem?.message).toContain(words);
  });

  it('is refused on nodes whose containerd would forget its other settings for it', () => {
    const nodes = [
      { node: 'new', pool: 'worker', version: 'containerd://2.1.4' },
      { node: 'elsewhere', pool: 'master', version: 'containerd://1.7.27' },
    ];
    const objects = [object('a', { defaultRuntime: 'crun' })];
    expect(generate('containerd', objects, { nodes })[0]?.problem).toBeUndefined();
    const old = { node: 'old', pool: 'worker', version: 'containerd://1.7.27' };
    expect(generate('containerd', objects, { nodes: [...nodes, old] })[0]).toMatchObject({
      configs: [],
      problem: {
        reason: 'RuntimeTooOld',
        message: expect.stringContaining('node old runs containerd://1.7.27') as string,
      },
    });
  });

  it('warns of nodes that run something else', () => {
    const nodes = [{ node: 'n', pool: 'worker', version: 'cri-o://1.34.0' }];
    const [result] = generate('containerd', [object('a', { logLevel: 'info' })], { nodes });
    expect(result?.warnings).toEqual([expect.stringContaining('such as n with cri-o://1.34.0') as string]);
  });
});

describe('ContainerRuntimeConfigs', () => {
  it.each<[unknown, string]>([
    [{ pidsLimit: 10 }, 'pidsLimit: 10 is too few'],
    [{ pidsLimit: -10 }, 'pidsLimit: -10 is too few'],
    [{ pidsLimit: -1 }, 'pidsLimit: -1 is too few'],
    [{ pidsLimit: 1.5 }, 'pidsLimit'],
    [{ pidsLimit: '4096' }, 'pidsLimit'],
    [{ logLevel: 'loud' }, 'logLevel: "loud" is no log level'],
    [{ logSizeMax: '3k' }, 'logSizeMax: "3k" is not more than the 8192 bytes'],
    [{ logSizeMax: '8192' }, 'logSizeMax: "8192" is not more than the 8192 bytes'],
    [{ logSizeMax: 'big' }, 'logSizeMax: "big" is no quantity'],
    [{ overlaySize: '-1G' }, 'overlaySize: "-1G" is less than nothing'],
    [{ overlaySize: 'x' }, 'overlaySize: "x" is no quantity'],
    [{ overlaySize: '1e9' }, 'overlaySize: "1e9" is a unit'],
    [{ defaultRuntime: 'kata' }, 'defaultRuntime: expected "crun", "runc"'],
    [{ additionalLayerStores: [] }, 'additionalLayerStores'],
    [{ additionalImageStores: [{ path: 'relative' }] }, 'additionalImageStores[0].path: must be an absolute path'],
    [{ additionalImageStores: [{ path: '/a//b' }] }, 'without "//"'],
    [{ additionalImageStores: [{ path: '/a' }, { path: '/a' }] }, 'the same path is listed twice'],
    [{ pidLimit: 2048 }, 'pidLimit: unknown key; did you mean "pidsLimit"?'],
  ])('with %j are refused', (settings, message) => {
    const objects = [object('a', settings as ContainerRuntimeSettings)];
    const [result] = generate('crio', objects);
    expect(result).toMatchObject({ configs: [], problem: { reason: 'InvalidField' } });
    expect(result?.problem?.message).toContain(message);
  });

  it.each<[ContainerRuntimeSettings]>([
    [{ pidsLimit: 20 }],
    [{ logSizeMax: '8193' }],
    [{ logSizeMax: 0 }],
    [{ overlaySize: '0' }],
    [{ overlaySize: '10Gi' }],
  ])('with %j are accepted', (settings) => {
    expect(problemsOf(object('a', settings), 'crio')).toEqual([]);
  });

  it('that choose no pool say so', () => {
    const [result] = generate('crio', [object('a', { pidsLimit: 2048 }, { tier: 'none' })]);
    expect(result).toMatchObject({ configs: [], problem: { reason: 'NoPool' } });
  });

  it('are named by pool and by their age', () => {
    const results = generate('crio', [
      { ...object('young', { pidsLimit: 30 }), metadata: { name: 'young', creationTimestamp: '2026-02-01T00:00:00Z' } },
      object('old', { pidsLimit: 20 }),
    ]);
    expect(results.map(({ source, suffix, configs }) => [source.name, suffix, configs[0]?.metadata.name])).toEqual([
      ['old', '', '99-worker-generated-containerruntime'],
      ['young', '1', '99-worker-generated-containerruntime-1'],
    ]);
  });

  it('that are being deleted generate nothing and are no problem', () => {
    const leaving = object('a', { pidsLimit: 10 });
    const metadata = { ...leaving.metadata, deletionTimestamp: '2026-01-02T00:00:00Z' };
    expect(generate('crio', [{ ...leaving, metadata }])).toEqual([
      {
        source: { kind: 'ContainerRuntimeConfig', name: 'a', uid: 'a-uid', generation: 1 },
        configs: [],
        warnings: [],
        suffix: '',
      },
    ]);
  });
});

const CORPUS = path.join(import.meta.dirname, '../../../../shared/corpus');

describe.skipIf(!existsSync(CORPUS))('every ContainerRuntimeConfig that people have written', () => {
  const objects = (existsSync(CORPUS) ? readdirSync(CORPUS) : [])
    .filter((name) => name.endsWith('.yaml'))
    .flatMap((name) => {
      const documents = parseAllDocuments(readFileSync(path.join(CORPUS, name), 'utf8'), { logLevel: 'silent' });
      return documents
        .map((document) => (document.errors.length > 0 ? undefined : (document.toJS() as { kind?: string } | null)))
        .filter((value) => value?.kind === 'ContainerRuntimeConfig')
        .map((value) => [name, value] as const);
    });

  it('is there', () => {
    expect(objects.length).toBeGreaterThan(0);
  });

  it.each(objects)('of %s is accepted for CRI-O, and for containerd accepted or refused with a reason', (_, value) => {
    expect(problemsOf(value, 'crio')).toEqual([]);
    for (const { path: where, message } of problemsOf(value, 'containerd')) {
      expect(where).toMatch(/^spec\.containerRuntimeConfig\./u);
      expect(message).toMatch(/; (set|leave|only)/u);
    }
  });
});
