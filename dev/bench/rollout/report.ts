import type { Histories } from './histories.js';
import type { RolloutBenchOptions } from './options.js';
import { slotsOf, type ProductRun } from './product.js';

/** The last line with `--json`. Times in seconds, memory in MB; null: not measured, or there is nothing to divide by. */
export interface RolloutFigures {
  readonly nodes: number;
  readonly slots: number;
  readonly step: number;
  readonly makespan: number;
  /** As if an update took nothing but its step. */
  readonly ideal: number;
  readonly ratio: number | null;
  readonly floorRatio: number | null;
  readonly eventsPerNode: number;
  readonly requestsPerNode: number;
  readonly evictionsPerPod: number | null;
  /** Of the control worker and the node workers. */
  readonly cpuSecondsPerNode: number;
  /** Of the control worker at its most. */
  readonly rssPerNode: number;
  readonly largestRunEvents: number;
}

export interface Measured {
  readonly options: RolloutBenchOptions;
  readonly product: ProductRun;
  readonly floor: Histories | undefined;
}

const round = (value: number, digits = 2): number => Number(value.toFixed(digits));
const ratio = (value: number, of: number): number | null => (of > 0 ? round(value / of, 3) : null);

export function figures({ options, product, floor }: Measured): RolloutFigures {
  const { nodes, stepSeconds, pods } = options;
  const { histories, requests, control, fleet } = product;
  const slots = slotsOf(options);
  const ideal = Math.ceil(nodes / slots) * stepSeconds;
  return {
    nodes,
    slots,
    step: stepSeconds,
    makespan: round(histories.makespan),
    ideal: round(ideal),
    ratio: ratio(histories.makespan, ideal),
    floorRatio: floor === undefined ? null : ratio(histories.makespan, floor.makespan),
    eventsPerNode: round(histories.eventsPerNode, 1),
    requestsPerNode: round(requests.requests / nodes, 1),
    evictionsPerPod: ratio(requests.evicted, pods * nodes),
    cpuSecondsPerNode: round((control.cpuSeconds + fleet.cpuSeconds) / nodes, 3),
    rssPerNode: round(control.peakResident / nodes, 3),
    largestRunEvents: histories.largestRunEvents,
  };
}

const MEGABYTE = 1e6;

/** For people. */
export function describeRollout(measured: Measured): string {
  const found = figures(measured);
  const { options, product, floor } = measured;
  const { histories, requests, control, fleet, lab } = product;
  const perNode = (value: number, digits = 1) => round(value / options.nodes, digits);
  return [
    `rollout of ${found.nodes} nodes, ${found.slots} at once, ${found.step} s each`,
    `  makespan        ${found.makespan} s; ideal ${found.ideal} s, ratio ${found.ratio ?? 'none'}`,
    floor === undefined
      ? '  floor           not measured'
      : `  floor           ${round(floor.makespan)} s with nothing to do, ratio ${found.floorRatio ?? 'none'}; ` +
        `${round(floor.eventsPerNode, 1)} events a node`,
    `  events          ${found.eventsPerNode} a node, of them ${round(histories.eventsPerUpdate, 1)} of its update; ` +
      `${histories.updates} updates, ${histories.rolloutRuns} runs of the rollout`,
    `  largest run     ${found.largestRunEvents} events, ${round(histories.largestRunSize / MEGABYTE)} MB`,
    `  API requests    ${found.requestsPerNode} a node; besides ${perNode(requests.machineConfigNodes)} of ` +
      `MachineConfigNodes and ${perNode(requests.evictionCalls)} evictions`,
    ...[...requests.byKind].map(([kind, count]) => `    ${kind}: ${perNode(count, 2)}`),
    `  evictions       ${found.evictionsPerPod ?? 'none'} a pod`,
    `  CPU             ${perNode(control.cpuSeconds, 3)} s a node of the control worker, ` +
      `${perNode(fleet.cpuSeconds, 3)} s of the node workers`,
    ...[...lab].map(
      ([name, use]) =>
        `    beside it ${name}: ${perNode(use.cpuSeconds, 3)} s a node, ${use.peakResident} MB at its most`,
    ),
    `  memory          control worker ${control.peakResident} MB at its most, ` +
      `node workers ${perNode(fleet.peakResident)} MB each`,
  ].join('\n');
}
