import { DRYDOCK_ANNOTATIONS } from '../api/flavour.js';
import type { MachineConfigPool } from '../api/machine-config-pool.js';

/** What a machine that boots for the first time is given. */
export type NewNodeRevision =
  { readonly outcome: 'config'; readonly name: string } | { readonly outcome: 'none'; readonly reason: string };

interface Pool {
  readonly metadata: {
    readonly name: string;
    readonly generation?: number;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec: Pick<MachineConfigPool['spec'], 'configuration'>;
  readonly status?: Pick<
    NonNullable<MachineConfigPool['status']>,
    'configuration' | 'observedGeneration' | 'updatedMachineCount'
  >;
}

/**
 * The rendered config that a new node of the pool boots with. In the middle of a rollout the old one, which all nodes
 * have run, until one node has shown that the new one works: a new node neither tries what no node has tried, nor boots
 * what may not boot any more once there is something better. A target that the pool gave up is not served.
 */
export function revisionForNewNode(pool: Pool): NewNodeRevision {
  const { metadata, spec, status } = pool;
  const wanted = nonEmpty(spec.configuration?.name);
  const reached = nonEmpty(status?.configuration?.name);
  const name = wanted !== undefined && isShownToWork(pool, wanted) ? wanted : (reached ?? wanted);
  if (name !== undefined) return { outcome: 'config', name };
  return {
    outcome: 'none',
    reason: `pool ${metadata.name} has no rendered config yet; see its condition RenderDegraded`,
  };
}

function isShownToWork({ metadata, status }: Pool, wanted: string): boolean {
  if (metadata.annotations?.[DRYDOCK_ANNOTATIONS.rolledBackFrom] === wanted) return false;
  // A count of before the target changed is one of nodes on the target before.
  const { observedGeneration, updatedMachineCount = 0 } = status ?? {};
  const isOfNow =
    observedGeneration === undefined || metadata.generation === undefined || observedGeneration >= metadata.generation;
  return isOfNow && updatedMachineCount > 0;
}

function nonEmpty(text: string | undefined): string | undefined {
  return text === '' ? undefined : text;
}
