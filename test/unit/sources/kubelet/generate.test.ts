import { readFileSync, existsSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import type { KubeletConfig } from '../../../../machine-config/api/kubelet-config.js';
import type { MachineConfig } from '../../../../machine-config/api/machine-config.js';
import { renderPool } from '../../../../machine-config/render/render-pool.js';
import { selectMachineConfigs } from '../../../../machine-config/render/select.js';
import { fileIn } from '../../../../machine-config/sources/kubelet/present-files.js';
import type { SourceResult } from '../../../../machine-config/sources/source.js';
import {
  DROP_IN,
  fieldsIn,
  flavour,
  generate,
  kubeletConfig,
  ownedBy,
  poolNamed,
  refusalOf,
  ROLE,
  WHOLE,
  written,
} from './kubelet-inputs.js';

const HEAD = { apiVersion: 'kubelet.config.k8s.io/v1beta1', kind: 'KubeletConfiguration' };
const configsOf = (results: readonly SourceResult[]): Map<string, MachineConfig> =>
  new Map(results.flatMap(({ configs }) => configs.map((config) => [config.metadata.name, config] as const)));
const problemsOf = (results: readonly SourceResult[]) =>
  Object.fromEntries(results.map(({ source, problem }) => [source.name, problem?.reason]));
const filesOf = (config: MachineConfig | undefined): string[] => {
  const { storage } = config?.spec?.config as { storage: { files: { path: string }[] } };
  return storage.files.map((file) => file.path);
};

/** What the nodes of a pool get, from everything that there is. */
function renderedFor(pool: string, all: readonly MachineConfig[], file = DROP_IN): unknown {
  const machineConfigs = selectMachineConfigs(poolNamed(pool), all);
  const result = renderPool({ pool, machineConfigs, flavour });
  if (result.outcome === 'refused') throw new Error(result.reason);
  return fieldsIn(result.config, file);
}

describe('on nodes of kubeadm', () => {
  it('writes only the difference, and the directory it is in', () => {
    const [result] = generate({ kubeletConfigs: [kubeletConfig('one', { maxPods: 250 }, { logLevel: 4 })] });
    const [config] = result!.configs;
    expect(config?.metadata).toMatchObject({ name: '99-worker-generated-kubelet', labels: { [ROLE]: 'worker' } });
    expect(fieldsIn(config)).toEqual({ ...HEAD, maxPods: 250, logging: { verbosity: 4 } });
    expect(filesOf(config)).toEqual([DROP_IN]);
    expect(result).toMatchObject({ suffix: '', warnings: [], source: { kind: 'KubeletConfig', name: 'one' } });
  });

  it('never touches the kubeconfig of the kubelet', () => {
    const results = generate({ kubeletConfigs: [kubeletConfig('one', { maxPods: 250 })] });
    expect([...configsOf(results).values()].flatMap(filesOf)).not.toContain(WHOLE);
  });

  it('lets false, zero and empty win over what is there', () => {
    const present = written('50-kubelet', 'worker', DROP_IN, 'protectKernelDefaults: true\nmaxPods: 10\n');
    const results = generate({
      machineConfigs: [present],
      kubeletConfigs: [kubeletConfig('one', { protectKernelDefaults: false, maxPods: 0, allowedUnsafeSysctls: [] })],
    });
    expect(fieldsIn(configsOf(results).get('99-worker-generated-kubelet'))).toEqual({
      ...HEAD,
      protectKernelDefaults: false,
      maxPods: 0,
      allowedUnsafeSysctls: [],
    });
  });

  it('makes a config that the render takes', () => {
    const results = generate({ kubeletConfigs: [kubeletConfig('one', { maxPods: 250 })] });
    expect(renderedFor('worker', [...configsOf(results).values()])).toMatchObject({ maxPods: 250 });
  });
});

describe('several on one pool', () => {
  const two = [
    kubeletConfig('old', { maxPods: 100, kubeReserved: { cpu: '1' } }, { created: '2026-01-01T00:00:00Z' }),
    kubeletConfig('new', { maxPods: 200, kubeReserved: { memory: '1Gi' } }, { created: '2026-02-01T00:00:00Z' }),
  ];

  it('builds the younger on the older', () => {
    const results = generate({ kubeletConfigs: two });
    expect(fieldsIn(configsOf(results).get('99-worker-generated-kubelet'))).toMatchObject({ maxPods: 100 });
    expect(renderedFor('worker', [...configsOf(results).values()])).toEqual({
      ...HEAD,
      maxPods: 200,
      kubeReserved: { cpu: '1', memory: '1Gi' },
    });
  });

  it('gives the same, whatever the order of the lists, and again from what it gave', () => {
    const first = generate({ kubeletConfigs: two });
    expect(generate({ kubeletConfigs: two.toReversed() })).toEqual(first);
    const machineConfigs = first.flatMap(({ configs }, at) =>
      configs.map((config) =>
        ownedBy(two.toSorted((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))[at]!, config),
      ),
    );
    expect(generate({ kubeletConfigs: two, machineConfigs })).toEqual(first);
  });

  it('builds on what a refused one generated before', () => {
    const before = configsOf(generate({ kubeletConfigs: [two[0]!] })).get('99-worker-generated-kubelet')!;
    const broken = kubeletConfig('old', { maxPods: 'many' }, { suffix: '' });
    const results = generate({ kubeletConfigs: [broken, two[1]!], machineConfigs: [ownedBy(broken, before)] });
    expect(problemsOf(results)).toEqual({ old: 'InvalidField', new: undefined });
    expect(fieldsIn(configsOf(results).get('99-worker-generated-kubelet-1'))).toMatchObject({
      kubeReserved: { cpu: '1', memory: '1Gi' },
    });
  });

  it('forgets what a deleted one generated', () => {
    const before = configsOf(generate({ kubeletConfigs: [two[0]!] })).get('99-worker-generated-kubelet')!;
    const { metadata, spec } = kubeletConfig('old', { maxPods: 100 }, { suffix: '' });
    const deleted: KubeletConfig = { metadata: { ...metadata, deletionTimestamp: '2026-03-01T00:00:00Z' }, spec };
    const results = generate({ kubeletConfigs: [deleted, two[1]!], machineConfigs: [ownedBy(deleted, before)] });
    expect(results.find(({ source }) => source.name === 'old')?.configs).toEqual([]);
    expect(fieldsIn(configsOf(results).get('99-worker-generated-kubelet-1'))).toEqual({
      ...HEAD,
      maxPods: 200,
      kubeReserved: { memory: '1Gi' },
    });
  });

  it('refuses the eleventh', () => {
    const objects = Array.from({ length: 11 }, (_, index) =>
      kubeletConfig(`kc-${String(index).padStart(2, '0')}`, { maxPods: index }),
    );
    const results = generate({ kubeletConfigs: objects });
    expect(results.filter(({ problem }) => problem !== undefined).map(({ source }) => source.name)).toEqual(['kc-10']);
    expect(results.at(-1)?.problem?.reason).toBe('TooMany');
    expect(renderedFor('worker', [...configsOf(results).values()])).toMatchObject({ maxPods: 9 });
  });
});

describe('several pools', () => {
  const pools = ['infra', 'master', 'worker'].map(poolNamed);

  it('gives a custom pool what it says over what is said for workers, although its name sorts first', () => {
    const results = generate({
      pools,
      kubeletConfigs: [
        kubeletConfig('all', { maxPods: 100, podsPerCore: 5 }, { pool: 'worker' }),
        kubeletConfig('some', { maxPods: 50 }, { pool: 'infra' }),
      ],
    });
    const all = [...configsOf(results).values()];
    expect(renderedFor('infra', all)).toEqual({ ...HEAD, maxPods: 50, podsPerCore: 5 });
    expect(renderedFor('worker', all)).toEqual({ ...HEAD, maxPods: 100, podsPerCore: 5 });
  });

  it('makes one config a pool', () => {
    const machineConfigPoolSelector = { matchExpressions: [{ key: 'pool', operator: 'Exists' as const }] };
    const results = generate({
      pools,
      kubeletConfigs: [kubeletConfig('all', { maxPods: 9 }, { machineConfigPoolSelector })],
    });
    expect([...configsOf(results).keys()].toSorted()).toEqual([
      '99-infra-generated-kubelet',
      '99-master-generated-kubelet',
      '99-worker-generated-kubelet',
    ]);
  });

  it('says that no pool is meant, and which there are', () => {
    const [result] = generate({ pools, kubeletConfigs: [kubeletConfig('none', {}, { pool: 'wroker' })] });
    expect(result?.problem).toMatchObject({
      reason: 'NoPool',
      message: expect.stringContaining('infra, master, worker') as string,
    });
    expect(refusalOf({}, { machineConfigPoolSelector: {} }, { pools })).toMatch(/matches the labels of no pool/);
  });

  it('keeps static pods out of the control plane’s hands only where they are', () => {
    expect(refusalOf({ staticPodPath: '' }, {}, { pools })).toBeUndefined();
    const master = { machineConfigPoolSelector: { matchLabels: { pool: 'master' } } };
    expect(refusalOf({ staticPodPath: '' }, master, { pools })).toMatch(
      /pool master: its control plane runs from there/,
    );
  });

  it('leaves the other pools as they are too where one pool refuses', () => {
    const machineConfigPoolSelector = { matchExpressions: [{ key: 'pool', operator: 'Exists' as const }] };
    const object = kubeletConfig('all', { staticPodPath: '' }, { machineConfigPoolSelector });
    const [result] = generate({ pools, kubeletConfigs: [object] });
    expect(result).toMatchObject({ configs: [], problem: { reason: 'InvalidField' } });
  });

  it('warns of a pool that does not select what is made for it', () => {
    const pool = { ...poolNamed('gpu'), spec: { machineConfigSelector: { matchLabels: { [ROLE]: 'worker' } } } };
    const [result] = generate({
      pools: [pool],
      kubeletConfigs: [kubeletConfig('one', { maxPods: 1 }, { pool: 'gpu' })],
    });
    expect(result?.warnings).toEqual([
      expect.stringMatching(/the pool gpu selects no MachineConfig .*reaches no node/),
    ]);
  });

  it('warns of a config that comes later and replaces the file', () => {
    const machineConfigs = [written('99-zz', 'worker', DROP_IN, 'maxPods: 1\n')];
    const [result] = generate({ machineConfigs, kubeletConfigs: [kubeletConfig('one', { maxPods: 2 })] });
    expect(result?.warnings).toEqual([expect.stringMatching(/^MachineConfig 99-zz comes after .* and replaces its/)]);
  });
});

describe('on OpenShift nodes', () => {
  const base = written(
    '01-worker-kubelet',
    'worker',
    WHOLE,
    [
      'kind: KubeletConfiguration',
      'apiVersion: kubelet.config.k8s.io/v1beta1',
      'maxPods: 250',
      'systemCgroups: /system.slice',
      'cgroupRoot: /',
      'systemReservedCgroup: /system.slice',
      'enforceNodeAllocatable: [pods, system-reserved-compressible]',
      'featureGates: {A: true}',
      '',
    ].join('\n'),
  );
  const sizing = written('00-worker', 'worker', '/etc/node-sizing-enabled.env', 'SYSTEM_RESERVED_CPU=700m\n');
  const make = (fields: object, more = {}) => {
    const results = generate({
      nodeFlavour: 'openshift',
      machineConfigs: [base, sizing],
      kubeletConfigs: [kubeletConfig('one', fields, more)],
    });
    return { result: results[0]!, config: configsOf(results).get('99-worker-generated-kubelet') };
  };
  const textOf = (config: MachineConfig | undefined, file: string) => config && fileIn(config, file)?.text;

  it('writes the whole file', () => {
    const { config } = make({ podsPerCore: 7 });
    expect(fieldsIn(config, WHOLE)).toMatchObject({ maxPods: 250, podsPerCore: 7, featureGates: { A: true } });
    expect(filesOf(config)).toEqual([WHOLE]);
    expect(config?.spec?.config).not.toHaveProperty('systemd');
  });

  it('gives reservations to the sizing service', () => {
    const { config } = make({ systemReserved: { memory: '3Gi', pid: '500' } });
    expect(textOf(config, '/etc/node-sizing-enabled.env')).toBe(
      'NODE_SIZING_ENABLED=false\nSYSTEM_RESERVED_MEMORY=3Gi\nSYSTEM_RESERVED_CPU=700m\nSYSTEM_RESERVED_ES=1Gi\n',
    );
    expect(fieldsIn(config, WHOLE)).toHaveProperty('systemReserved', { pid: '500' });
  });

  it('lets the node size itself', () => {
    const { config } = make({}, { autoSizingReserved: true, logLevel: 3 });
    expect(textOf(config, '/etc/node-sizing-enabled.env')).toMatch(/^NODE_SIZING_ENABLED=true$/m);
    expect(textOf(config, '/etc/systemd/system/kubelet.service.d/20-logging.conf')).toBe(
      '[Service]\nEnvironment="KUBELET_LOG_LEVEL=3"\n',
    );
  });

  it('takes back the enforcement that does not go with reserved processors', () => {
    const fields = fieldsIn(make({ reservedSystemCPUs: '0-1' }).config, WHOLE);
    expect(fields).toMatchObject({ enforceNodeAllocatable: ['pods'], reservedSystemCPUs: '0-1' });
    expect(fields).not.toHaveProperty('systemReservedCgroup');
    expect(fieldsIn(make({ enforceNodeAllocatable: ['pods'] }).config, WHOLE)).not.toHaveProperty(
      'systemReservedCgroup',
    );
  });

  it('finds what contradicts the present configuration', () => {
    expect(make({ systemReservedCgroup: '/other.slice' }).result.problem?.message).toMatch(
      /systemReservedCgroup: must be the same as systemCgroups/,
    );
  });

  it('refuses where there is no present configuration, or none that can be read', () => {
    const inputs = { nodeFlavour: 'openshift' } as const;
    expect(refusalOf({ maxPods: 1 }, {}, inputs)).toMatch(
      /no MachineConfig of the pool worker has .*nodeFlavour: kubeadm/,
    );
    const machineConfigs = [written('01-worker-kubelet', 'worker', WHOLE, '- a list\n')];
    expect(refusalOf({ maxPods: 1 }, {}, { ...inputs, machineConfigs })).toMatch(
      /of MachineConfig 01-worker-kubelet is no readable/,
    );
  });

  it('keeps the bytes of what means the same, so that nobody reboots for another way to write it', () => {
    const object = kubeletConfig('one', { maxPods: 300 }, { suffix: '' });
    const yaml = 'maxPods:   300\nkind: KubeletConfiguration\n';
    const machineConfigs = [
      written('01-worker-kubelet', 'worker', WHOLE, 'kind: KubeletConfiguration\nmaxPods: 1\n'),
      ownedBy(object, written('99-worker-generated-kubelet', 'worker', WHOLE, yaml)),
    ];
    const results = generate({ nodeFlavour: 'openshift', kubeletConfigs: [object], machineConfigs });
    expect(textOf(configsOf(results).get('99-worker-generated-kubelet'), WHOLE)).toBe(yaml);
  });
});

const CORPUS = path.join(import.meta.dirname, '../../../../../shared/corpus');

describe.skipIf(!existsSync(CORPUS))('KubeletConfigs from the field', () => {
  const labelled = (name: string) => ({
    ...poolNamed(name),
    metadata: { name, labels: { [`pools.operator.${flavour.group}/${name}`]: '' } },
  });
  const pools = ['app', 'master', 'worker'].map(labelled);
  const bases = pools.map(({ metadata: { name } }) =>
    written(`01-${name}-kubelet`, name, WHOLE, 'kind: KubeletConfiguration\n'),
  );

  it.each(['22-kubelet-reserved.yaml', '34-kubelet-matchexpr.yaml', '100-kubelet-large.yaml'])(
    '%s is accepted',
    (file) => {
      const documents = parseAllDocuments(readFileSync(path.join(CORPUS, file), 'utf8'));
      const objects = documents
        .map((document) => document.toJS() as KubeletConfig | null)
        .filter((object) => object?.kind === 'KubeletConfig');
      expect(objects.length).toBeGreaterThan(0);
      for (const nodeFlavour of ['kubeadm', 'openshift'] as const) {
        const results = generate({
          nodeFlavour,
          pools,
          machineConfigs: bases,
          kubeletConfigs: objects as KubeletConfig[],
        });
        expect(results.map(({ problem }) => problem?.message)).toEqual(objects.map(() => undefined));
        expect(results.every(({ configs }) => configs.length > 0)).toBe(true);
      }
    },
  );
});
