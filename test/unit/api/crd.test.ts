import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, expectTypeOf, it } from 'vitest';
import type { KubernetesObject } from '../../../activities/kubernetes/client.js';
import { renderCrdFiles } from '../../../machine-config/api/crd-files.js';
import {
  customResourceDefinitions,
  sharedDefinitions,
  type StructuralSchema,
} from '../../../machine-config/api/crd.js';
import { apiFlavour, FLAVOUR_NAMES } from '../../../machine-config/api/flavour.js';
import type { MachineConfigPool } from '../../../machine-config/api/machine-config-pool.js';
import type { MachineConfig } from '../../../machine-config/api/machine-config.js';
import type { MachineConfiguration } from '../../../machine-config/api/machine-configuration.js';

const crdFolder = path.join(import.meta.dirname, '../../../deploy/crds');

function crdOf(kind: string, flavour: 'openshift' | 'alauda' = 'openshift') {
  return customResourceDefinitions(apiFlavour(flavour)).find((crd) => crd.spec.names.kind === kind)!;
}

/** The schema at a path of property names; `[]` steps into the items of a list. */
function schemaAt(kind: string, where: string): StructuralSchema {
  const root = crdOf(kind).spec.versions[0]!.schema.openAPIV3Schema;
  return where.split('.').reduce((schema, step) => {
    const next = step === '[]' ? schema.items : (schema.properties as Record<string, unknown>)[step];
    return next as StructuralSchema;
  }, root);
}

interface Visited {
  readonly at: string;
  readonly schema: StructuralSchema;
}
function everySchema(schema: StructuralSchema, at = ''): Visited[] {
  const properties = Object.entries((schema.properties ?? {}) as Record<string, StructuralSchema>);
  const nested = [schema.items, schema.additionalProperties].filter((value) => typeof value === 'object');
  return [
    { at, schema },
    ...properties.flatMap(([name, child]) => everySchema(child, `${at}.${name}`)),
    ...nested.flatMap((child) => everySchema(child as StructuralSchema, `${at}[]`)),
  ];
}

describe('deploy/crds', () => {
  it('is what the schemas produce, no more and no less', () => {
    const files = renderCrdFiles();
    const present = readdirSync(crdFolder, { recursive: true, encoding: 'utf8' }).filter((file) =>
      file.endsWith('.yaml'),
    );
    expect(present.sort()).toEqual([...files.keys()].sort());
    for (const [file, text] of files) expect(readFileSync(path.join(crdFolder, file), 'utf8'), file).toBe(text);
  });
});

describe.each(FLAVOUR_NAMES)('the CRDs of flavour %s', (name) => {
  const flavour = apiFlavour(name);

  it.each([...customResourceDefinitions(flavour), ...sharedDefinitions()])(
    '$metadata.name has a structural schema',
    (crd) => {
      const schemas = everySchema(crd.spec.versions[0]!.schema.openAPIV3Schema);
      expect(schemas.length).toBeGreaterThan(10);
      for (const { at, schema } of schemas) {
        const intOrString = schema['x-kubernetes-int-or-string'] === true;
        expect(intOrString || typeof schema.type === 'string', `${at} has a type`).toBe(true);
        for (const keyword of ['anyOf', 'oneOf', 'allOf', '$ref', '$schema', 'propertyNames', 'const']) {
          expect(schema, at).not.toHaveProperty([keyword]);
        }
        if (schema.properties !== undefined) expect(schema, at).not.toHaveProperty('additionalProperties');
        if (schema.type === 'array') expect(schema, at).toHaveProperty('items');
      }
    },
  );

  it('has the names of the flavour', () => {
    const names = customResourceDefinitions(flavour).map((crd) => crd.metadata.name);
    const operatorGroup = name === 'openshift' ? 'operator.openshift.io' : flavour.group;
    expect(names).toEqual([
      `machineconfigs.${flavour.group}`,
      `machineconfigpools.${flavour.group}`,
      `machineconfigurations.${operatorGroup}`,
      `machineconfignodes.${flavour.group}`,
      `controllerconfigs.${flavour.group}`,
      `kubeletconfigs.${flavour.group}`,
      `containerruntimeconfigs.${flavour.group}`,
    ]);
  });
});

describe('customResourceDefinitions', () => {
  it('labels as managed by the operator what OpenShift labels, and nothing in another flavour', () => {
    const labelled = (flavour: 'openshift' | 'alauda') =>
      customResourceDefinitions(apiFlavour(flavour))
        .filter((crd) => 'openshift.io/operator-managed' in crd.metadata.labels)
        .map((crd) => crd.spec.names.kind);
    expect(labelled('openshift')).toEqual([
      'MachineConfig',
      'MachineConfigPool',
      'MachineConfigNode',
      'ControllerConfig',
      'KubeletConfig',
      'ContainerRuntimeConfig',
    ]);
    expect(labelled('alauda')).toEqual([]);
  });

  it.each([
    ['MachineConfig', ['mc'], false, 'GeneratedByController IgnitionVersion Age'],
    [
      'MachineConfigPool',
      ['mcp'],
      true,
      'Config Updated Updating Degraded MachineCount ReadyMachineCount UpdatedMachineCount DegradedMachineCount Age',
    ],
    ['MachineConfiguration', undefined, true, ''],
    ['ControllerConfig', undefined, true, ''],
    ['KubeletConfig', undefined, true, 'Accepted Message Age'],
    ['ContainerRuntimeConfig', ['ctrcfg'], true, 'Accepted Message Age'],
    [
      'MachineConfigNode',
      undefined,
      true,
      'PoolName DesiredConfig CurrentConfig Updated Age UpdatePrepared UpdateExecuted UpdatePostActionComplete ' +
        'UpdateComplete Resumed UpdatedFilesAndOS CordonedNode DrainedNode RebootedNode UncordonedNode',
    ],
  ])('gives %s its short names, status and columns', (kind, shortNames, status, columns) => {
    const { names, versions } = crdOf(kind).spec;
    expect(names.shortNames).toEqual(shortNames);
    expect(versions[0]!.subresources !== undefined).toBe(status);
    expect((versions[0]!.additionalPrinterColumns ?? []).map((column) => column.name).join(' ')).toBe(columns);
  });

  it('finds the generating controller under the annotation of the flavour', () => {
    const column = crdOf('MachineConfig', 'alauda').spec.versions[0]!.additionalPrinterColumns![0]!;
    expect(column.jsonPath).toBe(
      String.raw`.metadata.annotations.machineconfiguration\.alauda\.io/generated-by-controller-version`,
    );
  });

  it('says nothing about metadata, which the API server describes itself', () => {
    expect(schemaAt('MachineConfigPool', 'metadata')).toEqual({ type: 'object' });
  });

  it.each<[string, string, StructuralSchema]>([
    ['MachineConfig', 'spec.config', { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }],
    ['MachineConfig', 'spec.kernelArguments', { type: 'array', nullable: true, 'x-kubernetes-list-type': 'atomic' }],
    ['MachineConfigPool', 'spec.maxUnavailable', { 'x-kubernetes-int-or-string': true }],
    ['MachineConfigPool', 'spec.nodeSelector', { 'x-kubernetes-map-type': 'atomic' }],
    [
      'MachineConfigPool',
      'spec.pinnedImageSets',
      { maxItems: 100, 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] },
    ],
    ['MachineConfigPool', 'status.machineCount', { type: 'integer', format: 'int32' }],
    ['MachineConfigPool', 'status.observedGeneration', { type: 'integer', format: 'int64' }],
    ['MachineConfigPool', 'status.conditions', { 'x-kubernetes-list-type': 'atomic' }],
    [
      'MachineConfigPool',
      'status.conditions.[].lastTransitionTime',
      { type: 'string', format: 'date-time', nullable: true },
    ],
    ['MachineConfiguration', 'spec.logLevel', { type: 'string', default: 'Normal' }],
    [
      'MachineConfiguration',
      'spec.nodeDisruptionPolicy.files',
      { maxItems: 50, 'x-kubernetes-list-map-keys': ['path'] },
    ],
    [
      'MachineConfiguration',
      'spec.nodeDisruptionPolicy.units.[].actions',
      { maxItems: 10, 'x-kubernetes-list-type': 'atomic' },
    ],
    [
      'MachineConfiguration',
      'spec.irreconcilableValidationOverrides.storage',
      { minItems: 1, maxItems: 3, 'x-kubernetes-list-type': 'set' },
    ],
    ['MachineConfiguration', 'status.conditions', { 'x-kubernetes-list-map-keys': ['type'] }],
  ])('describes %s %s', (kind, where, expected) => {
    expect(schemaAt(kind, where)).toMatchObject(expected);
  });

  it.each([
    ['spec.nodeDisruptionPolicy.sshkey.actions', 2],
    ['spec.nodeDisruptionPolicy.sshkey.actions.[]', 2],
    ['status.nodeDisruptionPolicyStatus.clusterPolicies.files.[].actions', 2],
  ])('carries the rules of %s', (where, count) => {
    const rules = schemaAt('MachineConfiguration', where)['x-kubernetes-validations'];
    expect(rules).toHaveLength(count);
  });
});

describe('the inferred types', () => {
  it('are Kubernetes objects', () => {
    expectTypeOf<MachineConfig>().toExtend<KubernetesObject>();
    expectTypeOf<MachineConfigPool>().toExtend<KubernetesObject>();
    expectTypeOf<MachineConfiguration>().toExtend<KubernetesObject>();
  });
});
