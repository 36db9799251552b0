import { beforeEach, describe, expect, test } from 'vitest';
import { KINDS, type KubernetesObject } from '../../../activities/kubernetes/client.js';
import { install } from '../../../client/install.js';
import { apiFlavour, DRYDOCK_ANNOTATIONS } from '../../../machine-config/api/flavour.js';
import { FakeTerminal } from '../../support/command-run.js';
import { establishCrds } from '../../support/established-crds.js';

const flavour = apiFlavour('openshift');
const WORKER = 'node-role.kubernetes.io/worker';

let terminal: FakeTerminal;

interface Finding {
  readonly check: string;
  readonly verdict: string;
  readonly sentence: string;
}

function addNode(name: string, more: { runtime?: string; worker?: string; kind?: 'kubeadm' | 'openshift' } = {}): void {
  const { runtime = 'containerd://2.1.0', worker = '0.1.0', kind = 'kubeadm' } = more;
  terminal.cluster.add(KINDS.node, {
    metadata: {
      name,
      uid: name,
      labels: { [WORKER]: '', ...(kind === 'openshift' ? { 'node.openshift.io/os_id': 'rhcos' } : {}) },
      annotations: {
        ...(worker === '' ? {} : { [DRYDOCK_ANNOTATIONS.worker]: worker }),
        ...(kind === 'kubeadm' ? { 'kubeadm.alpha.kubernetes.io/cri-socket': 'unix:///run/x.sock' } : {}),
      },
    },
    status: { nodeInfo: { containerRuntimeVersion: runtime } },
  } as KubernetesObject);
}

function addTemporal(name: string, node: string): void {
  terminal.cluster.add(KINDS.pod, {
    metadata: { name, namespace: 'temporal', labels: { 'app.kubernetes.io/name': 'temporal' } },
    spec: { nodeName: node },
  } as KubernetesObject);
}

async function examine(): Promise<{ code: number; of: (check: string) => Finding | undefined; all: Finding[] }> {
  const { code, out } = await terminal.run('doctor', '--output', 'json');
  const { findings } = JSON.parse(out) as { findings: Finding[] };
  return { code, all: findings, of: (check) => findings.find((finding) => finding.check === check) };
}

beforeEach(() => {
  terminal = new FakeTerminal();
});

describe('drydock doctor', () => {
  beforeEach(async () => {
    establishCrds(terminal.cluster);
    const webhook = { url: 'https://127.0.0.1:9443/validate', authority: 'pem' };
    await install({ client: terminal.cluster, flavour, webhook });
  });

  test('finds nothing on an installation that is well, and ends well', async () => {
    addNode('n1');
    addNode('n2');
    const { code, all } = await examine();
    expect(all.filter(({ verdict }) => verdict !== 'ok')).toEqual([]);
    expect(code).toBe(0);
  });

  test('names nodes that are not what the ControllerConfig takes them for', async () => {
    addNode('n1', { runtime: 'cri-o://1.34.0', kind: 'openshift' });
    expect((await examine()).of('node flavour')).toMatchObject({
      verdict: 'problem',
      sentence: expect.stringContaining('n1 look like openshift: set spec.nodeFlavour: openshift') as string,
    });
    addNode('n2');
    const { code, of } = await examine();
    expect(of('node flavour')?.verdict).toBe('warning');
    expect(of('container runtime')).toMatchObject({
      verdict: 'warning',
      sentence: expect.stringContaining('is containerd, but n1 look like crio') as string,
    });
    expect(code).toBe(0);
    terminal.cluster.add(flavour.controllerConfig, {
      metadata: { name: 'machine-config-controller' },
      spec: { nodeFlavour: 'openshift', containerRuntime: 'crio' },
    } as KubernetesObject);
    expect((await examine()).of('container runtime')?.sentence).toContain('n2 look like containerd');
  });

  test('names nodes without a worker, and workers of different versions', async () => {
    addNode('n1', { worker: '' });
    addNode('n2', { worker: '0.1.0' });
    addNode('n3', { worker: '0.2.0' });
    const { all } = await examine();
    expect(all.filter(({ check }) => check === 'node workers').map(({ sentence }) => sentence)).toEqual([
      expect.stringContaining('registered on n1,'),
      expect.stringContaining('0.1.0 and 0.2.0'),
    ]);
  });

  test('says what is missing of an installation', async () => {
    await terminal.cluster.delete(KINDS.validatingAdmissionPolicy, { name: 'drydock-nodes-openshift' });
    await terminal.cluster.delete(KINDS.validatingWebhookConfiguration, { name: 'drydock-openshift' });
    const { code, of } = await examine();
    expect(of('admission policies')).toMatchObject({ verdict: 'problem' });
    expect(of('webhook')).toMatchObject({ verdict: 'warning' });
    expect(code).not.toBe(0);
  });

  test('says who looks after no pool, and why Temporal tells nothing', async () => {
    terminal.engine.views.set('worker', { manager: 'notRunning', rollout: 'notRunning' });
    expect((await examine()).of('Temporal')).toMatchObject({
      verdict: 'problem',
      sentence: expect.stringContaining('looks after worker') as string,
    });
    terminal.temporalProblem = new Error('Temporal at 127.0.0.1:1 does not answer');
    expect((await examine()).of('Temporal')?.sentence).toContain('127.0.0.1:1 does not answer');
  });

  test('warns of a Temporal that one drain would take away', async () => {
    addNode('n1');
    addNode('n2');
    addTemporal('frontend-1', 'n1');
    const check = 'Temporal on this cluster';
    expect((await examine()).of(check)?.sentence).toContain('on one node');
    addTemporal('frontend-2', 'n2');
    expect((await examine()).of(check)?.sentence).toContain('no PodDisruptionBudget');
    terminal.cluster.add(KINDS.podDisruptionBudget, {
      metadata: { name: 'temporal', namespace: 'temporal' },
      spec: { selector: { matchLabels: { 'app.kubernetes.io/name': 'temporal' } } },
    } as KubernetesObject);
    expect((await examine()).of(check)?.verdict).toBe('ok');
    terminal.cluster.failNext({ verb: 'list', kind: 'Pod' }, { code: 'Forbidden' });
    expect((await examine()).of(check)?.verdict).toBe('unknown');
  });

  test('prints a table for people', async () => {
    const { out } = await terminal.run('doctor');
    expect(out.split('\n')[0]).toMatch(/^CHECK +VERDICT +WHAT/);
  });
});

test('drydock doctor on a cluster without Drydock says to install it', async () => {
  const { code, out, err } = await terminal.run('doctor');
  expect(code).not.toBe(0);
  expect(out + err).toContain('drydock install');
});
