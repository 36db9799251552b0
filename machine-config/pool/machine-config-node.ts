import { EMPTY_CONFIG_NAME } from '../api/flavour.js';
import {
  NOT_YET_SET,
  type MachineConfigNodeCondition,
  type MachineConfigNodeSpec,
  type MachineConfigNodeStatus,
} from '../api/machine-config-node.js';
import type { NodeFacts } from './facts.js';
import { nodeVerdicts, phaseOf, type NodeVerdict } from './machine-config-node-conditions.js';

export interface NodeReportFacts {
  readonly node: NodeFacts;
  /** Undefined: it is in none. */
  readonly pool: string | undefined;
  /** The boot in which the present update was granted, as the object keeps it in an annotation. */
  readonly bootBefore: string | undefined;
}

/** What a MachineConfigNode is for, besides its status. */
export interface NodeReport {
  readonly spec: MachineConfigNodeSpec;
  /** The boot to remember with it. */
  readonly bootBefore: string;
}

/** The config that the node was granted, which before its first grant is the one it came with, if any. */
function grantedConfig({ desired, current }: NodeFacts): string {
  return desired ?? (current === EMPTY_CONFIG_NAME ? undefined : current) ?? NOT_YET_SET;
}

/**
 * What the MachineConfigNode of a node asks for. The boot is remembered until the change of the disk has begun: from
 * then on another one tells that the node was rebooted for it.
 */
export function nodeReport({ node, pool, bootBefore }: NodeReportFacts): NodeReport {
  const isOpen = ['granted', 'cordoned'].includes(phaseOf(node, bootBefore));
  return {
    spec: {
      node: { name: node.name },
      pool: { name: pool ?? NOT_YET_SET },
      configVersion: { desired: grantedConfig(node) },
    },
    bootBefore: isOpen ? node.bootId : (bootBefore ?? node.bootId),
  };
}

export interface NodeStatusFacts extends NodeReportFacts {
  /** Of the object with the spec that `nodeReport` gives. */
  readonly generation: number;
  readonly previous: MachineConfigNodeStatus | undefined;
  /** ISO 8601, for conditions whose status changes. */
  readonly now: string;
}

function withTime(
  type: string,
  verdict: NodeVerdict,
  { previous, now }: Pick<NodeStatusFacts, 'previous' | 'now'>,
): MachineConfigNodeCondition {
  const before = previous?.conditions?.find((condition) => condition.type === type);
  const lastTransitionTime = before?.status === verdict.status ? before.lastTransitionTime : now;
  return { type, ...verdict, lastTransitionTime };
}

/** Whether an update of the node is on its way: its object will soon be written again. */
export function isOnItsWay({ node, bootBefore }: Pick<NodeReportFacts, 'node' | 'bootBefore'>): boolean {
  return !['settled', 'unmanaged'].includes(phaseOf(node, bootBefore));
}

/**
 * The status of a MachineConfigNode, from what the Node shows and what the status said before. An update in the ordinary
 * case has five of them: granted, cordoned, applying, rebooted, done. The same facts over the last answer give that
 * answer again, to the letter; times change with the status of a condition only, and what others keep in it stays.
 */
export function nodeStatus(facts: NodeStatusFacts): MachineConfigNodeStatus {
  const { node, previous, generation, bootBefore } = facts;
  const phase = phaseOf(node, bootBefore);
  const target = grantedConfig(node);
  const verdicts = nodeVerdicts({
    node,
    phase,
    target,
    versions: previous?.configVersion,
    previous: (type) => previous?.conditions?.find((condition) => condition.type === type),
  });
  const ours = Object.entries(verdicts).map(([type, verdict]) => withTime(type, verdict, facts));
  const others = (previous?.conditions ?? []).filter(({ type }) => !Object.hasOwn(verdicts, type));
  return {
    ...previous,
    observedGeneration: Math.max(generation, previous?.observedGeneration ?? 1),
    configVersion: {
      ...(node.current === undefined ? {} : { current: node.current }),
      desired: phase === 'granted' ? (previous?.configVersion?.desired ?? NOT_YET_SET) : target,
    },
    conditions: [...ours, ...others],
  };
}
