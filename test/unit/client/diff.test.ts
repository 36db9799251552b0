import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import type { DiffReport } from '../../../client/offline-diff.js';
import { DRYDOCK_ANNOTATIONS } from '../../../machine-config/api/flavour.js';
import type { EffectiveDisruptionAction } from '../../../machine-config/api/node-disruption-policy.js';
import { freezePolicies } from '../../../machine-config/change/frozen-policies.js';
import { mergePolicies } from '../../../machine-config/change/policies.js';
import { FakeTerminal } from '../../support/command-run.js';

/** What the reference implementation answers; see its README for how the answers were obtained. */
const root = fileURLToPath(new URL('../../data/oracle-change/', import.meta.url));
const cases = readdirSync(root).filter((name) => existsSync(join(root, name, 'new.json')));
interface Answer {
  readonly changedFiles: string[];
  readonly unitsAdded: string[];
  readonly unitsUpdated: string[];
  readonly unitsRemoved: string[];
  readonly actions: EffectiveDisruptionAction[];
  readonly drain: boolean;
}
const answer = (name: string, kind: string) =>
  JSON.parse(readFileSync(join(root, name, `actions-${kind}.json`), 'utf8')) as Answer;

const reload = { type: 'Reload', reload: { serviceName: 'crio.service' } } as const;
const DRAINED_RELOAD: EffectiveDisruptionAction[] = [{ type: 'Drain' }, reload];
const APP: EffectiveDisruptionAction[] = [
  { type: 'DaemonReload' },
  { type: 'Restart', restart: { serviceName: 'app.service' } },
];
const NOT_COMPARED = 'a config that cannot be rendered is refused by its own problem and not compared';
const SPECIAL = 'Special is written out as what it does';

/** Where we decide otherwise: our answer, and the reason. Whatever is not here must be equal. */
const VERDICTS: Record<string, [string, string]> = {
  luks: ['irreconcilable', 'accepted there and then ignored: a running node cannot encrypt a volume'],
  'ign-proxy': ['irreconcilable', 'accepted there and then ignored: only first boot fetches anything'],
};
const ANSWERS: Record<string, [Partial<Answer>, string]> = {
  'registries-mirror-any default': [{ actions: DRAINED_RELOAD }, SPECIAL],
  'registries-mirror-any user': [{ actions: DRAINED_RELOAD }, SPECIAL],
  'registries-mirror-digest-only default': [{ actions: [reload] }, SPECIAL],
  'registries-mirror-digest-only user': [{ actions: [reload] }, SPECIAL],
  'policy-two user': [{ actions: APP }, 'a restart makes the reload pointless'],
  'file-append default': [{ changedFiles: [], actions: [], drain: false }, NOT_COMPARED],
  'file-append user': [{ changedFiles: [], actions: [], drain: false }, NOT_COMPARED],
};

async function report(...words: string[]): Promise<{ code: number; report: DiffReport; err: string }> {
  const { code, out, err } = await new FakeTerminal().run('diff', ...words, '--output', 'json');
  return { code, report: JSON.parse(out) as DiffReport, err };
}
const asSet = (actions: readonly EffectiveDisruptionAction[]) => actions.map((action) => JSON.stringify(action)).sort();

it('has all cases of the reference, and knows those in which it differs', () => {
  expect(cases).toHaveLength(38);
  const known = [...Object.keys(VERDICTS), ...Object.keys(ANSWERS).map((key) => key.split(' ')[0] ?? '')];
  expect(known.filter((name) => !cases.includes(name))).toEqual([]);
});

describe.each(cases)('drydock diff of the change %s', (name) => {
  it.each(['default', 'user'])('answers as the reference does under the %s policies', async (kind) => {
    const policy = kind === 'user' ? ['--policy', join(root, 'POLICY.json')] : [];
    const found = await report(join(root, 'OLD.json'), join(root, name, 'new.json'), ...policy);
    const verdict = VERDICTS[name]?.[0] ?? readFileSync(join(root, name, 'verdict'), 'utf8').trim();
    const reference = { ...answer(name, kind), ...ANSWERS[`${name} ${kind}`]?.[0] };
    expect(found.report.reconcilable ? 'reconcilable' : 'irreconcilable').toBe(verdict);
    expect(found.report.reasons.length > 0).toBe(!found.report.reconcilable);
    expect(found.code).toBe(found.report.reconcilable ? 0 : 1);
    expect([...found.report.changedFiles].sort()).toEqual([...reference.changedFiles].sort());
    expect(found.report.units).toEqual({
      added: reference.unitsAdded,
      changed: reference.unitsUpdated,
      removed: reference.unitsRemoved,
    });
    expect(asSet(found.report.actions)).toEqual(asSet(reference.actions));
    expect(found.report.drain).toBe(reference.drain);
    expect(found.report.reboot).toBe(reference.actions.some(({ type }) => type === 'Reboot'));
  });
});

describe('drydock diff', () => {
  let folder: string;
  beforeAll(() => (folder = mkdtempSync(join(tmpdir(), 'drydock-diff-'))));
  afterAll(() => rmSync(folder, { recursive: true }));
  const GROUP = 'machineconfiguration.openshift.io/v1';

  function write(
    name: string,
    paths: string[],
    { group = GROUP, annotations = {}, ...spec }: WriteOptions = {},
  ): string {
    const files = paths.map((path) => ({ path, contents: { source: 'data:,secret-text' } }));
    const config = { ignition: { version: '3.4.0' }, storage: { files } };
    const metadata = { name: 'rendered-worker-1', annotations };
    const file = join(folder, name);
    writeFileSync(file, stringify({ apiVersion: group, kind: 'MachineConfig', metadata, spec: { config, ...spec } }));
    return file;
  }
  interface WriteOptions {
    readonly group?: string;
    readonly annotations?: Record<string, string>;
    readonly kernelArguments?: string[];
  }

  it('prints exactly the fields that programs are promised', async () => {
    const { report: found } = await report(write('a.yaml', []), write('b.yaml', ['/etc/b']));
    expect(found).toEqual({
      reconcilable: true,
      reasons: [],
      changedFiles: ['/etc/b'],
      units: { added: [], changed: [], removed: [] },
      actions: [{ type: 'Reboot' }],
      drain: true,
      reboot: true,
    });
  });

  it('takes the policies that the new config carries, and those of a file before them', async () => {
    const policies = mergePolicies({ files: [{ path: '/etc/b', actions: [{ type: 'Drain' }] }] });
    const annotations = { [DRYDOCK_ANNOTATIONS.disruptionPolicies]: freezePolicies(policies, 1) };
    const [old, next] = [write('a.yaml', []), write('b.yaml', ['/etc/b'], { annotations })];
    expect((await report(old, next)).report.actions).toEqual([{ type: 'Drain' }]);
    expect((await report(old, next, '--policy', join(root, 'POLICY.json'))).report.actions).toEqual([
      { type: 'Reboot' },
    ]);
  });

  it('has the built-in policies of the group, or of the flavour that is asked for', async () => {
    const alauda = { group: 'machineconfiguration.alauda.io/v1alpha1' };
    const [old, next] = [write('a.yaml', [], alauda), write('b.yaml', ['/etc/b'], alauda)];
    expect((await report(old, next)).report.actions).toEqual([{ type: 'None' }]);
    const policy = join(folder, 'none.yaml');
    writeFileSync(policy, stringify({ kind: 'MachineConfiguration', metadata: { name: 'cluster' }, spec: {} }));
    expect((await report(old, next, '--policy', policy)).report.actions).toEqual([{ type: 'None' }]);
    const asked = await report(old, next, '--policy', policy, '--flavour', 'openshift');
    expect(asked.report.actions).toEqual([{ type: 'Reboot' }]);
  });

  it('tells people what changes, what that costs and by whose policy, and no contents', async () => {
    const [old, next] = [write('a.yaml', ['/etc/sysctl.d/90.conf']), write('b.yaml', ['/etc/crio/policies/x'])];
    const policy = join(folder, 'policy.yaml');
    const files = [{ path: '/etc/sysctl.d', actions: [{ type: 'None' }] }];
    const spec = { nodeDisruptionPolicy: { files } };
    writeFileSync(policy, stringify({ kind: 'MachineConfiguration', metadata: { name: 'cluster' }, spec }));
    const { out, code } = await new FakeTerminal().run('diff', old, next, '--policy', policy, '--output', 'text');
    expect(code).toBe(0);
    expect(out).toMatch(
      /file \/etc\/crio\/policies\/x +added +Reload crio\.service +built-in, for \/etc\/crio\/policies/,
    );
    expect(out).toMatch(/file \/etc\/sysctl\.d\/90\.conf +removed +None +own, for \/etc\/sysctl\.d/);
    expect(out).toMatch(/^a node: Reload crio\.service$/m);
    expect(out).toMatch(/what \/etc\/sysctl\.d\/90\.conf has set stays in the kernel until the next reboot/);
    expect(out).not.toContain('secret-text');
  });

  it.each([
    ['the same config', [], {}, /nothing changes on a node/],
    [
      'a kernel argument',
      [],
      { kernelArguments: ['quiet'] },
      /kernel arguments +changed +Reboot +always\n\na node: is drained and reboots/,
    ],
    ['a file that no policy names', ['/etc/b'], {}, /built-in, for what none names/],
  ])('says of %s what it means', async (_, paths, fields, expected) => {
    const { out } = await new FakeTerminal().run('diff', write('a.yaml', []), write('b.yaml', paths, fields));
    expect(out).toMatch(expected);
  });

  it.each([
    ['no config at all', 'kind: ConfigMap', /a\.yaml: has no MachineConfig; give a file with one/],
    [
      'a key that is none',
      `apiVersion: ${GROUP}\nkind: MachineConfig\nmetadata: {name: a}\nspecs: {}`,
      /a\.yaml.*specs/,
    ],
    ['no YAML', 'a: [', /a\.yaml/],
  ])('refuses a file with %s in one line', async (_, text, expected) => {
    const file = join(folder, 'a.yaml');
    writeFileSync(file, text);
    const { code, out, err } = await new FakeTerminal().run('diff', file, write('b.yaml', []));
    expect({ code, out }).toEqual({ code: 1, out: '' });
    expect(err.trim()).toMatch(expected);
    expect(err.trim()).not.toContain('\n');
  });

  it('refuses policies that match nothing', async () => {
    const policy = join(folder, 'policy.yaml');
    const spec = { nodeDisruptionPolicy: { files: [{ path: 'etc/*', actions: [{ type: 'None' }] }] } };
    writeFileSync(policy, stringify({ kind: 'MachineConfiguration', metadata: { name: 'cluster' }, spec }));
    const file = write('a.yaml', []);
    expect((await new FakeTerminal().run('diff', file, file, '--policy', policy)).err).toMatch(/is not absolute/);
  });
});
