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
import type { RolloutPolicy } from '../../machine-config/api/rollout-policy.js';
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

export interface PodParts {
  readonly annotations?: Record<string, string>;
  readonly labels?: Record<string, string>;
  readonly namespace?: string;
  readonly kind?: string;
  readonly phase?: string;
  /** Name of a PersistentVolumeClaim that it uses. */
  readonly claim?: string;
  readonly finalizers?: string[];
}

/** One node of a small cluster: its host, its worker's activities, and what Kubernetes says of it. */
export async function setUpNode() {
  let now = Date.parse('2026-11-30T12:00:00Z');
  const cluster = new FakeCluster({ clusterUid: 'cluster-1', now: () => new Date(now) });
  const fake = await fakeHost();
  const bootId = await fake.host.bootId();
  cluster.add<NodeObject>(KINDS.node, {
    metadata: { name: 'n1', uid: 'uid-1' },
    status: { conditions: [{ type: 'Ready', status: 'True' }], nodeInfo: { bootID: bootId } },
  });
  cluster.add(rbacRole, {
    metadata: { name: 'configs' },
    rules: [
      { apiGroups: [flavour.group], resources: ['machineconfigs'], verbs: ['get'] },
      { apiGroups: [flavour.group], resources: ['machineconfigpools'], resourceNames: ['worker'], verbs: ['get'] },
    ],
  } as KubernetesObject);
  cluster.add(KINDS.clusterRoleBinding, {
    metadata: { name: 'configs' },
    roleRef: { name: 'configs' },
    subjects: [{ kind: 'User', name: 'system:node:n1' }],
  } as KubernetesObject);
  cluster.add(flavour.machineConfigPool, { metadata: { name: 'worker' }, spec: {} } as KubernetesObject);
  const told: { reason: string; message: string }[] = [];
  const tell = (reason: string, message: string) => void told.push({ reason, message });
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
    drainPollMs: 10,
    events: { normal: tell, warning: tell, flushed: () => Promise.resolve() },
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
    /** Events, in the order in which they were told. */
    told,
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
    pod(name: string, more: PodParts = {}) {
      const { annotations = {}, kind, phase = 'Running', labels = {}, namespace = 'shop', claim, finalizers } = more;
      const ownerReferences =
        kind === undefined ? [] : [{ apiVersion: 'apps/v1', kind, name: 'o', uid: 'o', controller: true }];
      const volumes = claim === undefined ? [] : [{ name: 'data', persistentVolumeClaim: { claimName: claim } }];
      cluster.add(KINDS.pod, {
        metadata: {
          name,
          namespace,
          labels: { app: name, ...labels },
          annotations,
          ownerReferences,
          ...(finalizers === undefined ? {} : { finalizers }),
        },
        spec: { nodeName: 'n1', volumes },
        status: { phase, conditions: [{ type: 'Ready', status: 'True' }] },
      } as KubernetesObject);
    },
    pods: async () => (await cluster.list(KINDS.pod)).map(({ metadata }) => metadata.name).sort(),
    /** What the pool of the node says of its rollouts. */
    policy: (rollout: RolloutPolicy) =>
      cluster.patch(flavour.machineConfigPool, { name: 'worker' }, { spec: { rollout } }),
    budget(app: string, name = app) {
      cluster.add(POD_DISRUPTION_BUDGET, {
        metadata: { name, namespace: 'shop' },
        spec: { minAvailable: 1, selector: { matchLabels: { app } } },
        status: { disruptionsAllowed: 0, expectedPods: 1, currentHealthy: 1, desiredHealthy: 1 },
      } as KubernetesObject);
    },
  };
  await registerNode(deps);
  return test;
}
