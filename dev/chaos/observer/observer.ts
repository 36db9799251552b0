import type { ApiFlavour } from '../../../machine-config/api/flavour.js';
import type { StoredChange } from '../etcd-watch.js';
import { BudgetCheck } from './budgets.js';
import type { Check } from './check.js';
import { ConfigCheck } from './configs.js';
import { CordonCheck } from './cordons.js';
import { NodeHistory } from './history.js';
import { RebootCheck } from './reboots.js';
import { ThrottleCheck } from './throttle.js';
import { World } from './world.js';

export interface Violation {
  readonly promise: string;
  readonly sentence: string;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly revision: number;
  readonly nodes: readonly string[];
  /** What befell the nodes concerned until then. */
  readonly history: readonly string[];
}

/** How much was seen: a run in which nothing happened proves nothing. */
export interface Seen {
  readonly changes: number;
  readonly grants: number;
  readonly reboots: number;
  readonly evictions: number;
}

/**
 * Checks on every change what Drydock promises, whatever goes wrong. It reads what the API server stores, and shares
 * neither a decision nor a client with the product.
 */
export class Observer {
  readonly world: World;
  readonly violations: Violation[] = [];
  readonly #throttle = new ThrottleCheck();
  readonly #reboots = new RebootCheck();
  readonly #budgets = new BudgetCheck();
  readonly #cordons = new CordonCheck();
  readonly #checks: readonly Check[];
  readonly #history = new NodeHistory();
  readonly #startedAt: number;
  #changes = 0;

  constructor(flavour: ApiFlavour, startedAt: number) {
    this.world = new World(flavour);
    this.#startedAt = startedAt;
    this.#checks = [this.#throttle, this.#budgets, new ConfigCheck(), this.#cordons, this.#reboots];
  }

  /** @param at epoch milliseconds */
  see(stored: StoredChange, at: number): void {
    const change = this.world.see(stored);
    if (change === undefined) return;
    this.#changes += 1;
    this.#history.see(change, `${((at - this.#startedAt) / 1000).toFixed(1).padStart(7)}s r${stored.revision}`);
    for (const check of this.#checks) {
      for (const { nodes, sentence } of check.see(change, this.world, at)) {
        const history = nodes.flatMap((node) => this.#history.of(node));
        this.violations.push({ promise: check.promise, sentence, at, revision: stored.revision, nodes, history });
      }
    }
  }

  get seen(): Seen {
    return {
      changes: this.#changes,
      grants: this.#throttle.grants,
      reboots: this.#reboots.reboots,
      evictions: this.#budgets.evictions,
    };
  }

  /** Somebody holds the node, or has cordoned it: nothing starts on it. */
  isKeptBack(node: string): boolean {
    return this.#cordons.isForeign(node) || (this.world.nodes.get(node)?.hold ?? '') !== '';
  }

  historyOf(node: string): readonly string[] {
    return this.#history.of(node);
  }
}
