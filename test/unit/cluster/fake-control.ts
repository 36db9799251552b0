import type {
  ControlDependencies,
  MachineConfigResource,
  NodeResource,
  PoolResource,
} from '../../../activities/cluster/control-dependencies.js';
import { KINDS, type KubernetesObject } from '../../../activities/kubernetes/client.js';
import {
  apiFlavour,
  DRYDOCK_ANNOTATIONS,
  type FlavourName,
  type ResourceKind,
} from '../../../machine-config/api/flavour.js';
import type { MachineConfiguration } from '../../../machine-config/api/machine-configuration.js';
import type { MachineConfigPoolSpec } from '../../../machine-config/api/machine-config-pool.js';
import type { MachineConfigSpec } from '../../../machine-config/api/machine-config.js';
import { FakeCluster } from '../../support/fake-cluster.js';

export const CLUSTER = 'uid-of-the-cluster';
export const POOL = 'worker';

/** A control worker's activities over a fake API server, whose watches never lag. */
export class FakeControl {
  readonly cluster = new FakeCluster({ clusterUid: CLUSTER });
  readonly flavour;
  dependencies: ControlDependencies;

  constructor(flavourName: FlavourName = 'openshift') {
    this.flavour = apiFlavour(flavourName);
    const { cluster, flavour } = this;
    const cached = <T extends KubernetesObject>(kind: ResourceKind) => {
      const objects = new Map<string, T>();
      cluster.observe<T>(kind, (type, object) => {
        if (type === 'DELETED') objects.delete(object.metadata.name);
        else objects.set(object.metadata.name, object);
      });
      return { list: () => [...objects.values()], get: (name: string) => objects.get(name) };
    };
    this.dependencies = {
      client: cluster,
      flavour,
      cluster: CLUSTER,
      nodes: cached<NodeResource>(KINDS.node),
      pools: cached<PoolResource>(flavour.machineConfigPool),
      configs: cached<MachineConfigResource>(flavour.machineConfig),
      updates: { isRunning: () => Promise.resolve(false) },
      now: () => Date.parse('2026-03-01T12:00:00Z'),
    };
  }

  addPool(spec: Partial<MachineConfigPoolSpec> = {}): void {
    this.cluster.add<PoolResource>(this.flavour.machineConfigPool, {
      metadata: { name: POOL },
      spec: {
        nodeSelector: { matchLabels: { role: POOL } },
        machineConfigSelector: { matchLabels: { [this.flavour.roleLabel]: POOL } },
        ...spec,
      },
    });
  }

  addConfig(name: string, config: object, fields: Partial<MachineConfigSpec> = {}): void {
    this.cluster.add<MachineConfigResource>(this.flavour.machineConfig, {
      metadata: { name, labels: { [this.flavour.roleLabel]: POOL } },
      spec: { config: { ignition: { version: '3.4.0' }, ...config }, ...fields },
    });
  }

  setPolicies(spec: MachineConfiguration['spec']): Promise<unknown> {
    const kind = this.flavour.machineConfiguration;
    const found = this.cluster.peek<KubernetesObject & MachineConfiguration>(kind, 'cluster');
    if (found === undefined) return Promise.resolve(this.cluster.add(kind, { metadata: { name: 'cluster' }, spec }));
    return this.cluster.replace(kind, { ...found, spec });
  }

  addNode(name: string, annotations: Record<string, string> = {}): void {
    this.cluster.add<NodeResource>(KINDS.node, {
      metadata: {
        name,
        labels: { role: POOL },
        annotations: { [DRYDOCK_ANNOTATIONS.worker]: '1.0.0', ...annotations },
      },
      status: { conditions: [{ type: 'Ready', status: 'True' }], nodeInfo: { bootID: 'boot-1' } },
    });
  }

  pool(): PoolResource {
    const pool = this.dependencies.pools.get(POOL);
    if (pool === undefined) throw new Error('the pool is gone');
    return pool;
  }

  node(name: string): NodeResource {
    const node = this.dependencies.nodes.get(name);
    if (node === undefined) throw new Error(`${name} is gone`);
    return node;
  }
}
