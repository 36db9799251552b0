import type { ApiFlavour } from '../../machine-config/api/flavour.js';
import type { MachineConfig } from '../../machine-config/api/machine-config.js';
import type { OwnPod } from '../../machine-config/drain/drain-pods.js';
import type { Host } from '../host/host.js';
import type { StateStore } from '../host/state-store.js';
import type { KubernetesClient } from '../kubernetes/client.js';
import type { NodeEvents } from './events.js';
import type { NodeMetrics } from './metrics.js';
import type { NodeMemory } from './node-memory.js';

/** What the activities of one node need; all of it is handed in. */
export interface NodeDependencies {
  /** Name of the Node that this worker runs on. */
  readonly node: string;
  /** uid of the namespace kube-system. */
  readonly clusterUid: string;
  /** With the node's own identity. */
  readonly client: KubernetesClient;
  readonly host: Host;
  readonly store: StateStore;
  readonly flavour: ApiFlavour;
  /** Of this worker, for the Node's annotation. */
  readonly version: string;
  readonly now: () => Date;
  /** Whether a rendered config's contents have the hash in its name. */
  readonly hasItsName: (rendered: MachineConfig) => boolean;
  /** Why a running node cannot be brought from one config to the other; empty: it can. `old` absent: from nothing. */
  readonly irreconcilable: (old: MachineConfig | undefined, next: MachineConfig) => readonly string[];
  /** The worker is to end: a change of the host that is under way is put back. Absent: it is carried to its end. */
  readonly stopping?: AbortSignal;
  /** How often a drain looks at the pods at first; default 1,000. */
  readonly drainPollMs?: number;
  /** The pod that this worker runs in; absent: it is a service of the host. */
  readonly ownPod?: OwnPod;
  /** What is remembered between steps; absent: everything is read anew. */
  readonly memory?: NodeMemory;
  /** Absent: nobody is told by Events. */
  readonly events?: NodeEvents;
  /** Absent: nothing is measured. */
  readonly metrics?: NodeMetrics;
}
