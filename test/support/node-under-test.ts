import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import { createNodeActivities } from '../../activities/node/activities.js';
import type { NodeDependencies } from '../../activities/node/dependencies.js';
import { registerNode } from '../../activities/node/register.js';
import { KINDS, type KubernetesObject } from '../../activities/kubernetes/client.js';
import { apiFlavour } from '../../machine-config/api/flavour.js';
import type { MachineConfig } from '../../machine-config/api/machine-config.js';
import { verifyRenderedName, renderedName } from '../../machine-config/render/name.js';
import type { DrainInput, NodeActivities } from '../../workflows/contract/activities.js';
import { FakeCluster, POD_DISRUPTION_BUDGET } from './fake-cluster.js';
import { fakeHost } from './fake-host.js';

const flavour = apiFlavour('openshift');
const KEYS = flavour.annotations;
/** As the workflow gives a step that waits for a reboot. */
export const STEP_LIMIT_SECONDS = 1800;
const rbacRole = KINDS.clusterRole;

export type NodeObject = KubernetesObject & {
  spec?: { unschedulable?: boolean };
  status?: { conditions?: { type: string; status: string }[]; nodeInfo?: { bootID: string } };
};

/** One node of a small cluster: its host, its worker's activities, and what Kubernetes says of it. */
export async function setUpNode() {
  const cluster = new FakeCluster({ clusterUid: 'cluster-1' });
  const fake = await fakeHost();
  const bootId = await fake.host.bootId();
  cluster.add<NodeObject>(KINDS.node, {
    metadata: { name: 'n1', uid: 'uid-1' },
    status: { conditions: [{ type: 'Ready', status: 'True' }], nodeInfo: { bootID: bootId } },
  });
  cluster.add(rbacRole, {
    metadata: { name: 'configs' },
    rules: [{ apiGroups: [flavour.group], resources: ['machineconfigs'], verbs: ['get'] }],
  } as KubernetesObject);
  cluster.add(KINDS.clusterRoleBinding, {
    metadata: { name: 'configs' },
    roleRef: { name: 'configs' },
    subjects: [{ kind: 'User', name: 'system:node:n1' }],
  } as KubernetesObject);
  let now = Date.parse('2026-11-30T12:00:00Z');
  const deps: NodeDependencies = {
    node: 'n1',
    clusterUid: 'cluster-1',
    client: cluster.as('system:node:n1'),
    host: fake.host,
    store: fake.store,
    flavour,
    version: '0.1.0',
    now: () => new Date(now),
    hasItsName: verifyRenderedName,
    irreconcilable: () => [],
  };
  const environment = new MockActivityEnvironment(
    { heartbeatTimeoutMs: 30_000, scheduledTimestampMs: now, scheduleToCloseTimeoutMs: STEP_LIMIT_SECONDS * 1000 },
    { logger: new DefaultLogger('ERROR') },
  );
  const real = createNodeActivities(deps);
  const step = { cluster: 'cluster-1', pool: 'worker', node: 'n1', nodeUid: 'uid-1' };
  const run = <K extends keyof NodeActivities>(name: K, input: Parameters<NodeActivities[K]>[0]) =>
    runWith(real, name, input);
  /** In the context of an activity. */
  function runWith<K extends keyof NodeActivities>(
    activities: NodeActivities,
    name: K,
    input: Parameters<NodeActivities[K]>[0],
  ): ReturnType<NodeActivities[K]> {
    const activity = (step: DrainInput): Promise<unknown> => activities[name](step);
    return environment.run<[DrainInput], unknown, typeof activity>(activity, input as DrainInput) as ReturnType<
      NodeActivities[K]
    >;
  }
  const test = {
    flavour,
    cluster,
    fake,
    deps,
    environment,
    step,
    run,
    runWith,
    advance: (seconds: number) => (now += seconds * 1000),
    node: () => cluster.peek<NodeObject>(KINDS.node, 'n1')!,
    annotations: () => cluster.peek<NodeObject>(KINDS.node, 'n1')?.metadata.annotations ?? {},
    /** Stores a rendered config as the pool's render does, and returns its name. */
    store(ignition: object, spec: Partial<NonNullable<MachineConfig['spec']>> = {}): string {
      const full = { config: { ignition: { version: '3.4.0' }, ...ignition }, ...spec };
      const name = renderedName('worker', full);
      if (cluster.peek(flavour.machineConfig, name) !== undefined) return name;
      const ownerReferences = [
        { apiVersion: `${flavour.group}/v1`, kind: 'MachineConfigPool', name: 'worker', uid: 'p', controller: true },
      ];
      cluster.add(flavour.machineConfig, { metadata: { name, ownerReferences }, spec: full } as KubernetesObject);
      return name;
    },
    /** As `assign` does. */
    async grant(target: string) {
      await cluster.patch(KINDS.node, { name: 'n1' }, { metadata: { annotations: { [KEYS.desiredConfig]: target } } });
    },
    /** As somebody at the machine does. */
    change: (path: string, text: string) => writeFile(join(fake.root, path), text),
    /** As the kubelet does after a boot. */
    async reportBoot() {
      const bootID = await fake.host.bootId();
      await cluster.patch(KINDS.node, { name: 'n1' }, { status: { nodeInfo: { bootID } } }, 'status');
    },
    /** The whole run-book, with a reboot if asked. */
    async update(target: string) {
      const input = { ...step, target };
      await test.grant(target);
      const plan = await run('prepare', input);
      if (plan.disruption === 'reboot' || plan.disruption === 'drain') await run('cordon', input);
      const applied = await run('apply', input);
      if (applied.reboot) {
        await run('reboot', input);
        await fake.boot();
        await test.reportBoot();
      }
      await run('confirm', input);
      await run('uncordon', input);
    },
    pod(name: string, more: { annotations?: Record<string, string>; kind?: string; phase?: string } = {}) {
      const { annotations = {}, kind, phase = 'Running' } = more;
      const ownerReferences =
        kind === undefined ? [] : [{ apiVersion: 'apps/v1', kind, name: 'o', uid: 'o', controller: true }];
      cluster.add(KINDS.pod, {
        metadata: { name, namespace: 'shop', labels: { app: name }, annotations, ownerReferences },
        spec: { nodeName: 'n1' },
        status: { phase, conditions: [{ type: 'Ready', status: 'True' }] },
      } as KubernetesObject);
    },
    budget(app: string) {
      cluster.add(POD_DISRUPTION_BUDGET, {
        metadata: { name: app, namespace: 'shop' },
        spec: { minAvailable: 1, selector: { matchLabels: { app } } },
        status: { disruptionsAllowed: 0, expectedPods: 1, currentHealthy: 1, desiredHealthy: 1 },
      } as KubernetesObject);
    },
  };
  await registerNode(deps);
  return test;
}
