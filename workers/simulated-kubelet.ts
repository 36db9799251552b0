import { setTimeout as sleep } from 'node:timers/promises';
import { KINDS, type KubernetesClient, type KubernetesObject } from '../activities/kubernetes/client.js';

/** The label by which the lab's kwok plays a node's kubelet; a node may change it on itself. */
const KUBELET_LABEL = 'drydock.dev/lab-kubelet';
const RETRY_MS = 500;

interface Condition {
  readonly type: string;
  readonly status: string;
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
    const conditions = node.status?.conditions ?? [];
    const now = new Date().toISOString();
    const changed: Condition & Record<string, string> = {
      type: 'Ready',
      status: ready,
      reason: ready === 'True' ? 'KubeletReady' : 'NodeStatusUnknown',
      message: ready === 'True' ? 'kubelet is posting ready status' : 'Kubelet stopped posting node status.',
      lastHeartbeatTime: now,
      lastTransitionTime: now,
    };
    await this.client.patch(
      KINDS.node,
      { name: this.node },
      {
        metadata: { resourceVersion: node.metadata.resourceVersion },
        status: {
          conditions: [...conditions.filter(({ type }) => type !== 'Ready'), changed],
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
