import { setTimeout as sleep } from 'node:timers/promises';
import { KINDS, type KubernetesClient, type KubernetesObject } from '../activities/kubernetes/client.js';

/** The label by which the lab's kwok plays a node's kubelet; a node may change it on itself. */
const KUBELET_LABEL = 'drydock.dev/lab-kubelet';
const RETRY_MS = 500;

/** What a kubelet that is well says besides Ready. */
const NO_PRESSURE = {
  MemoryPressure: 'KubeletHasSufficientMemory',
  DiskPressure: 'KubeletHasNoDiskPressure',
  PIDPressure: 'KubeletHasSufficientPID',
} as const;

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
  readonly lastHeartbeatTime?: string;
  readonly lastTransitionTime?: string;
}
type Node = KubernetesObject & { status?: { conditions?: Condition[]; nodeInfo?: { bootID?: string } } };

/** What the kubelet of a simulated machine says of it, with the node's own identity. */
export class SimulatedKubelet {
  private readonly client: KubernetesClient;
  private readonly node: string;
  private readonly onRetry: (error: unknown) => void;

  constructor(client: KubernetesClient, node: string, onRetry: (error: unknown) => void) {
    this.client = client;
    this.node = node;
    this.onRetry = onRetry;
  }

  /**
   * The machine is down. Ready becomes Unknown at once, where a real cluster needs its grace period to notice; nobody
   * renews the lease any more.
   */
  async goneDown(): Promise<void> {
    await this.insist(() => this.label(null));
    await this.insist(() => this.report('Unknown'));
  }

  /** The machine is up in this boot. */
  async comeUp(bootId: string): Promise<void> {
    await this.insist(() => this.report('True', bootId));
    await this.insist(() => this.label('running'));
  }

  private async label(value: string | null): Promise<void> {
    await this.client.patch(KINDS.node, { name: this.node }, { metadata: { labels: { [KUBELET_LABEL]: value } } });
  }

  private async report(ready: 'True' | 'Unknown', bootID?: string): Promise<void> {
    const node = await this.client.get<Node>(KINDS.node, { name: this.node });
    const changed = conditionsOf(ready, new Date().toISOString());
    const types = new Set(changed.map(({ type }) => type));
    const others = (node.status?.conditions ?? []).filter(({ type }) => !types.has(type));
    await this.client.patch(
      KINDS.node,
      { name: this.node },
      {
        metadata: { resourceVersion: node.metadata.resourceVersion },
        status: {
          conditions: [...others, ...changed],
          ...(bootID === undefined ? {} : { nodeInfo: { bootID } }),
        },
      },
      'status',
    );
  }

  /** The API server may be away, too, and the Node may not exist yet. */
  private async insist(work: () => Promise<void>): Promise<void> {
    for (;;) {
      try {
        await work();
        return;
      } catch (error) {
        this.onRetry(error);
        await sleep(RETRY_MS);
      }
    }
  }
}

/**
 * A kubelet that is back says everything anew: the controller manager, which has waited for its grace period, has made
 * all that it said before Unknown, and kwok says nothing of a Node that is Ready.
 */
function conditionsOf(ready: 'True' | 'Unknown', now: string): Condition[] {
  const times = { lastHeartbeatTime: now, lastTransitionTime: now };
  if (ready === 'Unknown') {
    const message = 'Kubelet stopped posting node status.';
    return [{ type: 'Ready', status: 'Unknown', reason: 'NodeStatusUnknown', message, ...times }];
  }
  const pressures = Object.entries(NO_PRESSURE).map(([type, reason]) => ({ type, status: 'False', reason, ...times }));
  const message = 'kubelet is posting ready status';
  return [...pressures, { type: 'Ready', status: 'True', reason: 'KubeletReady', message, ...times }];
}
