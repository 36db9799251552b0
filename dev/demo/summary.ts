import type { PoolReport } from '../../client/pool-report.js';
import type { Lab } from '../lab.js';
import type { DemoMachines, DemoRealNode } from './machines.js';
import type { NodeObserver } from './observer.js';

export interface DemoSummary {
  /** Everything is as it shall be. */
  readonly ok: boolean;
  readonly seconds: number;
  readonly temporalUi: string | null;
  readonly kubeconfig: string;
  readonly pools: readonly {
    readonly name: string;
    readonly maxUnavailable: number | string;
    readonly machineCount: number;
    readonly updatedMachineCount: number;
    readonly degradedMachineCount: number;
    readonly updated: boolean;
    readonly maxOverlap: number;
  }[];
  readonly nodes: readonly {
    readonly name: string;
    readonly pool: string;
    readonly zone: string;
    readonly createdAt: string;
    readonly startedAt: string | null;
    readonly finishedAt: string | null;
    readonly bootsBefore: number;
    readonly bootsAfter: number;
    readonly state: string;
    readonly diskVerified: boolean;
  }[];
  /** Of `nodes`, those that are real systemd machines. */
  readonly realNodes: readonly DemoRealNode[];
}

interface Ending {
  readonly started: number;
  readonly lab: Lab;
  readonly pools: readonly PoolReport[];
  readonly observer: NodeObserver;
  readonly machines: DemoMachines;
  readonly bootsBefore: ReadonlyMap<string, number>;
  readonly tell: (line: string) => void;
}

/** What the rollout of the MachineConfigs did, for a person and as an object. */
export async function summarise(ending: Ending): Promise<Omit<DemoSummary, 'realNodes'>> {
  const { started, lab, observer, machines, bootsBefore, tell } = ending;
  const bootsAfter = await machines.countBoots(observer.nodes.keys());
  const pools = ending.pools.map((pool) => ({
    name: pool.name,
    maxUnavailable: pool.maxUnavailable,
    machineCount: pool.machineCount,
    updatedMachineCount: pool.updatedMachineCount,
    degradedMachineCount: pool.degradedMachineCount,
    updated: pool.updated,
    maxOverlap: observer.maxOverlap(pool.name),
  }));
  const nodes = [];
  for (const node of observer.nodes.values()) {
    const { name, pool, zone, createdAt, startedAt, finishedAt, state } = node;
    const differences = await machines.diskDifferences(name, pool);
    differences.forEach((line) => tell(`${name}: ${line}`));
    nodes.push({
      name,
      pool,
      zone,
      createdAt,
      startedAt,
      finishedAt,
      bootsBefore: bootsBefore.get(name) ?? 0,
      bootsAfter: bootsAfter.get(name) ?? 0,
      state,
      diskVerified: differences.length === 0,
    });
  }
  const ok =
    pools.every(({ updated, degradedMachineCount }) => updated && degradedMachineCount === 0) &&
    nodes.every(({ state, diskVerified, finishedAt }) => state === 'Done' && diskVerified && finishedAt !== null);
  const seconds = Math.round((Date.now() - started) / 1000);
  const verified = nodes.filter(({ diskVerified }) => diskVerified).length;
  tell(`${verified} of ${nodes.length} disks are as the configs say${ok ? '' : '; something is not as it shall be'}`);
  for (const pool of pools) {
    tell(`${pool.name}: at most ${pool.maxOverlap} of ${pool.machineCount} nodes out of service at once`);
  }
  const { kubeconfigPath } = lab.kubernetes;
  return { ok, seconds, temporalUi: lab.temporal.uiUrl ?? null, kubeconfig: kubeconfigPath, pools, nodes };
}
