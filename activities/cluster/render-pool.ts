import { isDeepStrictEqual } from 'node:util';
import { apiVersionOf, DRYDOCK_ANNOTATIONS } from '../../machine-config/api/flavour.js';
import type { MachineConfig } from '../../machine-config/api/machine-config.js';
import { osDemands, whyNotForMembers } from '../../machine-config/pool/capabilities.js';
import { renderPool as render } from '../../machine-config/render/render-pool.js';
import { verifyRenderedName } from '../../machine-config/render/name.js';
import { selectMachineConfigs } from '../../machine-config/render/select.js';
import type { PoolStep, RenderPoolResult } from '../../workflows/contract/activities.js';
import { alreadyExists, failedWith } from '../kubernetes/failures.js';
import {
  refuseOtherCluster,
  type ControlDependencies,
  type MachineConfigResource,
  type PoolResource,
} from './control-dependencies.js';
import { freezeOn, readDisruptionPolicies } from './disruption-policies.js';
import { memberFacts } from './pool-view.js';
import { whyIrreconcilable } from './reconcile-render.js';
import { writePoolStatus } from './pool-status.js';
import { readPool } from './sync-pool.js';

/**
 * Selects, merges, validates and stores the rendered config of a pool, and names it in the pool's spec. What cannot be
 * rendered is said in the condition RenderDegraded, and the pool keeps the config that it has.
 *
 * @throws WrongCluster, and the client's failures; a Conflict is retried.
 */
export async function renderPool(dependencies: ControlDependencies, input: PoolStep): Promise<RenderPoolResult> {
  const { cluster, client, flavour } = dependencies;
  refuseOtherCluster(cluster, input.cluster);
  const pool = await readPool(dependencies, input.pool);
  if (pool === undefined || pool.metadata.deletionTimestamp !== undefined) return { outcome: 'poolGone' };
  const machineConfigs = await client.list<MachineConfigResource>(flavour.machineConfig);
  const selected = selectMachineConfigs(pool, machineConfigs);
  const result = render({ pool: input.pool, machineConfigs: selected, flavour });
  const policies = await readDisruptionPolicies(dependencies);
  // Also where nothing new can be rendered: what is being rolled out follows the policies of now.
  if (policies.problem === undefined) await freezeOn(dependencies, pool.spec.configuration?.name, policies.frozen);
  const { configuration } = policies;
  const refused =
    result.outcome === 'refused'
      ? result.reason
      : (policies.problem ??
        whyIncapable(dependencies, pool, result.config) ??
        (await whyIrreconcilable(dependencies, pool, {
          config: result.config,
          machineConfigs: selected,
          configuration,
        })));
  if (result.outcome === 'refused' || refused !== undefined) {
    const reason = refused ?? '';
    await reportRender(dependencies, pool, reason);
    return { outcome: 'refused', reason };
  }
  const { config, sources } = result;
  await store(dependencies, pool, withPolicies(config, policies.frozen));
  const changed = await target(dependencies, pool, config.metadata.name, sources);
  if (changed) dependencies.events?.rendered(pool, config.metadata.name, sources.length);
  await reportRender(dependencies, (await readPool(dependencies, input.pool)) ?? pool, null);
  return { outcome: 'rendered', rendered: config.metadata.name, changed, sources: sources.length };
}

/** Members that cannot do what a new target asks for are found before the first of the others is cordoned. */
function whyIncapable(
  { nodes, pools, flavour }: ControlDependencies,
  pool: PoolResource,
  config: MachineConfigResource,
): string | undefined {
  if (config.metadata.name === pool.spec.configuration?.name) return undefined;
  return whyNotForMembers(osDemands(config.spec), memberFacts(pool.metadata.name, nodes.list(), pools.list(), flavour));
}

function withPolicies(config: MachineConfig, frozen: string): MachineConfigResource {
  return {
    ...config,
    metadata: { ...config.metadata, annotations: { [DRYDOCK_ANNOTATIONS.disruptionPolicies]: frozen } },
  };
}

/** Creates the rendered config, or puts its contents back if somebody changed them: the name is the hash of them. */
async function store({ client, flavour }: ControlDependencies, pool: PoolResource, config: MachineConfigResource) {
  const wanted: MachineConfigResource = {
    ...config,
    metadata: {
      ...config.metadata,
      ownerReferences: [
        {
          apiVersion: apiVersionOf(flavour),
          kind: flavour.machineConfigPool.kind,
          name: pool.metadata.name,
          uid: pool.metadata.uid ?? '',
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
    },
  };
  try {
    await client.create(flavour.machineConfig, wanted);
  } catch (error) {
    if (!alreadyExists(error)) throw error;
    const found = await client.get<MachineConfigResource>(flavour.machineConfig, { name: config.metadata.name });
    // Other bytes with the same meaning have the same name: they may stay.
    const isWhole =
      verifyRenderedName(found) &&
      isDeepStrictEqual(found.metadata.ownerReferences, wanted.metadata.ownerReferences) &&
      policiesOf(found) === policiesOf(wanted);
    if (!isWhole) {
      await client.replace(flavour.machineConfig, {
        ...found,
        ...wanted,
        metadata: {
          ...found.metadata,
          ...wanted.metadata,
          annotations: { ...found.metadata.annotations, ...wanted.metadata.annotations },
        },
      });
    }
  }
}

function policiesOf({ metadata }: MachineConfigResource): string | undefined {
  return metadata.annotations?.[DRYDOCK_ANNOTATIONS.disruptionPolicies];
}

/** Names the rendered config, and what it was made of, in the pool's spec. True: it was another one. */
async function target(
  { client, flavour }: ControlDependencies,
  pool: PoolResource,
  name: string,
  sources: readonly string[],
): Promise<boolean> {
  const source = sources.map((each) => ({
    apiVersion: apiVersionOf(flavour),
    kind: flavour.machineConfig.kind,
    name: each,
  }));
  const { configuration } = pool.spec;
  if (configuration?.name === name && isDeepStrictEqual(configuration.source, source)) return false;
  await client.patch(
    flavour.machineConfigPool,
    { name: pool.metadata.name },
    { metadata: { resourceVersion: pool.metadata.resourceVersion }, spec: { configuration: { name, source } } },
  );
  return configuration?.name !== name;
}

async function reportRender(
  dependencies: ControlDependencies,
  pool: PoolResource,
  error: string | null,
): Promise<void> {
  const { nodes, pools, flavour } = dependencies;
  const members = memberFacts(pool.metadata.name, nodes.list(), pools.list(), flavour);
  try {
    await writePoolStatus(dependencies, pool, members, { renderError: error });
  } catch (failure) {
    if (!failedWith(failure, 'NotFound')) throw failure;
  }
}
