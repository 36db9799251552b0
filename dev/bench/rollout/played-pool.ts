import { heartbeat } from '@temporalio/activity';
import { setTimeout as sleep } from 'node:timers/promises';
import type { NodeFacts, PoolFacts } from '../../../machine-config/pool/facts.js';
import { planTurn } from '../../../machine-config/pool/plan-turn.js';
import type { ControlActivities, NodeActivities } from '../../../workflows/contract/activities.js';

const TARGET = 'rendered-played-after';
const BEFORE = 'rendered-played-before';
const HEARTBEAT_MS = 5_000;

export interface PlayedPoolOptions {
  readonly nodes: number;
  /** As spec.maxUnavailable of a pool. */
  readonly maxUnavailable: number | string;
  /** How long each node takes to apply. */
  readonly stepSeconds: number;
}

/** A pool that is only in memory: whatever is asked of it is done at once. */
export class PlayedPool {
  readonly names: readonly string[];
  private readonly facts: Map<string, NodeFacts>;
  private readonly pool: PoolFacts;
  private readonly stepMs: number;

  constructor(name: string, { nodes, maxUnavailable, stepSeconds }: PlayedPoolOptions) {
    this.names = Array.from({ length: nodes }, (_, index) => `${name}-${index + 1}`);
    this.facts = new Map(this.names.map((node) => [node, nodeBefore(node)]));
    this.pool = { name, uid: name, paused: false, deleting: false, target: TARGET, maxUnavailable };
    this.stepMs = stepSeconds * 1000;
  }

  control(): ControlActivities {
    return {
      planTurn: ({ inFlight, resting, now }) =>
        Promise.resolve(
          planTurn({
            pool: this.pool,
            members: [...this.facts.values()],
            inFlight: Object.keys(inFlight),
            gone: [],
            resting,
            now,
          }),
        ),
      assign: ({ node }) => {
        this.change(node, { desired: TARGET });
        return Promise.resolve({ outcome: 'granted', target: TARGET, current: BEFORE });
      },
      syncPool: () => Promise.resolve({ exists: true, needsRollout: true, target: TARGET }),
      clearReboot: () => Promise.resolve({ clear: true }),
      checkChildren: () => Promise.resolve({ closed: [] }),
      renderPool: () => Promise.resolve({ outcome: 'poolGone' }),
      collectRendered: () => Promise.resolve({ deleted: 0 }),
      reconcileSources: () => Promise.resolve({ known: false, objects: 0, generated: [], refused: [], written: 0 }),
      renewBootstrapToken: () => Promise.resolve({ outcome: 'absent' }),
    };
  }

  node(name: string): NodeActivities {
    const boots = { bootId: 'boot-1', rebooted: true };
    return {
      prepare: () => Promise.resolve(PLAN),
      cordon: () => Promise.resolve({ ours: true }),
      drain: () => Promise.resolve({ drained: true, evicted: 0, remaining: 0, blockers: [] }),
      apply: async () => {
        await this.waitForStep();
        return { reboot: true, bootId: 'boot-0', filesWritten: 1, unitsChanged: 0 };
      },
      reboot: () => Promise.resolve({ requested: true, oldBootId: 'boot-0' }),
      confirm: () => Promise.resolve(boots),
      uncordon: () => {
        this.change(name, { current: TARGET });
        return Promise.resolve({ uncordoned: true });
      },
      release: () => Promise.resolve({ uncordoned: true }),
    };
  }

  private change(name: string, changes: Partial<NodeFacts>): void {
    this.facts.set(name, { ...nodeBefore(name), ...this.facts.get(name), ...changes });
  }

  private async waitForStep(): Promise<void> {
    const beat = setInterval(() => heartbeat(), HEARTBEAT_MS);
    await sleep(this.stepMs).finally(() => clearInterval(beat));
  }
}

const PLAN = {
  from: BEFORE,
  target: TARGET,
  disruption: 'reboot',
  changes: { files: 1, units: 0, sshKeys: 0, kernelArguments: 0 },

  summary: '1 file; reboot',
} as const;

function nodeBefore(name: string): NodeFacts {
  return {
    name,
    uid: name,
    createdAt: '2026-01-01T00:00:00Z',
    labels: {},
    deleting: false,
    unschedulable: false,
    ready: true,
    bootId: 'boot-0',
    worker: '0.0.0',
    current: BEFORE,
    desired: BEFORE,
    state: 'Done',
  };
}
