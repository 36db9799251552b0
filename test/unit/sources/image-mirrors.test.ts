import { parse } from 'smol-toml';
import { describe, expect, it } from 'vitest';
import type {
  ImageDigestMirrorSet,
  ImageMirrors,
  ImageTagMirrorSet,
} from '../../../machine-config/api/image-mirrors.js';
import type { MachineConfig } from '../../../machine-config/api/machine-config.js';
import { isRegistriesChangeHarmless } from '../../../machine-config/change/registries-conf.js';
import { generateImageMirrors } from '../../../machine-config/sources/image-mirrors/generate.js';
import { controllerConfig, flavour, pathsIn, pool, textIn, withFile } from './make-objects.js';

const CONF = '/etc/containers/registries.conf';
const POOLS = [pool('worker'), pool('master'), pool('infra', 'worker')];

type Entry = Partial<ImageMirrors> & { source: string };
const idms = (name: string, ...imageDigestMirrors: Entry[]): ImageDigestMirrorSet => ({
  metadata: { name },
  spec: { imageDigestMirrors },
});
const itms = (name: string, ...imageTagMirrors: Entry[]): ImageTagMirrorSet => ({
  metadata: { name },
  spec: { imageTagMirrors },
});
const never = 'NeverContactSource';
const allow = 'AllowContactingSource';

interface Sets {
  digest?: ImageDigestMirrorSet[];
  tag?: ImageTagMirrorSet[];
  machineConfigs?: MachineConfig[];
}
function generate(runtime: 'crio' | 'containerd', { digest = [], tag = [], machineConfigs = [] }: Sets) {
  return generateImageMirrors({
    flavour,
    controllerConfig: controllerConfig({ containerRuntime: runtime }),
    digestMirrorSets: digest,
    tagMirrorSets: tag,
    pools: POOLS,
    machineConfigs,
  });
}
function generated(runtime: 'crio' | 'containerd', sets: Sets): readonly MachineConfig[] {
  const result = generate(runtime, sets);
  if ('message' in result) throw new Error(result.message);
  return result;
}
/** The registries.conf of the pool worker. */
const conf = (sets: Sets) => textIn(generated('crio', sets).at(-1), CONF) ?? '';
/** Locations and from what they are pulled, of the first registry. */
const mirrorsOf = (text: string) => {
  const [registry] = parse(text)['registry'] as { mirror: Record<string, string>[] }[];
  return registry?.mirror.map((mirror) => `${mirror['location'] ?? ''} ${mirror['pull-from-mirror'] ?? ''}`);
};
const hosts = (registry: string, sets: Sets) =>
  textIn(generated('containerd', sets).at(-1), `/etc/containerd/certs.d/${registry}/hosts.toml`);

describe('image mirrors', () => {
  it('are generated for the pools that have no other pool to get them from', () => {
    const configs = generated('crio', { digest: [idms('a', { source: 'quay.io/x', mirrors: ['m.io/x'] })] });
    expect(configs.map(({ metadata }) => [metadata.name, metadata.labels])).toEqual([
      ['99-master-generated-registries', { [flavour.roleLabel]: 'master' }],
      ['99-worker-generated-registries', { [flavour.roleLabel]: 'worker' }],
    ]);
  });

  it.each<[string, Sets]>([
    ['no sets', {}],
    ['a set without entries', { digest: [idms('a')] }],
    ['an entry without mirrors', { digest: [idms('a', { source: 'quay.io' })] }],
    [
      'a set that is being deleted',
      {
        digest: [
          {
            metadata: { name: 'a', deletionTimestamp: '2026-01-01T00:00:00Z' },
            spec: { imageDigestMirrors: [{ source: 'quay.io', mirrors: ['m.io'] }] },
          },
        ],
      },
    ],
  ])('are nothing with %s', (_, sets) => {
    expect(generate('crio', sets)).toEqual([]);
    expect(generate('containerd', sets)).toEqual([]);
  });

  it('keep the order that each set gives them, whatever the names of the sets', () => {
    const tail = idms('a', { source: 's.io', mirrors: ['b.io', 'c.io'] });
    const head = idms('z', { source: 's.io', mirrors: ['a.io', 'b.io'] });
    const order = ['a.io digest-only', 'b.io digest-only', 'c.io digest-only'];
    expect(mirrorsOf(conf({ digest: [tail, head] }))).toEqual(order);
    expect(mirrorsOf(conf({ digest: [head, tail] }))).toEqual(order);
  });

  it('come out all the same where two sets give them opposite orders', () => {
    const digest = [
      idms('a', { source: 's.io', mirrors: ['b.io', 'c.io'] }),
      idms('b', { source: 's.io', mirrors: ['c.io', 'b.io'] }),
    ];
    expect(mirrorsOf(conf({ digest }))).toEqual(['b.io digest-only', 'c.io digest-only']);
  });

  it.each<[string, Sets, string]>([
    [
      'of two minds about the source',
      {
        digest: [idms('one', { source: 's.io', mirrors: ['a.io'], mirrorSourcePolicy: never })],
        tag: [itms('two', { source: 's.io', mirrors: ['a.io'], mirrorSourcePolicy: allow })],
      },
      'ImageDigestMirrorSet one says NeverContactSource for s.io, and ImageTagMirrorSet two AllowContactingSource',
    ],
    [
      'that have a source which is never asked among its own mirrors',
      { digest: [idms('one', { source: 's.io', mirrors: ['a.io', 's.io'], mirrorSourcePolicy: never })] },
      'ImageDigestMirrorSet one has s.io as a mirror of itself',
    ],
    [
      'with a scheme',
      { digest: [idms('one', { source: 's.io', mirrors: ['https://a.io'] })] },
      'ImageDigestMirrorSet one: spec.imageDigestMirrors[0].mirrors[0]: must be a registry',
    ],
    [
      'with a tag in the source',
      { tag: [itms('two', { source: 's.io/app:latest', mirrors: ['a.io'] })] },
      'ImageTagMirrorSet two: spec.imageTagMirrors[0].source: must be a registry',
    ],
    [
      'with a wildcard in the middle',
      { digest: [idms('one', { source: 'a.*.io', mirrors: ['a.io'] })] },
      'spec.imageDigestMirrors[0].source: must be a registry',
    ],
    [
      'with a misspelt key',
      { digest: [idms('one', { source: 's.io', mirors: ['a.io'] } as Entry)] },
      'mirors: unknown key; did you mean "mirrors"?',
    ],
  ])('%s are refused with the reason', (_, sets, message) => {
    for (const runtime of ['crio', 'containerd'] as const) {
      const result = generate(runtime, sets);
      expect(result).toMatchObject({ message: expect.stringContaining(message) as string });
    }
  });

  it('are never only half of what the sets say', () => {
    const good = idms('good', { source: 'good.io', mirrors: ['m.io'] });
    const bad = idms('bad', { source: 's.io', mirrors: ['s.io'], mirrorSourcePolicy: never });
    expect(generate('crio', { digest: [good, bad] })).toMatchObject({ reason: 'ConflictingMirrors' });
  });
});

describe('image mirrors for CRI-O', () => {
  it('are a registries.conf that says by what each mirror is asked', () => {
    const text = conf({
      digest: [
        idms('a', { source: 'quay.io/org', mirrors: ['m.io:5000/org', 'both.io/org'], mirrorSourcePolicy: never }),
        idms('b', { source: '*.example.com', mirrors: ['m.io/example'] }),
      ],
      tag: [itms('t', { source: 'quay.io/org', mirrors: ['both.io/org', 'tags.io/org'] })],
    });
    expect(text).toBe(
      [
        '[[registry]]',
        'prefix = "*.example.com"',
        '',
        '[[registry.mirror]]',
        'location = "m.io/example"',
        'pull-from-mirror = "digest-only"',
        '',
        '[[registry]]',
        'location = "quay.io/org"',
        'blocked = true',
        '',
        '[[registry.mirror]]',
        'location = "m.io:5000/org"',
        'pull-from-mirror = "digest-only"',
        '',
        '[[registry.mirror]]',
        'location = "both.io/org"',
        'pull-from-mirror = "all"',
        '',
        '[[registry.mirror]]',
        'location = "tags.io/org"',
        'pull-from-mirror = "tag-only"',
        '',
      ].join('\n'),
    );
  });

  it('keep what a MachineConfig of the pool says of other registries', () => {
    const present = [
      'unqualified-search-registries = ["docker.io"]',
      '[[registry]]',
      'location = "s.io"',
      'insecure = true',
      '[[registry]]',
      'prefix = "other.io"',
      'location = "elsewhere.io"',
    ].join('\n');
    const machineConfigs = [withFile('01-worker-container-runtime', 'worker', CONF, present)];
    const settings = parse(conf({ digest: [idms('a', { source: 's.io', mirrors: ['m.io'] })], machineConfigs }));
    expect(settings).toEqual({
      'unqualified-search-registries': ['docker.io'],
      registry: [
        { prefix: 'other.io', location: 'elsewhere.io' },
        { location: 's.io', mirror: [{ location: 'm.io', 'pull-from-mirror': 'digest-only' }] },
      ],
    });
  });

  it('come out the same once they are there', () => {
    const digest = [idms('a', { source: 's.io', mirrors: ['m.io'] })];
    const first = generated('crio', { digest });
    expect(generated('crio', { digest, machineConfigs: [...first] })).toEqual(first);
  });

  it.each([
    ['no TOML', '[[registry\n', 'is no TOML, line'],
    ['version 1', '[registries.search]\nregistries = ["docker.io"]\n', 'is in version 1 of its format'],
  ])('are refused where the present registries.conf is %s', (_, present, message) => {
    const machineConfigs = [withFile('50-registries', 'worker', CONF, present)];
    const digest = [idms('a', { source: 's.io', mirrors: ['m.io'] })];
    expect(generate('crio', { digest, machineConfigs })).toMatchObject({
      reason: 'UnreadablePresent',
      message: expect.stringContaining(`${CONF} of MachineConfig 50-registries ${message}`) as string,
    });
  });

  it('are written so that a new mirror for digests costs the nodes nothing, and one for tags is not taken for that', () => {
    const before = conf({ digest: [idms('a', { source: 's.io', mirrors: ['m.io'] })] });
    const digest = [idms('a', { source: 's.io', mirrors: ['m.io', 'n.io'] }, { source: 't.io', mirrors: ['n.io'] })];
    expect(isRegistriesChangeHarmless(before, conf({ digest }))).toBe(true);
    const tag = [itms('t', { source: 's.io', mirrors: ['n.io'] })];
    const tagged = conf({ digest: [idms('a', { source: 's.io', mirrors: ['m.io'] })], tag });
    expect(isRegistriesChangeHarmless(before, tagged)).toBe(false);
  });
});

describe('image mirrors for containerd', () => {
  it('are a hosts.toml a registry; by digests alone a mirror is not asked what a tag means', () => {
    const sets = {
      digest: [idms('a', { source: 'docker.io', mirrors: ['m.io:5000', 'both.io/hub'] })],
      tag: [itms('t', { source: 'docker.io', mirrors: ['both.io/hub'] }, { source: 'quay.io:443', mirrors: ['q.io'] })],
    };
    const [config] = generated('containerd', sets);
    expect(pathsIn(config)).toEqual([
      '/etc/containerd/certs.d/docker.io/hosts.toml',
      '/etc/containerd/certs.d/quay.io:443/hosts.toml',
    ]);
    expect(hosts('docker.io', sets)).toBe(
      [
        '[host."https://m.io:5000"]',
        'capabilities = [ "pull" ]',
        '',
        '[host."https://both.io/v2/hub"]',
        'capabilities = [ "pull", "resolve" ]',
        'override_path = true',
        '',
      ].join('\n'),
    );
  });

  it('put the last mirror in the place of a source that is never asked', () => {
    const digest = [idms('a', { source: 's.io', mirrors: ['m.io', 'n.io/x'], mirrorSourcePolicy: never })];
    expect(hosts('s.io', { digest })).toBe(
      [
        'server = "https://n.io/v2/x"',
        'capabilities = [ "pull" ]',
        'override_path = true',
        '',
        '[host."https://m.io"]',
        'capabilities = [ "pull" ]',
        '',
      ].join('\n'),
    );
  });

  it.each<[string, Entry, string]>([
    [
      'a repository as the source',
      { source: 's.io/org', mirrors: ['m.io'] },
      'only for a whole registry; write source: s.io',
    ],
    ['a wildcard', { source: '*.s.io', mirrors: ['m.io'] }, 'containerd has no mirrors for *.s.io'],
    ['a block without a mirror', { source: 's.io', mirrorSourcePolicy: never }, 'containerd cannot block s.io'],
  ])('are refused for %s', (_, entry, message) => {
    expect(generate('containerd', { digest: [idms('a', entry)] })).toMatchObject({
      reason: 'NotInContainerd',
      message: expect.stringContaining(message) as string,
    });
  });
});
