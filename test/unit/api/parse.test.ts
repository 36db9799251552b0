import { describe, expect, it } from 'vitest';
import {
  parseMachineConfig,
  parseMachineConfigPool,
  parseMachineConfiguration,
  type Parsed,
} from '../../../machine-config/api/parse.js';

const machineConfig = (spec: unknown, metadata: object = { name: '50-a' }) => ({
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineConfig',
  metadata,
  spec,
});
const pool = (spec: unknown, rest: object = {}) => ({
  kind: 'MachineConfigPool',
  metadata: { name: 'p' },
  spec,
  ...rest,
});
const policy = (nodeDisruptionPolicy: unknown) => ({
  kind: 'MachineConfiguration',
  metadata: { name: 'cluster' },
  spec: { nodeDisruptionPolicy },
});

/** The problems as a person reads them: `path: message`. */
function problemsOf(parsed: Parsed<unknown>): string[] {
  return parsed.ok ? [] : parsed.problems.map(({ path, message }) => `${path}: ${message}`);
}

describe('parseMachineConfig', () => {
  it('hands the Ignition config on as it was written, nulls and unknown keys included', () => {
    const config = { ignition: { version: '3.4.0' }, storage: { files: null, fils: [{ mode: '0644' }] } };
    const parsed = parseMachineConfig(machineConfig({ config, kernelArguments: ['quiet'] }));
    expect(parsed).toMatchObject({ ok: true, value: { spec: { config, kernelArguments: ['quiet'] } } });
  });

  it('takes null as absent, as the API server does', () => {
    const parsed = parseMachineConfig(
      machineConfig(
        { config: null, kernelArguments: null, extensions: null, fips: null, osImageURL: null },
        { name: '50-a', creationTimestamp: null, labels: null },
      ),
    );
    expect(parsed.ok && parsed.value.metadata).toEqual({ name: '50-a' });
    expect(parsed.ok && parsed.value.spec).toEqual({});
  });

  it('accepts a config without spec', () => {
    expect(parseMachineConfig({ kind: 'MachineConfig', metadata: { name: 'a' } })).toMatchObject({ ok: true });
  });

  it.each<[string, unknown, string]>([
    [
      'kernelArgs',
      machineConfig({ kernelArguments: [], kernelArgument: ['a'] }),
      'spec.kernelArgument: unknown key; did you mean "kernelArguments"?',
    ],
    ['capitals', machineConfig({ KernelType: 'realtime' }), 'spec.KernelType: unknown key; did you mean "kernelType"?'],
    [
      'swapped letters',
      machineConfig({}, { name: 'a', lables: {} }),
      'metadata.lables: unknown key; did you mean "labels"?',
    ],
    [
      'an Ignition section in spec',
      machineConfig({ storage: {} }),
      'spec.storage: unknown key; it belongs in spec.config',
    ],
    ['a key of spec at the top', { ...machineConfig({}), fips: true }, 'fips: unknown key; did you mean spec.fips?'],
    [
      'a key like no other',
      machineConfig({ selector: {} }),
      'spec.selector: unknown key; known here: osImageURL, baseOSExtensionsContainerImage, config, kernelArguments, extensions, fips, kernelType',
    ],
    [
      'a string for a list',
      machineConfig({ kernelArguments: 'a b' }),
      'spec.kernelArguments: expected a list, found the string "a b"',
    ],
    [
      'a number in a list',
      machineConfig({ extensions: ['usbguard', 7] }),
      'spec.extensions[1]: expected a string, found 7',
    ],
    [
      'null in a list',
      machineConfig({ kernelArguments: [null] }),
      'spec.kernelArguments[0]: expected a string, found null',
    ],
    [
      'a string for a boolean',
      machineConfig({ fips: 'yes' }),
      'spec.fips: expected true or false, found the string "yes"',
    ],
    ['a config as text', machineConfig({ config: '{}' }), 'spec.config: expected an object, found the string "{}"'],
    [
      'a label that is a number',
      machineConfig({}, { name: 'a', labels: { 'x.io/role': 1 } }),
      'metadata.labels["x.io/role"]: expected a string, found 1',
    ],
    ['no name', machineConfig({}, {}), 'metadata.name: is missing'],
    ['no metadata', { kind: 'MachineConfig', spec: {} }, 'metadata: is missing'],
    ['another kind', { ...machineConfig({}), kind: 'Pod' }, 'kind: expected "MachineConfig", found the string "Pod"'],
  ])('finds %s', (_what, value, problem) => {
    expect(problemsOf(parseMachineConfig(value))).toEqual([problem]);
  });

  it('finds a name that Kubernetes would refuse', () => {
    expect(problemsOf(parseMachineConfig(machineConfig({}, { name: '50_A' })))).toEqual([
      'metadata.name: must consist of lower-case letters, digits, "-" and ".", and begin and end with a letter or digit',
    ]);
  });

  it('does not repeat a long text, which may be a secret', () => {
    const secret = 'ssh-ed25519 '.padEnd(300, 'x');
    expect(problemsOf(parseMachineConfig(machineConfig({ config: secret })))).toEqual([
      'spec.config: expected an object, found a string of 300 characters',
    ]);
  });

  it('returns all problems at once', () => {
    expect(problemsOf(parseMachineConfig(machineConfig({ fips: 1, kernelTyp: 'x', osImageURL: [] })))).toHaveLength(3);
  });

  it.each([[undefined], [null], ['text'], [7], [[]], [[{}]]])('refuses %j without throwing', (value) => {
    expect(parseMachineConfig(value).ok).toBe(false);
  });

  it('is not misled by keys with names of the prototype', () => {
    const value: unknown = JSON.parse(
      '{"kind":"MachineConfig","metadata":{"name":"a"},"spec":{"__proto__":{},"constructor":1}}',
    );
    expect(parseMachineConfig(value).ok).toBe(false);
  });
});

describe('parseMachineConfigPool', () => {
  it.each([1, 0, '10%', '3'])('takes maxUnavailable %j as it is written', (maxUnavailable) => {
    expect(parseMachineConfigPool(pool({ maxUnavailable }))).toMatchObject({
      ok: true,
      value: { spec: { maxUnavailable } },
    });
  });

  it.each([
    [1.5, '1.5'],
    [true, 'true'],
    [['1'], 'a list'],
  ])('refuses maxUnavailable %j', (maxUnavailable, found) => {
    expect(problemsOf(parseMachineConfigPool(pool({ maxUnavailable })))).toEqual([
      `spec.maxUnavailable: expected an integer or a percentage such as "10%", found ${found}`,
    ]);
  });

  it('finds misspelt keys inside selectors', () => {
    const value = pool({ nodeSelector: { matchLables: { a: 'b' } }, machineConfigSelector: { matchExpression: [] } });
    expect(problemsOf(parseMachineConfigPool(value))).toEqual([
      'spec.machineConfigSelector.matchExpression: unknown key; did you mean "matchExpressions"?',
      'spec.nodeSelector.matchLables: unknown key; did you mean "matchLabels"?',
    ]);
  });

  it.each([
    { key: 'a', operator: 'In' },
    { key: 'a', operator: 'NotIn', values: [] },
    { key: 'a', operator: 'Exists', values: ['b'] },
  ])('finds values that do not go with the operator: %j', (requirement) => {
    expect(problemsOf(parseMachineConfigPool(pool({ nodeSelector: { matchExpressions: [requirement] } })))).toEqual([
      'spec.nodeSelector.matchExpressions[0]: values are needed with the operators In and NotIn, and not allowed with Exists and DoesNotExist',
    ]);
  });

  it('requires a spec', () => {
    expect(problemsOf(parseMachineConfigPool({ kind: 'MachineConfigPool', metadata: { name: 'p' } }))).toEqual([
      'spec: is missing',
    ]);
  });

  it('reads a status of a newer version and leaves out what it does not know', () => {
    const parsed = parseMachineConfigPool(pool({}, { status: { machineCount: 3, futureCount: 4, conditions: null } }));
    expect(parsed.ok && parsed.value.status).toEqual({ machineCount: 3 });
  });
});

describe('parseMachineConfiguration', () => {
  it('accepts a disruption policy with every action', () => {
    const crio = { serviceName: 'crio.service' };
    const value = policy({
      files: [
        { path: '/etc/a', actions: [{ type: 'Drain' }, { type: 'Reload', reload: crio }, { type: 'DaemonReload' }] },
        { path: '/etc/b', actions: [{ type: 'Reboot' }] },
      ],
      units: [{ name: 'crio.service', actions: [{ type: 'Restart', restart: crio }] }],
      sshkey: { actions: [{ type: 'None' }] },
    });
    expect(problemsOf(parseMachineConfiguration(value))).toEqual([]);
  });

  it.each<[string, unknown, string]>([
    ['Reboot beside others', [{ type: 'Reboot' }, { type: 'Drain' }], 'Reboot can only be the one action'],
    ['None beside others', [{ type: 'DaemonReload' }, { type: 'None' }], 'None can only be the one action'],
    ['Reload without a service', [{ type: 'Reload' }], 'reload is needed with type Reload'],
    [
      'a service to restart with Reload',
      [{ type: 'Drain', restart: { serviceName: 'a.service' } }],
      'restart is needed with type Restart',
    ],
    [
      'an action of the status only',
      [{ type: 'Special' }],
      'expected "Reboot", "Drain", "Reload", "Restart", "DaemonReload", "None"',
    ],
    [
      'a service without a suffix',
      [{ type: 'Restart', restart: { serviceName: 'crio' } }],
      'must be the full name of a systemd unit',
    ],
    ['eleven actions', Array.from({ length: 11 }, () => ({ type: 'Drain' })), 'has more than 10 entries'],
  ])('refuses %s', (_what, actions, message) => {
    const problems = problemsOf(parseMachineConfiguration(policy({ sshkey: { actions } })));
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(message);
  });

  it('refuses two policies for one file', () => {
    const file = { path: '/etc/a', actions: [] };
    expect(problemsOf(parseMachineConfiguration(policy({ files: [file, file] })))).toEqual([
      'spec.nodeDisruptionPolicy.files: two entries have the same path',
    ]);
  });

  it('refuses any name but cluster', () => {
    const parsed = parseMachineConfiguration({ kind: 'MachineConfiguration', metadata: { name: 'other' }, spec: {} });
    expect(problemsOf(parsed)).toEqual([': there is one MachineConfiguration, and its name is "cluster"']);
  });
});
