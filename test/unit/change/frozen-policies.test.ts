import { describe, expect, it } from 'vitest';
import { DRYDOCK_ANNOTATIONS } from '../../../machine-config/api/flavour.js';
import { FrozenPoliciesError, freezePolicies, readPolicies } from '../../../machine-config/change/frozen-policies.js';
import { DEFAULT_POLICIES, defaultPolicies, mergePolicies } from '../../../machine-config/change/policies.js';

const own = mergePolicies({
  files: [{ path: '/etc/a', actions: [{ type: 'Restart', restart: { serviceName: 'a.service' } }] }],
});
const config = (text?: string, apiVersion = 'machineconfiguration.openshift.io/v1') => ({
  apiVersion,
  metadata: {
    name: 'rendered-worker-1',
    ...(text === undefined ? {} : { annotations: { [DRYDOCK_ANNOTATIONS.disruptionPolicies]: text } }),
  },
});

describe('readPolicies', () => {
  it.each([
    ['the built-in ones', DEFAULT_POLICIES, undefined],
    ['those of a MachineConfiguration', own, 7],
    ['those of the other group', defaultPolicies({ name: 'alauda' }), 1],
  ])('reads back what was frozen: %s', (_, policies, generation) => {
    expect(readPolicies(config(freezePolicies(policies, generation)))).toEqual(policies);
  });

  it('takes the built-in ones of the group where nothing is frozen', () => {
    expect(readPolicies(config())).toEqual(DEFAULT_POLICIES);
    expect(readPolicies(config(''))).toEqual(DEFAULT_POLICIES);
    const alauda = readPolicies(config(undefined, 'machineconfiguration.alauda.io/v1alpha1'));
    expect(alauda).toEqual(defaultPolicies({ name: 'alauda' }));
  });

  it.each([
    ['no JSON', '{'],
    ['a list', '[]'],
    ['null', 'null'],
    ['an action that there is not', freezePolicies(own, 1).replace('"Restart"', '"Explode"')],
    ['an action without its service', freezePolicies(own, 1).replace(/"restart":\{[^}]*\},?/u, '')],
    ['an origin that there is not', freezePolicies(own, 1).replace('"user"', '"me"')],
    ['a field too many', freezePolicies(own, 1).replace('{', '{"more":1,')],
    ['a field too few', JSON.stringify({ files: [], units: [], sshkey: own.sshkey })],
  ])('refuses what it cannot read instead of guessing: %s', (_, text) => {
    const read = () => readPolicies(config(text));
    expect(read).toThrow(FrozenPoliciesError);
    expect(read).toThrow(/disruption-policies of MachineConfig rendered-worker-1 .*remove the annotation/);
  });
});
