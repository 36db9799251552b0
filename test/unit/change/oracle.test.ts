import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { machineConfigSchema } from '../../../machine-config/api/machine-config.js';
import { machineConfigurationSchema } from '../../../machine-config/api/machine-configuration.js';
import type { EffectiveDisruptionAction } from '../../../machine-config/api/node-disruption-policy.js';
import { checkReconcilable } from '../../../machine-config/change/check-reconcilable.js';
import { KERNEL_TYPES } from '../../../machine-config/render/spec.js';
import { EMPTY_CONTENT, type ConfigContent } from '../../../machine-config/change/content.js';
import { diffConfigs } from '../../../machine-config/change/diff-configs.js';
import { disruption, summariseCost } from '../../../machine-config/change/disruption.js';
import { DEFAULT_POLICIES, mergePolicies, type EffectivePolicies } from '../../../machine-config/change/policies.js';
import { ignitionSchema } from '../../../machine-config/ignition/config.js';

/** What the reference implementation answers; see its README for how the answers were obtained. */
const root = new URL('../../data/oracle-change/', import.meta.url);
const cases = readdirSync(root).filter((name) => existsSync(new URL(`${name}/new.json`, root)));

interface Answer {
  changedFiles: string[];
  unitsAdded: string[];
  unitsUpdated: string[];
  unitsRemoved: string[];
  actions: EffectiveDisruptionAction[];
  drain: boolean;
}
const json = (path: string): unknown => JSON.parse(readFileSync(new URL(path, root), 'utf8'));
const answer = (path: string) => json(path) as Answer;

/** Without the checks of rendering, which refuse some of these configs earlier. */
function contentOf(path: string): ConfigContent {
  const { config, kernelArguments, kernelType, ...fields } = machineConfigSchema.parse(json(path)).spec ?? {};
  return {
    ...EMPTY_CONTENT,
    ...fields,
    kernelType: KERNEL_TYPES.find((known) => known === kernelType) ?? EMPTY_CONTENT.kernelType,
    kernelArguments: kernelArguments ?? [],
    config: ignitionSchema.parse(config),
  };
}

const reload = (serviceName: string) => ({ type: 'Reload', reload: { serviceName } }) as const;
const restart = (serviceName: string) => ({ type: 'Restart', restart: { serviceName } }) as const;

/** Where we decide otherwise: our answer and the reason. Whatever is not here must be equal. */
const VERDICTS: Record<string, [string, string]> = {
  luks: ['irreconcilable', 'accepted there and then ignored: a running node cannot encrypt a volume'],
  'ign-proxy': ['irreconcilable', 'accepted there and then ignored: only first boot fetches anything'],
};
const ACTIONS: Record<string, [readonly EffectiveDisruptionAction[], string]> = {
  'registries-mirror-any default': [
    [{ type: 'Drain' }, reload('crio.service')],
    'Special is written out as what it does',
  ],
  'registries-mirror-any user': [[{ type: 'Drain' }, reload('crio.service')], 'Special is written out as what it does'],
  'registries-mirror-digest-only default': [[reload('crio.service')], 'Special is written out as what it does'],
  'registries-mirror-digest-only user': [[reload('crio.service')], 'Special is written out as what it does'],
  'policy-two user': [[{ type: 'DaemonReload' }, restart('app.service')], 'a restart makes the reload pointless'],
};

const old = contentOf('OLD.json');
const user = mergePolicies(machineConfigurationSchema.parse(json('POLICY.json')).spec.nodeDisruptionPolicy);
const asSet = (actions: readonly EffectiveDisruptionAction[]) => actions.map((action) => JSON.stringify(action)).sort();

it('has all cases of the reference', () => {
  expect(cases).toHaveLength(38);
  const known = [...Object.keys(VERDICTS), ...Object.keys(ACTIONS).map((key) => key.split(' ')[0])];
  expect(known.filter((name) => !cases.includes(name ?? ''))).toEqual([]);
});

describe.each(cases)('change %s', (name) => {
  const next = contentOf(`${name}/new.json`);

  it('can or cannot be made on a running node', () => {
    const reference = readFileSync(new URL(`${name}/verdict`, root), 'utf8').trim();
    const verdict = checkReconcilable(old, next, { sshUser: 'core' }).ok ? 'reconcilable' : 'irreconcilable';
    expect(['reconcilable', 'irreconcilable']).toContain(reference);
    expect(verdict).toBe(VERDICTS[name]?.[0] ?? reference);
  });

  it('changes the files and units that the reference names', () => {
    const { files, units } = diffConfigs(old, next);
    const reference = answer(`${name}/actions-default.json`);
    expect([...files.added, ...files.changed, ...files.removed].sort()).toEqual([...reference.changedFiles].sort());
    expect(units).toEqual({
      added: reference.unitsAdded,
      changed: reference.unitsUpdated,
      removed: reference.unitsRemoved,
    });
  });

  it.each<[string, EffectivePolicies]>([
    ['default', DEFAULT_POLICIES],
    ['user', user],
  ])('costs a node the same under the %s policies', (kind, policies) => {
    const reference = answer(`${name}/actions-${kind}.json`);
    const actions = disruption(old, next, policies);
    expect(asSet(actions)).toEqual(asSet(ACTIONS[`${name} ${kind}`]?.[0] ?? reference.actions));
    expect(['drain', 'reboot'].includes(summariseCost(actions))).toBe(reference.drain);
  });
});

it('differs from the reference no more often than it says', () => {
  const differing = cases.flatMap((name) => {
    const next = contentOf(`${name}/new.json`);
    return [['default', DEFAULT_POLICIES] as const, ['user', user] as const].flatMap(([kind, policies]) => {
      const same =
        asSet(disruption(old, next, policies)).join() === asSet(answer(`${name}/actions-${kind}.json`).actions).join();
      return same ? [] : [`${name} ${kind}`];
    });
  });
  expect(differing.sort()).toEqual(Object.keys(ACTIONS).sort());
});
