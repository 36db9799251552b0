import { expect } from 'vitest';
import type { Waiting, WaitingCode } from '../../machine-config/pool/turn.js';
import { PoolLedger } from './pool-ledger.js';
import type { SimulatedNode } from './simulated-node.js';
import { until, type WorkflowLab } from './workflow-lab.js';

/** What keeps a node in its drain for as long as a test wants. */
export const BUDGET = [{ pod: 'shop/cart-1', why: 'PDB shop/cart allows 0 disruptions' }];

export interface BeginOptions {
  /** Default 4. */
  readonly nodes?: number;
  /** Default 1. */
  readonly maxUnavailable?: number;
}

interface Begun {
  readonly nodes: readonly SimulatedNode[];
  readonly first: string;
  readonly second: string;
  readonly ledger: PoolLedger;
}

/**
 * A pool in the middle of a rollout, after its first config has long been everywhere: the oldest node runs the second
 * one, the next ones sit in their drains, as many as may, and the others wait for their turn.
 */
export class RollingPool {
  readonly lab: WorkflowLab;
  readonly name: string;
  readonly done: SimulatedNode;
  readonly draining: readonly SimulatedNode[];
  readonly waiting: readonly SimulatedNode[];
  /** What all ran before. */
  readonly first: string;
  /** What the rollout is to. */
  readonly second: string;
  /** From the beginning of this rollout on. */
  readonly ledger: PoolLedger;

  private constructor(lab: WorkflowLab, name: string, { nodes, first, second, ledger }: Begun) {
    const [done, ...others] = nodes as [SimulatedNode, ...SimulatedNode[]];
    this.lab = lab;
    this.name = name;
    this.first = first;
    this.second = second;
    this.ledger = ledger;
    this.done = done;
    this.draining = others.filter(({ blockers }) => blockers.length > 0);
    this.waiting = others.filter(({ blockers }) => blockers.length === 0);
  }

  static async begin(lab: WorkflowLab, name: string, options: BeginOptions = {}): Promise<RollingPool> {
    const { nodes: count = 4, maxUnavailable = 1 } = options;
    const { nodes, first } = await lab.addSettledPool(name, count, { maxUnavailable });
    for (const node of nodes) node.steps.length = 0;
    const inDrain = nodes.slice(1, 1 + maxUnavailable);
    for (const node of inDrain) node.blockers = BUDGET;
    const ledger = new PoolLedger(lab.cluster, name);
    const second = await lab.revise(name, 'second');
    await lab.untilUpdated(name, nodes.slice(0, 1));
    await until(`nodes of ${name} to drain`, () => inDrain.every(({ steps }) => steps.includes('drain')));
    return new RollingPool(lab, name, { nodes, first, second, ledger });
  }

  /** The one that drains, where only one may. */
  get inDrain(): SimulatedNode {
    return at(this.draining, 0);
  }

  /** The one whose turn is next. */
  get next(): SimulatedNode {
    return at(this.waiting, 0);
  }

  /** The youngest. */
  get last(): SimulatedNode {
    return at(this.waiting, -1);
  }

  get nodes(): SimulatedNode[] {
    return [this.done, ...this.draining, ...this.waiting];
  }

  change(spec: object): Promise<unknown> {
    return this.lab.cluster.patch(this.lab.pools, { name: this.name }, { spec });
  }

  /** Lets every drain come to its end. */
  letDrain(): void {
    for (const node of this.draining) node.blockers = [];
  }

  /** So many updates of each, every one of them with one cordon and one reboot, and nothing beyond. */
  expectUpdates(expected: readonly (readonly [SimulatedNode, number])[]): void {
    const found = expected.map(([node]) => [node.name, this.#workOf(node)]);
    expect(found).toEqual(expected.map(([{ name }, count]) => [name, { cordons: count, reboots: count }]));
  }

  /** It was taken out of service once, and given back as it was. */
  expectGivenBack(node: SimulatedNode): void {
    expect(this.#workOf(node)).toEqual({ cordons: 1, reboots: 0 });
    expect(node.steps).not.toContain('apply');
    expect(node.facts).toMatchObject({ current: this.first, desired: this.first, state: 'Done', unschedulable: false });
  }

  /** Nobody so much as asked it anything. */
  expectUntouched(...nodes: readonly SimulatedNode[]): void {
    for (const { name, steps, facts } of nodes) {
      expect({ name, steps }).toEqual({ name, steps: [] });
      expect(facts).toMatchObject({ current: this.first, desired: this.first, state: 'Done' });
    }
  }

  /** Resolves when the rollout waits for such a reason, and says so in words like these. */
  async untilItWaits(code: WaitingCode, said: RegExp): Promise<void> {
    await until(`the rollout of ${this.name} to wait for ${code}, ${said.source}`, async () => {
      const handle = this.lab.rollout(this.name);
      const { turn } = await handle.query<{ turn: { waiting: Waiting | null } | null }>('rolloutStatus');
      return turn?.waiting?.code === code && said.test(turn.waiting.sentence);
    });
  }

  async untilRolloutEnds(): Promise<void> {
    await until(
      `the rollout of ${this.name} to end`,
      async () => (await this.lab.rollout(this.name).describe()).status.name === 'COMPLETED',
    );
  }

  #workOf(node: SimulatedNode): { cordons: number; reboots: number } {
    // The machine has booted once, and then for updates only.
    return { cordons: this.ledger.cordonsOf(node.name), reboots: node.boots - 1 };
  }
}

function at(nodes: readonly SimulatedNode[], index: number): SimulatedNode {
  const node = nodes.at(index);
  if (node === undefined) throw new Error(`there is no node number ${index}`);
  return node;
}
