import type { Engine, EngineView } from '../../client/engine.js';
import type { ManagePoolInput } from '../../workflows/contract/inputs.js';
import type { LookNowAnswer, NodeUpdateStatus } from '../../workflows/contract/messages.js';

/** The commands' side of Temporal: what a test says it knows, and what it was asked to do. */
export class FakeEngine implements Engine {
  readonly started: ManagePoolInput[] = [];
  readonly views = new Map<string, EngineView>();
  updates: NodeUpdateStatus[] = [];
  closed = false;

  /** Makes the manager of a pool say no. */
  refusal: Error | undefined;

  startPool(input: ManagePoolInput): Promise<LookNowAnswer> {
    if (this.refusal !== undefined) return Promise.reject(this.refusal);
    this.started.push(input);
    return Promise.resolve({ sentence: `${input.pool} is looked at now` });
  }

  view(pool: string): Promise<EngineView> {
    return Promise.resolve(this.views.get(pool) ?? { manager: 'running', rollout: 'notRunning' });
  }

  nodeUpdates(nodes: readonly string[]): Promise<NodeUpdateStatus[]> {
    return Promise.resolve(this.updates.filter(({ node }) => nodes.includes(node)));
  }

  close(): Promise<void> {
    this.closed = true;
    return Promise.resolve();
  }
}
