import { alreadyExists } from '../../activities/kubernetes/failures.js';
import { stopReason } from '../../activities/cluster/stop-switch.js';
import { DRYDOCK_ANNOTATIONS } from '../../machine-config/api/flavour.js';
import { MACHINE_CONFIGURATION_NAME } from '../../machine-config/api/machine-configuration.js';
import { clusterConfiguration } from '../install/objects.js';
import { machineConfiguration } from '../pool-outlook.js';
import type { DrydockCluster } from '../rollouts.js';

export interface StopAnswer {
  /** Why everything is stopped, or was until now. */
  readonly reason?: string;
  readonly stopped: boolean;
  /** False: it was so already. */
  readonly changed: boolean;
}

/**
 * Stops everything: no update starts, no node reboots, what runs goes on to its next safe point. Whoever stopped it
 * first is right: that reason stays.
 */
export async function stopEverything(cluster: DrydockCluster, reason: string): Promise<StopAnswer> {
  const present = await machineConfiguration(cluster);
  const before = stopReason(present);
  if (before !== undefined) return { reason: before, stopped: true, changed: false };
  if (present === undefined) await createStopped(cluster, reason);
  else await writeStop(cluster, reason);
  return { reason, stopped: true, changed: true };
}

/** An emergency: where somebody else creates the object at the same time, theirs is stopped. */
async function createStopped(cluster: DrydockCluster, reason: string): Promise<void> {
  const { metadata, spec } = clusterConfiguration();
  const annotations = { [DRYDOCK_ANNOTATIONS.stop]: reason };
  try {
    await cluster.kubernetes.create(cluster.flavour.machineConfiguration, {
      metadata: { name: metadata.name, annotations },
      spec,
    } as Parameters<typeof cluster.kubernetes.create>[1]);
  } catch (error) {
    if (!alreadyExists(error)) throw error;
    await writeStop(cluster, reason);
  }
}

async function writeStop({ kubernetes, flavour }: DrydockCluster, reason: string | null): Promise<void> {
  const name = MACHINE_CONFIGURATION_NAME;
  const patch = { metadata: { annotations: { [DRYDOCK_ANNOTATIONS.stop]: reason } } };
  await kubernetes.patch(flavour.machineConfiguration, { name }, patch);
}

/** Lets everything go on that stopEverything stopped. */
export async function goOn(cluster: DrydockCluster): Promise<StopAnswer> {
  const before = stopReason(await machineConfiguration(cluster));
  if (before === undefined) return { stopped: false, changed: false };
  await writeStop(cluster, null);
  return { reason: before, stopped: false, changed: true };
}
