import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { apiFlavour } from '../../../machine-config/api/flavour.js';
import { parseIgnition } from '../../../machine-config/ignition/parse.js';
import type { IgnitionConfig } from '../../../machine-config/ignition/config.js';
import { mergeConfigs } from '../../../machine-config/ignition/merge.js';
import { verifyRenderedName } from '../../../machine-config/render/name.js';
import { formatRenderFinding, renderPool } from '../../../machine-config/render/render-pool.js';
import type { MachineConfigObject } from '../../../machine-config/render/select.js';

const flavour = apiFlavour('openshift');
const render = (machineConfigs: readonly MachineConfigObject[]) => renderPool({ pool: 'p', machineConfigs, flavour });

const maybe = <T>(values: fc.Arbitrary<T>) => fc.option(values, { nil: undefined });
const list = <T>(entry: fc.Arbitrary<T>, key: (entry: T) => string) =>
  fc.uniqueArray(entry, { selector: key, maxLength: 3 });

const owner = fc.oneof(fc.record({ id: fc.nat(3) }), fc.record({ name: fc.constantFrom('core', 'root') }));
const file = fc.record({
  path: fc.constantFrom('/a', '/b', '/c'),
  mode: maybe(fc.constantFrom(0o600, 0o644)),
  user: maybe(owner),
  overwrite: maybe(fc.boolean()),
  contents: fc.constantFrom(
    { source: 'data:,x' },
    { source: 'data:;base64,eA==' },
    { source: 'data:,y', compression: '' },
  ),
});
const link = fc.record({
  path: fc.constantFrom('/l', '/m'),
  target: fc.constantFrom('/x', '/y'),
  hard: maybe(fc.boolean()),
});
const directory = fc.record({ path: fc.constantFrom('/d', '/e'), mode: maybe(fc.constant(0o755)) });
const dropin = fc.record({
  name: fc.constantFrom('1.conf', '2.conf'),
  contents: maybe(fc.constantFrom('', '[Unit]\n')),
});
const unit = fc.record({
  name: fc.constantFrom('a.service', 'b.timer'),
  enabled: maybe(fc.boolean()),
  mask: maybe(fc.boolean()),
  contents: maybe(fc.constantFrom('', '[Unit]\nA=b\n')),
  dropins: maybe(list(dropin, ({ name }) => name)),
});
const config = fc.record({
  ignition: fc.constant({ version: '3.4.0' }),
  passwd: maybe(
    fc.record({
      users: fc.array(
        fc.record({ name: fc.constant('core'), sshAuthorizedKeys: fc.uniqueArray(fc.constantFrom('k1', 'k2', 'k3')) }),
        { maxLength: 1 },
      ),
    }),
  ),
  storage: maybe(
    fc.record({
      files: list(file, ({ path }) => path),
      links: list(link, ({ path }) => path),
      directories: list(directory, ({ path }) => path),
    }),
  ),
  systemd: maybe(fc.record({ units: list(unit, ({ name }) => name) })),
});
const machineConfig = fc.record({
  metadata: fc.record({
    name: fc.constantFrom('10-a', '20-b', '99-c', '100-d'),
    labels: fc.record({ [flavour.roleLabel]: fc.constantFrom('worker', 'infra') }),
  }),
  spec: fc.record({
    config: maybe(config),
    kernelArguments: maybe(fc.array(fc.constantFrom('a', 'b', 'a=1 b="2 3"'), { maxLength: 3 })),
    extensions: maybe(fc.subarray(['usbguard', 'ipsec'])),
    fips: maybe(fc.boolean()),
    kernelType: maybe(fc.constantFrom('', 'default', 'realtime', '64k-pages')),
    osImageURL: maybe(fc.constantFrom('', 'x', 'y')),
  }),
});
const pool = fc.array(machineConfig, { minLength: 1, maxLength: 4 });

function parsed(value: unknown): IgnitionConfig {
  const result = parseIgnition(JSON.parse(JSON.stringify(value)));
  if (result.config === undefined) throw new Error(result.problems[0]?.message ?? 'empty');
  return result.config;
}

describe('rendering', () => {
  it('does not depend on the order of the MachineConfigs', () => {
    fc.assert(
      fc.property(
        pool.chain((all) => fc.tuple(fc.constant(all), fc.shuffledSubarray(all, { minLength: all.length }))),
        ([all, shuffled]) => {
          expect(render(shuffled)).toEqual(render(all));
        },
      ),
    );
  });

  it('of what was rendered gives the same again', () => {
    fc.assert(
      fc.property(pool, (all) => {
        const once = render(all);
        expect(once.outcome).toBe('rendered');
        if (once.outcome === 'refused') return;
        const again = render([once.config]);
        expect(again).toMatchObject({ outcome: 'rendered', config: once.config });
        expect(verifyRenderedName(once.config)).toBe(true);
      }),
    );
  });

  it('of a MachineConfig and an empty one is that of the first alone', () => {
    fc.assert(
      fc.property(machineConfig, (one) => {
        const empty = { metadata: { name: '00-empty' }, spec: { config: { ignition: { version: '3.1.0' } } } };
        const name = (all: MachineConfigObject[]) => {
          const result = render(all);
          return result.outcome === 'rendered' ? result.config.metadata.name : result.reason;
        };
        expect(name([one, empty])).toBe(name([one]));
      }),
    );
  });

  it('writes each problem of any input whatever on one line and never crashes', () => {
    const json = fc.jsonValue({ maxDepth: 4 });
    const text = fc.string({ unit: 'binary' });
    const near = fc.oneof(
      json,
      fc.record({
        ignition: fc.record({ version: fc.constantFrom('2.2.0', '3.4.0') }),
        storage: json,
        systemd: json,
        passwd: json,
      }),
      fc.record({
        ignition: fc.record({ version: fc.constantFrom('2.2.0', '3.4.0'), config: json, security: json }),
        storage: fc.record({
          files: fc.array(fc.oneof(json, fc.record({ path: text, contents: json, mode: json }))),
        }),
        systemd: fc.record({ units: fc.array(fc.record({ name: text, contents: text, dropins: json })) }),
        passwd: fc.record({ users: fc.array(fc.oneof(json, fc.record({ name: text }))) }),
      }),
    );
    const spec = fc.oneof(json, fc.record({ config: near, kernelArguments: json, extensions: json, osImageURL: text }));
    const metadata = fc.oneof(json, fc.record({ name: json, labels: json, annotations: json }));
    const anything = fc.record({ metadata, spec }) as fc.Arbitrary<MachineConfigObject>;
    fc.assert(
      fc.property(fc.array(anything, { maxLength: 3 }), (all) => {
        const result = render(all);
        if (result.outcome === 'rendered') return;
        expect(result.problems.length).toBeGreaterThan(0);
        for (const problem of result.problems) expect(formatRenderFinding(problem)).toMatch(/^[^\n\r]+$/);
      }),
      { numRuns: 500 },
    );
  });
});

describe('merging configs', () => {
  it('is associative as long as no path changes its kind', () => {
    fc.assert(
      fc.property(config, config, config, (a, b, c) => {
        const [x, y, z] = [parsed(a), parsed(b), parsed(c)];
        expect(mergeConfigs(mergeConfigs(x, y), z)).toEqual(mergeConfigs(x, mergeConfigs(y, z)));
      }),
    );
  });

  it('of a config with itself changes nothing', () => {
    fc.assert(
      fc.property(config, (a) => {
        expect(mergeConfigs(parsed(a), parsed(a))).toEqual(parsed(a));
      }),
    );
  });
});
