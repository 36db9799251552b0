import { describe, expect, test } from 'vitest';
import { judgeObject } from '../../../machine-config/admission/judge-object.js';
import type { AdmissionContext } from '../../../machine-config/admission/question.js';
import { apiFlavour } from '../../../machine-config/api/flavour.js';
import { renderPool } from '../../../machine-config/render/render-pool.js';

const flavour = apiFlavour('openshift');
const WORKER = { [flavour.roleLabel]: 'worker' };

const machineConfig = (name: string, config: object = {}, more: object = {}) => ({
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineConfig',
  metadata: { name, labels: WORKER },
  spec: { config: { ignition: { version: '3.4.0' }, ...config }, ...more },
});
const withFile = (file: object, name = '50-file') =>
  machineConfig(name, { storage: { files: [{ path: '/etc/a', contents: { source: 'data:,a' }, ...file }] } });
const pool = (name: string, spec: object = {}) => ({
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineConfigPool',
  metadata: { name },
  spec: {
    machineConfigSelector: { matchLabels: WORKER },
    nodeSelector: { matchLabels: { [`role/${name}`]: '' } },
    ...spec,
  },
});
const context = (more: Partial<AdmissionContext> = {}): AdmissionContext => ({
  flavour,
  nodes: [],
  pools: [],
  machineConfigs: [],
  ...more,
});
const judge = (object: { kind: string }, more: Partial<AdmissionContext> = {}, oldObject?: object) =>
  judgeObject({ kind: object.kind, object, ...(oldObject === undefined ? {} : { oldObject }) }, context(more));

describe('a MachineConfig', () => {
  test.each([
    ['a mode past 0777', withFile({ mode: 4095 }), 'spec.config.storage.files[0].mode: /etc/a: 4095 is 07777'],
    ['an unknown key', withFile({ contnets: { source: 'data:,b' } }), 'spec.config.storage.files[0].contnets'],
    [
      'bad base64',
      withFile({ contents: { source: 'data:;base64,@@@' } }),
      'spec.config.storage.files[0].contents.source',
    ],
    ['remote content', withFile({ contents: { source: 'https://a.example/b' } }), 'remote content (https:)'],
    [
      'a reserved user',
      machineConfig('50-u', { passwd: { users: [{ name: 'root' }] } }),
      'spec.config.passwd.users[0].name: root: is not core',
    ],
    ['a path of its own worker', withFile({ path: '/var/lib/drydock/x' }), 'no MachineConfig may write there'],
    [
      'an unknown Ignition version',
      machineConfig('50-v', { ignition: { version: '9.0.0' } }),
      'spec.config.ignition.version',
    ],
  ])('with %s is refused in the words of render', (_, object, part) => {
    const { refusal } = judge(object);
    expect(refusal).toContain(part);
    expect(refusal).not.toContain('\n');
    const rendered = renderPool({ pool: 'worker', machineConfigs: [object], flavour });
    expect(rendered).toMatchObject({ outcome: 'refused', reason: refusal });
  });

  test('that is right passes, with the warnings of render', () => {
    expect(judge(withFile({ mode: 420 }))).toEqual({ warnings: [] });
    expect(judge(machineConfig('50-d', { storage: { disks: [{ device: '/dev/sdb' }] } })).warnings).toEqual([
      expect.stringContaining('only has an effect at first boot'),
    ]);
  });

  test('that does not go with another of its pool passes with a warning that names both', () => {
    const below = machineConfig('60-below', {
      storage: { files: [{ path: '/etc/a/b', contents: { source: 'data:,' } }] },
    });
    const verdict = judge(below, { pools: [pool('worker')], machineConfigs: [withFile({})] });
    expect(verdict.refusal).toBeUndefined();
    expect(verdict.warnings).toEqual([
      expect.stringMatching(/^MachineConfigPool worker cannot be rendered with it.*60-below.*50-file/),
    ]);
    expect(
      judge(below, { pools: [pool('other', { machineConfigSelector: { matchLabels: { a: 'b' } } })] }).warnings,
    ).toEqual([]);
  });

  test('that was wrong before may be annotated and given up, but not changed', () => {
    const wrong = withFile({ mode: 4095 });
    const annotated = { ...wrong, metadata: { ...wrong.metadata, annotations: { note: 'x' } } };
    expect(judge(annotated, {}, wrong)).toEqual({ warnings: [] });
    const relabelled = { ...wrong, metadata: { ...wrong.metadata, labels: { [flavour.roleLabel]: 'infra' } } };
    expect(judge(relabelled, {}, wrong).refusal).toContain('mode');
    expect(judge(withFile({ mode: 4094 }), {}, wrong).refusal).toContain('mode');
  });
});

describe('a MachineConfigPool', () => {
  test.each([
    ['a limit that is none', pool('infra', { maxUnavailable: 'many' }), 'spec.maxUnavailable'],
    ['an unknown key', pool('infra', { nodeSelektor: {} }), 'spec.nodeSelektor'],
    [
      'a time zone that does not exist',
      pool('infra', { rollout: { windows: { timeZone: 'Europe/Berlim', allow: [{ start: '22:00', length: '4h' }] } } }),
      'spec.rollout.windows.timeZone: "Europe/Berlim" is no time zone',
    ],
  ])('with %s is refused', (_, object, part) => {
    expect(judge(object).refusal).toContain(`MachineConfigPool infra: ${part}`);
  });

  test('that takes nodes of another custom pool is refused, and names both and the nodes', () => {
    const nodes = ['n1', 'n2', 'n3', 'n4'].map((name) => ({ name, labels: { 'role/gpu': '', 'role/infra': '' } }));
    const { refusal } = judge(pool('infra'), { nodes, pools: [pool('gpu'), pool('worker')] });
    expect(refusal).toBe(
      "MachineConfigPool infra: spec.nodeSelector: also selects nodes of the custom pool gpu (n1, n2, n3 and 1 more), and a node can follow one alone: select by a label that only this pool's nodes have",
    );
  });

  test('that takes nodes of worker, as custom pools do, passes; so does a limit of 0, which is a stop', () => {
    const nodes = [{ name: 'n1', labels: { 'role/infra': '', 'role/worker': '' } }];
    expect(judge(pool('infra', { maxUnavailable: 0 }), { nodes, pools: [pool('worker')] })).toEqual({ warnings: [] });
  });
});

test('a MachineConfiguration is judged by its schema, and what is of no known kind is let through', () => {
  const object = { kind: 'MachineConfiguration', metadata: { name: 'cluster' }, spec: { rollout: { maxPools: -1 } } };
  expect(judge(object).refusal).toContain('MachineConfiguration cluster: spec.rollout.maxPools');
  expect(judge({ kind: 'Secret' })).toEqual({ warnings: [] });
});

test.each([
  ['KubeletConfig', { kubeletConfig: { maxPods: 'many' } }, 'spec.kubeletConfig.maxPods'],
  ['ContainerRuntimeConfig', { containerRuntimeConfig: { logLevel: 'loud' } }, 'spec.containerRuntimeConfig.logLevel'],
  ['ControllerConfig', { nodeFlavour: 'other' }, 'spec.nodeFlavour'],
  ['ImageDigestMirrorSet', { imageDigestMirrors: [{ mirrors: ['a.example'] }] }, 'spec.imageDigestMirrors[0].source'],
])('a wrong %s is refused, with the place in it', (kind, spec, place) => {
  const verdict = judge({
    kind,
    metadata: { name: kind === 'ControllerConfig' ? 'machine-config-controller' : 'x' },
    spec,
  } as never);
  expect(verdict.refusal).toContain(`: ${place}: `);
});

test('fields of a KubeletConfig that do not go together by themselves are a warning', () => {
  const evictionSoft = { 'memory.available': '5%' };
  const kubelet = (kubeletConfig: object) => ({
    kind: 'KubeletConfig',
    metadata: { name: 'x' },
    spec: { kubeletConfig },
  });
  expect(judge(kubelet({ evictionSoft }))).toEqual({
    warnings: [
      'KubeletConfig x: spec.kubeletConfig.evictionSoft["memory.available"]: needs a grace period; add evictionSoftGracePeriod: {memory.available: "1m30s"}, or say so in another config',
    ],
  });
  expect(judge(kubelet({ evictionSoft, evictionSoftGracePeriod: { 'memory.available': '1m' } }))).toEqual({
    warnings: [],
  });
});

test('what a KubeletConfig may say depends on what the nodes are', () => {
  const object = { kind: 'KubeletConfig', metadata: { name: 'x' }, spec: { autoSizingReserved: true } };
  expect(judge(object).refusal).toContain('spec.autoSizingReserved');
  expect(judge(object, { controllerConfig: { spec: { nodeFlavour: 'openshift' } } })).toEqual({ warnings: [] });
});

test.each([null, 'text', [], { metadata: 4 }])('nothing that is no object makes it throw: %j', (object) => {
  for (const kind of ['MachineConfig', 'MachineConfigPool', 'MachineConfiguration', 'KubeletConfig']) {
    expect(judgeObject({ kind, object }, context()).refusal).not.toContain('\n');
  }
});
