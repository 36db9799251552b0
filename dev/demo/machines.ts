import { bootsOf } from '../../activities/host/simulated-host.js';
import type { KubernetesClient } from '../../activities/kubernetes/client.js';
import { apiFlavour } from '../../machine-config/api/flavour.js';
import type { DrydockProcesses } from '../drydock-processes.js';
import type { Lab } from '../lab.js';
import { whyNoRealNodes } from '../real-nodes/availability.js';
import { startRealNodes, type RealNode } from '../real-nodes/real-node.js';
import { diskDifferences, realDiskDifferences } from './expected-disk.js';
import type { NodeObserver } from './observer.js';
import {
  describeRealNode,
  isAsConfigured,
  recordBoot,
  reportRealNode,
  type BootRecord,
  type RealNodeReport,
} from './real-node-report.js';
import { describeRestart, isOnlyRestarted, runRestartStep, type RestartReport } from './restart-step.js';

/** What is asked of the demo's machines, simulated and real. */
export interface DemoMachines {
  countBoots(names: Iterable<string>): Promise<Map<string, number>>;
  /** One line a difference between the disk and what it shall be. */
  diskDifferences(name: string, pool: string): Promise<string[]>;
}

/** With what a change that restarts a service did to it. */
export type DemoRealNode = RealNodeReport & { readonly restart: RestartReport };

const DAY_MS = 24 * 3600_000;

export function demoMachines(processes: DrydockProcesses, realNodes: readonly RealNode[]): DemoMachines {
  const real = new Map(realNodes.map((node) => [node.name, node]));
  const boots = async (name: string) =>
    (await real.get(name)?.boots()) ?? (await bootsOf(processes.rootOf(name))).length;
  return {
    async countBoots(names) {
      const counts = new Map<string, number>();
      for (const name of names) counts.set(name, await boots(name));
      return counts;
    },
    diskDifferences(name, pool) {
      const node = real.get(name);
      return node === undefined ? diskDifferences(processes.rootOf(name), pool) : realDiskDifferences(node.root);
    },
  };
}

/** Real systemd machines as workers, each with the node worker from its package. */
export async function startDemoMachines(lab: Lab, count: number, tell: (line: string) => void): Promise<RealNode[]> {
  if (count === 0) return [];
  const why = await whyNoRealNodes(tell);
  if (why !== undefined) throw new Error(`--real-nodes ${count}: ${why}`);
  tell(`Booting ${count} real systemd ${count === 1 ? 'machine' : 'machines'} with the packaged node worker`);
  const nodes = Array.from({ length: count }, (_, index) => ({
    name: `real-${index + 1}`,
    labels: { 'node-role.kubernetes.io/worker': '', 'topology.kubernetes.io/zone': 'zone-a' },
    createdAt: new Date(Date.now() - (200 + index) * DAY_MS),
  }));
  return startRealNodes(lab, { nodes, log: tell });
}

export async function recordBoots(nodes: readonly RealNode[]): Promise<Map<string, BootRecord>> {
  return new Map(await Promise.all(nodes.map(async (node) => [node.name, await recordBoot(node)] as const)));
}

interface RealNodesToShow {
  readonly nodes: readonly RealNode[];
  readonly before: ReadonlyMap<string, BootRecord>;
  readonly client: KubernetesClient;
  readonly observer: NodeObserver;
  readonly roll: (what: string, apply: () => Promise<void>, pools: readonly string[]) => Promise<void>;
  readonly tell: (line: string) => void;
}

/** What the real machines are like after the rollout; then a change that only restarts a service, and what it did. */
export async function showRealNodes(show: RealNodesToShow): Promise<DemoRealNode[]> {
  const { nodes, before, client, observer, roll, tell } = show;
  if (nodes.length === 0) return [];
  const reports = new Map<string, RealNodeReport>();
  for (const node of nodes) {
    const record = before.get(node.name) ?? { boots: 0, bootId: '' };
    const report = await reportRealNode(node, record, tell);
    describeRealNode(report).forEach(tell);
    reports.set(node.name, report);
  }
  const rollOut = (apply: () => Promise<void>) => roll('a change that restarts a service', apply, ['worker']);
  const flavour = apiFlavour('openshift');
  const restarts = await runRestartStep({ client, flavour, observer, nodes, rollOut, say: tell });
  restarts.forEach((report, name) => tell(describeRestart(name, report)));
  return nodes.flatMap(({ name }) => {
    const [report, restart] = [reports.get(name), restarts.get(name)];
    return report === undefined || restart === undefined ? [] : [{ ...report, restart }];
  });
}

export function isAsItShallBe(node: DemoRealNode): boolean {
  return isAsConfigured(node) && isOnlyRestarted(node.restart);
}
