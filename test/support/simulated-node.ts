import { ApplicationFailure } from '@temporalio/common';
import { Context } from '@temporalio/activity';
import { setTimeout as sleep } from 'node:timers/promises';
import { KINDS, type KubernetesClient } from '../../activities/kubernetes/client.js';
import type { NodeResource } from '../../activities/cluster/control-dependencies.js';
import { DRYDOCK_ANNOTATIONS, EMPTY_CONFIG_NAME, type ApiFlavour } from '../../machine-config/api/flavour.js';
import { nodeFacts, type NodeFacts } from '../../machine-config/pool/facts.js';
import type {
  DrainBlocker,
  DrainResult,
  NodeActivities,
  NodeStep,
  TargetStep,
} from '../../workflows/contract/activities.js';
import type { FailureCode } from '../../workflows/contract/failure-codes.js';
import type { FakeCluster } from './fake-cluster.js';

export type Step = keyof NodeActivities;

/**
 * A node worker without a host, for workflow tests: its steps do to the Node object, with the node's own identity, what
 * the real ones do, and remember what was asked of the machine. Tests hold, fail and count steps through `before`.
 */
export class SimulatedNode {
  readonly name: string;
  readonly uid: string;
  /** Steps in the order in which they began. */
  readonly steps: Step[] = [];
  /** Runs before each step; may wait, and may throw to fail it. */
  before: (step: Step, input: NodeStep) => void | Promise<void> = () => undefined;
  /** What a drain meets; empty: it drains at once. */
  blockers: readonly DrainBlocker[] = [];
  /** What its pool's policy says of a drain that meets something. */
  givesBack: DrainResult['giveBack'];
  /** The sentence that a drain tells; undefined: none, as workers of version 0.1. */
  sentence: string | undefined;
  /** Its pods could run nowhere else. */
  keepsPods = false;
  boots = 1;
  readonly #cluster: FakeCluster;
  readonly #client: KubernetesClient;
  readonly #flavour: ApiFlavour;
  readonly #now: () => number;
  #bootAtApply: number | undefined;

  /** `now`: its clock, in epoch milliseconds. */
  constructor(cluster: FakeCluster, flavour: ApiFlavour, node: NodeResource, now: () => number = Date.now) {
    this.#now = now;
    this.#cluster = cluster;
    this.#client = cluster.as(`system:node:${node.metadata.name}`);
    this.#flavour = flavour;
    this.name = node.metadata.name;
    this.uid = node.metadata.uid ?? '';
  }

  get facts(): NodeFacts {
    const node = this.#cluster.peek<NodeResource>(KINDS.node, this.name);
    if (node === undefined) throw new Error(`no Node ${this.name}`);
    return nodeFacts(node, this.#flavour);
  }

  /** What a worker writes when it starts for the first time. */
  async register(current = EMPTY_CONFIG_NAME): Promise<void> {
    await this.#annotate({ worker: '0.0.0', current, state: 'Done' });
  }

  activities(): NodeActivities {
    const step = <I extends NodeStep, R>(name: Step, act: (input: I) => Promise<R>) => {
      return async (input: I): Promise<R> => {
        this.steps.push(name);
        await this.before(name, input);
        const node = this.#cluster.peek<NodeResource>(KINDS.node, this.name);
        if (node?.metadata.uid !== input.nodeUid) throw failure('NodeGone', `Node ${this.name} is gone`);
        return act(input);
      };
    };
    return {
      prepare: step('prepare', (input) => this.#prepare(input)),
      cordon: step('cordon', (input) => this.#cordon(input)),
      drain: step('drain', async (input) => {
        const until = Date.now() + input.sliceSeconds * 1000;
        while (this.blockers.length > 0 && Date.now() < until) {
          Context.current().heartbeat();
          await Context.current().sleep(20);
        }
        const remaining = this.blockers.length;
        return {
          drained: remaining === 0,
          evicted: 0,
          remaining,
          blockers: this.blockers,
          ...(this.sentence === undefined || remaining === 0 ? {} : { sentence: this.sentence }),
          ...(this.givesBack === undefined || remaining === 0 ? {} : { giveBack: this.givesBack }),
        };
      }),
      apply: step('apply', (input) => this.#apply(input)),
      reboot: step('reboot', () => this.#reboot()),
      confirm: step('confirm', (input) => this.#confirm(input)),
      uncordon: step('uncordon', (input) => this.#uncordon(input)),
      release: step('release', () => this.#release()),
    };
  }

  async #prepare({ target }: TargetStep) {
    const { current, desired } = this.facts;
    if (desired !== target)
      throw failure('NotGranted', `${this.name} was granted ${desired ?? 'nothing'}, not ${target}`);
    if (this.facts.state !== 'Degraded') await this.#annotate({ state: 'Working' });
    const disruption = current === EMPTY_CONFIG_NAME ? ('none' as const) : ('reboot' as const);
    const changes = { files: 1, units: 0, sshKeys: 0, kernelArguments: 0 };
    const plan = { from: current ?? '', target, disruption, changes, pods: 0, summary: '1 file' };
    return this.keepsPods ? { ...plan, noDrain: true as const } : plan;
  }

  async #cordon({ target }: TargetStep) {
    const { unschedulable, cordonedFor } = this.facts;
    if (unschedulable) return { ours: cordonedFor !== undefined };
    await this.#annotate({ cordonedFor: target }, { spec: { unschedulable: true } });
    return { ours: true };
  }

  async #apply({ target }: TargetStep) {
    const { desired, current } = this.facts;
    if (desired !== target)
      throw failure('NotGranted', `${this.name} was granted ${desired ?? 'nothing'}, not ${target}`);
    await this.#annotate({ applying: target });
    this.#bootAtApply ??= this.boots;
    const reboot = current !== EMPTY_CONFIG_NAME;
    return { reboot, bootId: `boot-${this.#bootAtApply}`, filesWritten: 1, unitsChanged: 0 };
  }

  async #reboot() {
    const requested = this.boots === this.#bootAtApply;
    if (requested) {
      this.boots += 1;
      await this.#setReady(false);
      void sleep(50).then(() => this.#setReady(true));
    }
    return { requested, oldBootId: `boot-${this.#bootAtApply ?? 0}` };
  }

  #confirm({ target }: TargetStep) {
    const { ready, current } = this.facts;
    const rebooted = this.boots !== this.#bootAtApply;
    if (current !== EMPTY_CONFIG_NAME && (!rebooted || !ready)) {
      throw ApplicationFailure.create({
        message: `${this.name} is not back on ${target}`,
        type: 'NotRebootedYet',
        nextRetryDelay: 50,
      });
    }
    return Promise.resolve({ bootId: `boot-${this.boots}`, rebooted });
  }

  async #uncordon({ target }: TargetStep) {
    const uncordoned = this.facts.cordonedFor !== undefined;
    const lastUpdate = JSON.stringify({ target, at: new Date(this.#now()).toISOString(), seconds: {} });
    const done = {
      cordonedFor: null,
      applying: null,
      failure: null,
      current: target,
      state: 'Done',
      reason: '',
      lastUpdate,
    };
    await this.#annotate(done, uncordoned ? { spec: { unschedulable: null } } : {});
    this.#bootAtApply = undefined;
    return { uncordoned };
  }

  async #release() {
    const { cordonedFor, state, current, desired } = this.facts;
    const uncordoned = cordonedFor !== undefined;
    const settled = state === 'Working' && current === desired ? { state: 'Done' } : {};
    await this.#annotate({ cordonedFor: null, ...settled }, uncordoned ? { spec: { unschedulable: null } } : {});
    return { uncordoned };
  }

  /** Writes what a failed update leaves, and returns the failure to throw. */
  async degrade(code: FailureCode, reason: string, target: string): Promise<ApplicationFailure> {
    const attempts = (this.facts.failure?.attempts ?? 0) + 1;
    const record = JSON.stringify({ target, attempts, at: new Date(this.#now()).toISOString() });
    await this.#annotate({ state: 'Degraded', reason, failure: record, applying: null });
    return failure(code, reason);
  }

  async #annotate(values: Record<string, string | null>, patch: object = {}): Promise<void> {
    const { annotations: keys } = this.#flavour;
    const key: Record<string, string> = {
      ...DRYDOCK_ANNOTATIONS,
      current: keys.currentConfig,
      desired: keys.desiredConfig,
      state: keys.state,
      reason: keys.reason,
    };
    const annotations = Object.fromEntries(Object.entries(values).map(([name, value]) => [key[name] ?? name, value]));
    await this.#client.patch(KINDS.node, { name: this.name }, { metadata: { annotations }, ...patch });
  }

  async #setReady(ready: boolean): Promise<void> {
    const conditions = [{ type: 'Ready', status: ready ? 'True' : 'Unknown' }];
    await this.#client.patch(KINDS.node, { name: this.name }, { status: { conditions } }, 'status');
  }
}

function failure(code: FailureCode, message: string): ApplicationFailure {
  return ApplicationFailure.nonRetryable(message, code);
}
