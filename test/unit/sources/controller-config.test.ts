import { describe, expect, it } from 'vitest';
import type { ControllerConfig } from '../../../machine-config/api/controller-config.js';
import { parseControllerConfig } from '../../../machine-config/api/parse.js';
import {
  generateForControllerConfig,
  type ControllerConfigInputs,
} from '../../../machine-config/sources/controller-config/generate.js';
import { controllerConfigStatus } from '../../../machine-config/sources/controller-config/status.js';
import { controllerConfig, flavour, pool, withFile } from './make-objects.js';

const good = new Map([['common/files/a.yaml', 'path: /etc/a\ncontents: {inline: a}\n']]);
const bad = new Map([['common/files/a.yaml', 'path: {{nothing}}\n']]);
const mirrors = (source: string) => [
  { metadata: { name: 'm' }, spec: { imageDigestMirrors: [{ source, mirrors: ['m.io'] }] } },
];

function generate(inputs: Partial<ControllerConfigInputs>) {
  return generateForControllerConfig({
    flavour,
    controllerConfig: controllerConfig(),
    templates: good,
    digestMirrorSets: [],
    tagMirrorSets: [],
    pools: [pool('worker')],
    machineConfigs: [],
    ...inputs,
  });
}
const namesOf = ({ configs }: ReturnType<typeof generate>) => configs.map(({ metadata }) => metadata.name);

function owned(name: string) {
  const config = withFile(name, 'worker', '/etc/old', 'old');
  const ownerReferences = [{ apiVersion: 'x/v1', kind: 'ControllerConfig', name: 'c', uid: 'cc-uid' }];
  return { ...config, metadata: { ...config.metadata, ownerReferences } };
}

describe('what a ControllerConfig owns', () => {
  it('are the configs of its templates and of image mirrors', () => {
    const result = generate({ digestMirrorSets: mirrors('docker.io') });
    expect(namesOf(result)).toEqual(['00-worker', '99-worker-generated-registries']);
    expect(result.parts).toMatchObject({ templates: null, imageMirrors: null });
  });

  it('stays as it was where templates cannot be rendered, and mirrors are written all the same', () => {
    const old = owned('00-worker');
    const result = generate({ templates: bad, digestMirrorSets: mirrors('docker.io'), machineConfigs: [old] });
    expect(namesOf(result)).toEqual(['00-worker', '99-worker-generated-registries']);
    expect(result.configs[0]?.spec).toBe(old.spec);
    expect(result.parts).toMatchObject({ templates: { reason: 'InvalidTemplate' }, imageMirrors: null });
    expect(result.problem).toBeUndefined();
  });

  it('stays as it was where mirrors contradict each other, and templates are rendered all the same', () => {
    const old = owned('99-worker-generated-registries');
    const result = generate({ digestMirrorSets: mirrors('quay.io/org'), machineConfigs: [old] });
    expect(namesOf(result)).toEqual(['00-worker', '99-worker-generated-registries']);
    expect(result.configs[1]?.spec).toBe(old.spec);
    expect(result.parts).toMatchObject({ templates: null, imageMirrors: { reason: 'NotInContainerd' } });
  });

  it('is nothing once it is being deleted', () => {
    const leaving = controllerConfig();
    const metadata = { ...leaving.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' };
    expect(generate({ controllerConfig: { ...leaving, metadata } }).configs).toEqual([]);
  });
});

describe('the status of a ControllerConfig', () => {
  const conditions = (
    result: ReturnType<typeof generate>,
    previous?: ControllerConfig['status'],
    now = '2026-01-01T00:00:00Z',
  ) => controllerConfigStatus(previous, result, now);
  const statusOf = (status: ReturnType<typeof conditions>, type: string) =>
    status.conditions?.find((condition) => condition.type === type);

  it('says that the templates are rendered', () => {
    const status = conditions(generate({}));
    expect(status.observedGeneration).toBe(3);
    expect(statusOf(status, 'TemplateControllerCompleted')?.status).toBe('True');
    expect(statusOf(status, 'TemplateControllerRunning')?.status).toBe('False');
    expect(statusOf(status, 'TemplateControllerFailing')?.status).toBe('False');
    expect(statusOf(status, 'ImageMirrorsFailing')?.status).toBe('False');
  });

  it('says why they are not, and keeps what else the status holds', () => {
    const certificates = [{ subject: 's', signer: 's', bundleFile: 'b' }];
    const before = conditions(generate({}));
    const status = conditions(
      generate({ templates: bad }),
      { ...before, controllerCertificates: certificates },
      '2026-01-02T00:00:00Z',
    );
    expect(statusOf(status, 'TemplateControllerCompleted')?.status).toBe('False');
    expect(statusOf(status, 'TemplateControllerFailing')).toEqual({
      type: 'TemplateControllerFailing',
      status: 'True',
      reason: 'InvalidTemplate',
      message: 'template common/files/a.yaml: there is no value nothing',
      lastTransitionTime: '2026-01-02T00:00:00Z',
    });
    expect(statusOf(status, 'ImageMirrorsFailing')?.lastTransitionTime).toBe('2026-01-01T00:00:00Z');
    expect(status.controllerCertificates).toEqual(certificates);
  });

  it('says which certificates no node can follow, and else what nodes cannot be let read', () => {
    const certificate = (path: string) => ({ secret: { namespace: 'a', name: 'b' }, key: 'k', path });
    const failing = (paths: string[], more: Partial<ControllerConfigInputs> = {}) => {
      const config = controllerConfig({ certificates: paths.map(certificate) });
      return statusOf(conditions(generate({ controllerConfig: config, ...more })), 'CertificatesFailing');
    };
    const mayNotGrant = { reason: 'MayNotGrant', message: 'spec.certificates: may not' };
    expect(failing(['/etc/a'])?.status).toBe('False');
    expect(failing(['/etc/a'], { mayNotGrant })).toMatchObject({ status: 'True', ...mayNotGrant });
    expect(failing(['/etc/a', '/ca', '/etc/../b'], { mayNotGrant })).toMatchObject({
      status: 'True',
      reason: 'InvalidCertificate',
      message: 'spec.certificates: /ca: lies directly in /; use a folder, and 1 more',
    });
  });

  it('is the same as long as nothing changes', () => {
    const status = conditions(generate({}));
    expect(conditions(generate({}), status, '2026-01-03T00:00:00Z')).toEqual(status);
  });
});

describe('a ControllerConfig', () => {
  const config = (spec: object, name = 'machine-config-controller') =>
    parseControllerConfig({ metadata: { name }, spec });
  const problem = (spec: object, name?: string) => {
    const parsed = config(spec, name);
    return parsed.ok ? undefined : parsed.problems.map(({ path, message }) => `${path}: ${message}`).join('\n');
  };

  it.each([
    [{}],
    [{ nodeFlavour: 'openshift', containerRuntime: 'crio', keepRenderedConfigs: 0 }],
    [{ templates: { source: 'none' } }],
    [{ templates: { source: 'builtin', version: 'v1' }, templateValues: { anything: [1, { goes: true }] } }],
    [{ templates: { source: 'configMap', configMap: { namespace: 'drydock', name: 'templates' } } }],
    [{ templates: { source: 'folder', folder: '/etc/drydock/templates' } }],
    [
      {
        certificates: [{ secret: { namespace: 'a', name: 'b' }, key: '.dockerconfigjson', path: '/etc/a', mode: 384 }],
      },
    ],
    [
      {
        clusterDNSIP: '10.0.0.10',
        rootCAData: 'YQ==',
        proxy: null,
        infra: { kind: 'Infrastructure', x: 1 },
        images: {},
      },
    ],
  ])('with %j is accepted', (spec) => {
    expect(problem(spec)).toBeUndefined();
  });

  it.each([
    [{ templates: { source: 'builtin' } }, 'version is needed with source builtin'],
    [{ templates: { source: 'builtin', version: '1' } }, 'must be a version of the built-in templates'],
    [{ templates: { source: 'none', version: 'v1' } }, 'version is needed with source builtin, and not allowed'],
    [{ templates: { source: 'folder' } }, 'folder is needed with source folder'],
    [{ templates: { source: 'folder', folder: 'relative' } }, 'must be an absolute path'],
    [{ templates: { source: 'configMap' } }, 'configMap is needed with source configMap'],
    [{ templates: {} }, 'spec.templates.source: is missing'],
    [{ nodeFlavor: 'kubeadm' }, 'did you mean "nodeFlavour"?'],
    [{ containerRuntime: 'docker' }, 'expected "containerd", "crio"'],
    [{ keepRenderedConfigs: -1 }, 'spec.keepRenderedConfigs'],
    [{ certificates: [{ key: 'k', path: '/a' }] }, 'either secret or configMap is needed, and not both'],
    [{ certificates: [{ secret: { namespace: 'a', name: 'b' }, key: 'k', path: '/a', mode: 4096 }] }, 'mode'],
    [{ certificates: [{ secret: { namespace: 'a', name: 'b' }, key: 'k', path: 'a' }] }, 'must be an absolute path'],
  ])('with %j is refused', (spec, message) => {
    expect(problem(spec)).toContain(message);
  });

  it('has one name', () => {
    expect(problem({}, 'other')).toContain('its name is "machine-config-controller"');
  });
});
