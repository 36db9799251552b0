import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client, Connection } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { describeTemporal } from '../../dev/chaos/temporal-state.js';
import { NEVER_READY_LABEL, TERMINATION_ANNOTATION } from '../../dev/kubernetes.js';
import { startLab, type Lab } from '../../dev/lab.js';
import { TEMPORAL_DEV_FILE } from '../../dev/temporal-config.js';
import { waitUntil } from '../../dev/processes/wait-until.js';
import { call, getNode, readyOf } from './kubernetes-call.js';
import { PATIENCE } from '../support/patience.js';

const run = promisify(execFile);
const DAY_MS = 86_400_000;
const userKubeconfig = join(tmpdir(), `drydock-no-such-kubeconfig-${process.pid}`);

let lab: Lab;
let admin: string;

beforeAll(async () => {
  process.env['KUBECONFIG'] = userKubeconfig;
  lab = await startLab({ nodeGraceSeconds: 4 });
  admin = lab.kubernetes.kubeconfigPath;
  await lab.kubernetes.createNodes([
    { name: 'old', createdAt: new Date(Date.now() - 90 * DAY_MS), bootId: 'boot-1' },
    { name: 'young', createdAt: new Date(Date.now() - DAY_MS), labels: { zone: 'b' } },
    { name: 'new' },
  ]);
});

afterAll(async () => {
  delete process.env['KUBECONFIG'];
  await lab.stop();
});

describe('the Kubernetes part', () => {
  test('is a real API server of the version that was built, and kubectl can read it', async () => {
    const { stdout } = await run(lab.kubernetes.kubectl, ['--kubeconfig', admin, 'get', 'nodes']);
    expect(stdout).toMatch(/old\s+Ready\s+<none>\s+90d\s+v1\.34\.4/);
    expect(stdout).toMatch(/young\s+Ready\s+<none>\s+(24h|1d|23h)\s/);
    expect((await call(admin, 'GET', '/version')).body).toMatchObject({
      gitVersion: 'v1.34.4',
      major: '1',
      minor: '34',
    });
  });

  test('leaves the user’s own kubeconfig alone', () => {
    expect(existsSync(userKubeconfig)).toBe(false);
    expect(admin.startsWith(lab.directory)).toBe(true);
  });

  test('lets a node change its own Node and no other, and read no other', async () => {
    const asOld = await lab.kubernetes.nodeKubeconfig('old');
    const patch = { metadata: { annotations: { 'drydock.dev/test': 'yes' } }, spec: { unschedulable: true } };
    expect((await call(asOld, 'PATCH', '/api/v1/nodes/old', patch)).status).toBe(200);
    expect((await call(asOld, 'PATCH', '/api/v1/nodes/young', patch)).status).toBe(403);
    expect((await call(asOld, 'GET', '/api/v1/nodes/young')).status).toBe(403);
    expect((await getNode(admin, 'old')).spec.unschedulable).toBe(true);
    expect((await getNode(admin, 'young')).metadata.annotations?.['drydock.dev/test']).toBeUndefined();
    const undo = { metadata: { annotations: { 'drydock.dev/test': null } }, spec: { unschedulable: null } };
    await call(asOld, 'PATCH', '/api/v1/nodes/old', undo);
  });

  test('has ordinary users who may do nothing until RBAC says so', async () => {
    const stranger = await lab.kubernetes.userKubeconfig('stranger');
    expect((await call(stranger, 'GET', '/api/v1/nodes')).status).toBe(403);
  });

  test('schedules and runs Deployments, and refuses an eviction that a PodDisruptionBudget forbids', async () => {
    const pods = '/api/v1/namespaces/default/pods';
    await call(admin, 'POST', '/apis/apps/v1/namespaces/default/deployments', deployment('web', 2));
    await call(admin, 'POST', '/apis/policy/v1/namespaces/default/poddisruptionbudgets', {
      metadata: { name: 'web' },
      spec: { minAvailable: 2, selector: { matchLabels: { app: 'web' } } },
    });
    const budget = '/apis/policy/v1/namespaces/default/poddisruptionbudgets/web';
    await waitUntil(async () => ((await call(admin, 'GET', budget)).body as Budget).status?.currentHealthy === 2, {
      what: 'two healthy pods',
      timeoutMs: PATIENCE.timeout,
    });
    const list = (await call(admin, 'GET', `${pods}?labelSelector=app%3Dweb`)).body as PodList;
    const name = list.items[0]!.metadata.name;
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace: 'default' } };
    const refused = await call(admin, 'POST', `${pods}/${name}/eviction`, eviction);
    expect(refused.status).toBe(429);

    await call(admin, 'PATCH', budget, { spec: { minAvailable: 1 } });
    await waitUntil(async () => (await call(admin, 'POST', `${pods}/${name}/eviction`, eviction)).status === 200, {
      what: 'the eviction to be allowed',
      timeoutMs: PATIENCE.timeout,
    });
    await waitUntil(async () => (await call(admin, 'GET', `${pods}/${name}`)).status === 404, {
      what: 'the evicted pod to be gone',
      timeoutMs: PATIENCE.timeout,
    });
  });

  test('keeps a pod unready that is labelled so', async () => {
    await call(admin, 'POST', '/api/v1/namespaces/default/pods', {
      metadata: { name: 'stuck', labels: { [NEVER_READY_LABEL]: 'true' } },
      spec: { nodeName: 'new', containers: [{ name: 'c', image: 'example.invalid/c' }] },
    });
    const pod = await waitUntil(
      async () => {
        const { body } = await call(admin, 'GET', '/api/v1/namespaces/default/pods/stuck');
        const { status } = body as { status: { phase: string; conditions: { type: string; status: string }[] } };
        return status.phase === 'Running' ? status : undefined;
      },
      { what: 'the pod to run', timeoutMs: PATIENCE.timeout },
    );
    expect(pod.conditions).toContainEqual(expect.objectContaining({ type: 'Ready', status: 'False' }));
  });
});

describe('a killed process of the lab', () => {
  test('is started again on the same port with the same data', async () => {
    const { apiServer } = lab.kubernetes.processes;
    await apiServer!.kill();
    await expect(call(admin, 'GET', '/readyz')).rejects.toThrow(/ECONNREFUSED|ECONNRESET|socket hang up/);
    await apiServer!.restart();
    await lab.kubernetes.waitUntilReady();
    expect((await getNode(admin, 'young')).metadata.labels['zone']).toBe('b');
  });
});

describe('a kubelet of the lab', () => {
  test('ends a deleted pod at once, or after the time that its annotation says', async () => {
    const pods = '/api/v1/namespaces/default/pods';
    const pod = (name: string, annotations: object) => ({
      metadata: { name, annotations },
      spec: { nodeName: 'new', containers: [{ name: 'c', image: 'example.invalid/c' }] },
    });
    await call(admin, 'POST', pods, pod('quick', {}));
    await call(admin, 'POST', pods, pod('slow', { [TERMINATION_ANNOTATION]: '3s' }));
    await call(admin, 'DELETE', `${pods}/slow`);
    const asked = Date.now();
    await call(admin, 'DELETE', `${pods}/quick`);
    const gone = (name: string) => async () => (await call(admin, 'GET', `${pods}/${name}`)).status === 404;
    await waitUntil(gone('quick'), { what: 'the end of quick', timeoutMs: PATIENCE.timeout });
    await waitUntil(gone('slow'), { what: 'the end of slow', timeoutMs: PATIENCE.timeout });
    expect(Date.now() - asked).toBeGreaterThan(2_000);
  });

  test('runs the pods again that were made not ready while it was away, and leaves them their addresses', async () => {
    const pods = '/api/v1/namespaces/default/pods';
    const kwok = lab.kubernetes.processes.kwok!;
    const statusOf = async (name: string) => ((await call(admin, 'GET', `${pods}/${name}`)).body as Pod).status;
    const runs = (name: string) =>
      waitUntil(async () => readyCondition(await statusOf(name)) === 'True', {
        what: `${name} to run`,
        timeoutMs: PATIENCE.timeout,
      });
    const spec = { nodeName: 'new', containers: [{ name: 'c', image: 'example.invalid/c' }] };
    for (const name of ['first', 'second']) {
      await call(admin, 'POST', pods, { metadata: { name }, spec });
      await runs(name);
    }
    const { podIP, podIPs } = await statusOf('second');
    await kwok.kill();
    // As the controller manager does it with all pods of a Node that it has not heard of.
    const conditions = [{ type: 'Ready', status: 'False' }];
    expect(await call(admin, 'PATCH', `${pods}/second/status`, { status: { conditions } })).toMatchObject({
      status: 200,
    });
    // Whatever serves a new kwok first of all gets the first of all addresses, as if it were free.
    await kwok.restart();
    await runs('second');
    expect(await statusOf('second')).toMatchObject({ podIP, podIPs: [{ ip: podIP }] });
    expect(podIPs).toEqual([{ ip: podIP }]);
  });

  test('that a node stops is missed after the grace period, and comes back with the boot ID that the node wrote', async () => {
    const asOld = await lab.kubernetes.nodeKubeconfig('old');
    const label = (value: string | null) => ({ metadata: { labels: { 'drydock.dev/lab-kubelet': value } } });
    const cordon = { metadata: { annotations: { 'drydock.dev/kept': 'yes' } }, spec: { unschedulable: true } };
    await call(asOld, 'PATCH', '/api/v1/nodes/old', cordon);

    await call(asOld, 'PATCH', '/api/v1/nodes/old', label(null));
    await waitUntil(async () => (await readyOf(admin, 'old')) !== 'True', {
      what: 'NotReady',
      timeoutMs: PATIENCE.timeout,
    });

    await call(asOld, 'PATCH', '/api/v1/nodes/old/status', { status: { nodeInfo: { bootID: 'boot-2' } } });
    await call(asOld, 'PATCH', '/api/v1/nodes/old', label('running'));
    await waitUntil(async () => (await readyOf(admin, 'old')) === 'True', {
      what: 'Ready',
      timeoutMs: PATIENCE.timeout,
    });

    // Several heartbeats later everything that was written is as it was.
    const lease = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/old';
    const renewTime = async () => ((await call(admin, 'GET', lease)).body as Lease).spec.renewTime;
    const before = await renewTime();
    await waitUntil(async () => (await renewTime()) > before, { what: 'a heartbeat', timeoutMs: PATIENCE.timeout });
    const node = await getNode(admin, 'old');
    expect(node.status.nodeInfo.bootID).toBe('boot-2');
    expect(node.spec.unschedulable).toBe(true);
    expect(node.metadata.annotations?.['drydock.dev/kept']).toBe('yes');
  });

  test('plays no Node that the lab did not give to it', async () => {
    await lab.kubernetes.createNodes([{ name: 'bare', kubelet: false }]);
    await lab.kubernetes.createNodes([{ name: 'after' }]);
    expect(await readyOf(admin, 'after')).toBe('True');
    expect(await readyOf(admin, 'bare')).not.toBe('True');
  });
});

describe('the Temporal part', () => {
  const start = { taskQueue: 'nobody', searchAttributes: { DrydockPool: ['worker'], DrydockPhase: ['Draining'] } };

  test('starts workflows with our search attributes at once, and keeps ended ones for the retention that is set', async () => {
    const connection = await Connection.connect({ address: lab.temporal.address });
    const client = new Client({ connection, namespace: lab.temporal.namespace });
    await client.workflow.start('anything', { ...start, workflowId: 'first' });
    const { config } = await connection.workflowService.describeNamespace({ namespace: lab.temporal.namespace });
    expect(Number(config?.workflowExecutionRetentionTtl?.seconds)).toBe(7 * 24 * 3600);
    await connection.close();
  });

  test('is asked by the chaos test what waits for what', async () => {
    const connection = await Connection.connect({ address: lab.temporal.address });
    const client = new Client({ connection, namespace: lab.temporal.namespace });
    await client.workflow.start('anything', { ...start, workflowId: 'waits' });
    const open = () => describeTemporal(lab.temporal);
    await expect
      .poll(open, PATIENCE)
      .toContainEqual(
        expect.stringMatching(
          /^workflow waits: 2 events, the last WORKFLOW_TASK_SCHEDULED \d+ s ago; workflow task not taken, attempt 1$/,
        ),
      );
    expect(await open()).toContain('activity tasks of the control workers are polled for by nobody');
    await connection.close();
  });

  test('shows its UI', async () => {
    const response = await fetch(`${lab.temporal.uiUrl ?? ''}/`);
    expect(response.status).toBe(200);
    expect(await response.text()).toContain('<html');
  });

  test('killed with SIGKILL and restarted, is on the same address with the same workflows', async () => {
    const { address, namespace } = lab.temporal;
    const workflowId = 'survivor';
    const connection = await Connection.connect({ address });
    const client = new Client({ connection, namespace });
    await client.workflow.start('anything', { ...start, workflowId });
    const pid = lab.temporal.pid;

    await lab.temporal.kill('SIGKILL');
    expect(lab.temporal.pid).toBeUndefined();
    await lab.temporal.restart();

    expect(lab.temporal.address).toBe(address);
    expect(lab.temporal.pid).not.toBe(pid);
    expect((await client.workflow.getHandle(workflowId).describe()).status.name).toBe('RUNNING');
    await client.workflow.start('anything', { ...start, workflowId: 'after-restart' });
    await connection.close();
  });
});

describe('a lab on a cluster of the user’s own', () => {
  test('runs kwok there, never writes the kubeconfig, and acts as its nodes by impersonation', async () => {
    const kwok = lab.kubernetes.processes.kwok!;
    await kwok.kill();
    const before = await readFile(admin, 'utf8');
    const own = await startLab({ temporal: false, kubeconfig: admin });
    try {
      expect(Object.keys(own.kubernetes.processes)).toEqual(['kwok']);
      await own.kubernetes.createNodes([{ name: 'theirs' }]);
      expect(await readyOf(admin, 'theirs')).toBe('True');
      const asNode = ['--kubeconfig', await own.kubernetes.nodeKubeconfig('theirs')];
      const { stdout } = await run(lab.kubernetes.kubectl, [...asNode, 'annotate', 'node', 'theirs', 'a=b']);
      expect(stdout).toContain('annotated');
      await expect(run(lab.kubernetes.kubectl, [...asNode, 'annotate', 'node', 'old', 'a=b'])).rejects.toThrow(
        /node "theirs" cannot read|is not allowed to modify node|forbidden/,
      );
      expect(await readFile(admin, 'utf8')).toBe(before);
    } finally {
      await own.stop();
      await kwok.restart();
    }
  });

  test('is refused with the reason when the kubeconfig cannot be used', async () => {
    await expect(startLab({ temporal: false, kubeconfig: userKubeconfig })).rejects.toThrow(
      `--kubeconfig ${userKubeconfig}: cannot be read`,
    );
    await expect(startLab({ temporal: false, kubeconfig: TEMPORAL_DEV_FILE })).rejects.toThrow(/is not a kubeconfig: /);
  });
});

interface Budget {
  status?: { currentHealthy?: number };
}
interface Pod {
  status: { podIP: string; podIPs: { ip: string }[]; conditions?: { type: string; status: string }[] };
}
interface PodList {
  items: { metadata: { name: string } }[];
}
interface Lease {
  spec: { renewTime: string };
}

function readyCondition({ conditions = [] }: Pod['status']): string | undefined {
  return conditions.find(({ type }) => type === 'Ready')?.status;
}

function deployment(name: string, replicas: number): object {
  const labels = { app: name };
  return {
    metadata: { name },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'example.invalid/c' }] } },
    },
  };
}
