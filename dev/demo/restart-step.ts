import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { KubernetesClient, KubernetesObject } from '../../activities/kubernetes/client.js';
import { readManifests } from '../../client/manifest-files.js';
import type { ApiFlavour } from '../../machine-config/api/flavour.js';
import { MACHINE_CONFIGURATION_NAME } from '../../machine-config/api/machine-configuration.js';
import { waitUntil } from '../processes/wait-until.js';
import type { RealNode } from '../real-nodes/real-node.js';
import type { NodeObserver } from './observer.js';
import { showUnit, SITE_UNIT } from './real-node-report.js';

/** What a change that only restarts a service did to a real machine. */
export interface RestartReport {
  readonly service: string;
  /** systemd has started the service anew. */
  readonly restarted: boolean;
  readonly rebooted: boolean;
  /** The node was out of service at some time. */
  readonly drained: boolean;
  /** The file is there as the config says. */
  readonly fileVerified: boolean;
}

const CONFIGS = fileURLToPath(new URL('restart-step', import.meta.url));
const FILE = '/etc/site/report.conf';
const CONTENTS = 'zone=lab\n';
const POLICY_TIMEOUT_MS = 60_000;

export interface RestartStep {
  readonly client: KubernetesClient;
  readonly flavour: ApiFlavour;
  readonly observer: NodeObserver;
  readonly nodes: readonly RealNode[];
  /** Rolls out what the action applies. */
  readonly rollOut: (apply: () => Promise<void>) => Promise<void>;
  readonly say: (line: string) => void;
}

/** A change of a file for which the cluster's policy asks that one service is restarted. */
export async function runRestartStep(step: RestartStep): Promise<Map<string, RestartReport>> {
  const { client, flavour, observer, nodes, rollOut } = step;
  const before = new Map(await Promise.all(nodes.map(async (node) => [node.name, await look(node)] as const)));
  await setPolicy(client, flavour);
  const drained = observer.recordUnschedulable();
  await rollOut(() => applyConfigs(step));
  const reports = nodes.map(async (node) => {
    const [was, is] = [before.get(node.name), await look(node)];
    const contents = await readFile(join(node.root, FILE), 'utf8').catch(() => '');
    const report: RestartReport = {
      service: SITE_UNIT,
      restarted: is.state === 'active' && is.invocation !== was?.invocation,
      rebooted: is.bootId !== was?.bootId,
      drained: drained.has(node.name),
      fileVerified: contents === CONTENTS,
    };
    return [node.name, report] as const;
  });
  return new Map(await Promise.all(reports));
}

async function applyConfigs({ client, flavour, say }: RestartStep): Promise<void> {
  const { manifests, errors } = await readManifests([CONFIGS]);
  if (errors.length > 0) throw new Error(errors.join('; '));
  for (const { value } of manifests) {
    const object = value as KubernetesObject;
    await client.create(flavour.machineConfig, object);
    say(`applied MachineConfig ${object.metadata.name}, which restarts ${SITE_UNIT} by policy`);
  }
}

/** It counts once the control worker has taken it over into the status. */
async function setPolicy(client: KubernetesClient, flavour: ApiFlavour): Promise<void> {
  const action = { type: 'Restart', restart: { serviceName: SITE_UNIT } };
  const cluster = { name: MACHINE_CONFIGURATION_NAME };
  await client.patch(flavour.machineConfiguration, cluster, {
    spec: { nodeDisruptionPolicy: { files: [{ path: FILE, actions: [action] }] } },
  });
  type Status = KubernetesObject & {
    status?: { nodeDisruptionPolicyStatus?: { clusterPolicies?: { files?: { path: string }[] } } };
  };
  await waitUntil(
    async () => {
      const { status } = await client.get<Status>(flavour.machineConfiguration, cluster);
      return status?.nodeDisruptionPolicyStatus?.clusterPolicies?.files?.some(({ path }) => path === FILE);
    },
    { what: 'the disruption policy to be taken over', timeoutMs: POLICY_TIMEOUT_MS },
  );
}

async function look(node: RealNode): Promise<{ state: string; invocation: string; bootId: string }> {
  const shown = await showUnit(node, SITE_UNIT, ['ActiveState', 'InvocationID']);
  return {
    state: shown.get('ActiveState') ?? '',
    // A new one at each start of a unit.
    invocation: shown.get('InvocationID') ?? '',
    bootId: await node.bootId(),
  };
}

export function isOnlyRestarted({ restarted, rebooted, drained, fileVerified }: RestartReport): boolean {
  return restarted && fileVerified && !rebooted && !drained;
}

export function describeRestart(name: string, report: RestartReport): string {
  const cost = [report.drained ? 'DRAINED' : 'no drain', report.rebooted ? 'REBOOTED' : 'no reboot'].join(', ');
  return `${name}: ${report.service} ${report.restarted ? 'restarted' : 'NOT restarted'}, ${cost}`;
}
