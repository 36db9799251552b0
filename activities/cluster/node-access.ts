import { isDeepStrictEqual } from 'node:util';
import { CONTROLLER_CONFIG_NAME } from '../../machine-config/api/controller-config.js';
import { apiVersionOf, EMPTY_CONFIG_NAME, type ApiFlavour } from '../../machine-config/api/flavour.js';
import { READ_BY_NAME } from '../../machine-config/certificates/objects.js';
import type { NodeFacts, PoolFacts } from '../../machine-config/pool/facts.js';
import { KINDS, type KubernetesClient, type KubernetesObject } from '../kubernetes/client.js';
import { alreadyExists, failedWith } from '../kubernetes/failures.js';
import type { ControlDependencies } from './control-dependencies.js';

interface ClusterRole extends KubernetesObject {
  rules?: { apiGroups: string[]; resources: string[]; resourceNames: string[]; verbs: string[] }[];
}

interface ClusterRoleBinding extends KubernetesObject {
  roleRef: { apiGroup: string; kind: string; name: string };
  subjects?: { apiGroup: string; kind: string; name: string }[];
}

/** What is as it shall be is looked at again after this time, in case somebody changed it. */
const LOOK_AGAIN_MILLISECONDS = 60_000;

/** What each client found, or left, as it shall be: a pool's binding names thousands of nodes and hardly ever changes. */
const IN_ORDER = new WeakMap<KubernetesClient, Map<string, { readonly wanted: unknown; readonly at: number }>>();

const RBAC_GROUP = 'rbac.authorization.k8s.io';

/**
 * Lets the members of a pool, and nobody else, read the pool and the rendered configs that they run or are to run, by
 * name. A worker that is stolen from one pool cannot read what another pool is configured with. What was in order less
 * than a minute ago is not read again. `now` in epoch milliseconds.
 */
export async function syncNodeAccess(
  { client, flavour, now }: Pick<ControlDependencies, 'client' | 'flavour' | 'now'>,
  pool: PoolFacts,
  members: readonly NodeFacts[],
): Promise<void> {
  const name = `drydock:pool:${pool.name}`;
  const managed = members.filter((member) => member.worker !== undefined);
  const configs = new Set([pool.target, ...managed.flatMap(({ current, desired }) => [current, desired])]);
  const readable = [...configs].filter((config) => config !== undefined && config !== EMPTY_CONFIG_NAME) as string[];
  const role: ClusterRole = {
    apiVersion: `${RBAC_GROUP}/v1`,
    kind: 'ClusterRole',
    metadata: { name, ...ownedBy(flavour, pool) },
    rules: accessRules(flavour, pool.name, readable.sort()),
  };
  const binding: ClusterRoleBinding = {
    apiVersion: `${RBAC_GROUP}/v1`,
    kind: 'ClusterRoleBinding',
    metadata: { name, ...ownedBy(flavour, pool) },
    roleRef: { apiGroup: RBAC_GROUP, kind: 'ClusterRole', name },
    subjects: members
      .map((member) => ({ apiGroup: RBAC_GROUP, kind: 'User', name: `system:node:${member.name}` }))
      .sort((a, b) => (a.name < b.name ? -1 : 1)),
  };
  const known = IN_ORDER.get(client) ?? new Map<string, { wanted: unknown; at: number }>();
  IN_ORDER.set(client, known);
  const last = known.get(pool.name);
  const wanted = { role, subjects: binding.subjects };
  if (last !== undefined && now() - last.at < LOOK_AGAIN_MILLISECONDS && isDeepStrictEqual(last.wanted, wanted)) return;
  await ensure(client, KINDS.clusterRole, role, (found) => isDeepStrictEqual(found.rules ?? [], role.rules));
  await ensure(client, KINDS.clusterRoleBinding, binding, (found) =>
    isDeepStrictEqual(found.subjects ?? [], binding.subjects),
  );
  known.set(pool.name, { wanted, at: now() });
}

/**
 * The configs, the pool itself, whose policy each node follows in its drain, and the ControllerConfig, which names the
 * files that follow Secrets and ConfigMaps.
 */
function accessRules(
  { group, machineConfig, machineConfigPool, controllerConfig }: ApiFlavour,
  pool: string,
  configs: readonly string[],
) {
  const mayGet = (resource: string, resourceNames: readonly string[]) => ({
    apiGroups: [group],
    resources: [resource],
    resourceNames: [...resourceNames],
    verbs: ['get'],
  });
  return [
    ...(configs.length === 0 ? [] : [mayGet(machineConfig.plural, configs)]),
    mayGet(machineConfigPool.plural, [pool]),
    { ...mayGet(controllerConfig.plural, [CONTROLLER_CONFIG_NAME]), verbs: [...READ_BY_NAME] },
  ];
}

function ownedBy(flavour: ApiFlavour, pool: PoolFacts): Pick<KubernetesObject['metadata'], 'ownerReferences'> {
  const { machineConfigPool } = flavour;
  return {
    ownerReferences: [
      { apiVersion: apiVersionOf(flavour), kind: machineConfigPool.kind, name: pool.name, uid: pool.uid },
    ],
  };
}

async function ensure<T extends KubernetesObject>(
  client: KubernetesClient,
  kind: (typeof KINDS)['clusterRole' | 'clusterRoleBinding'],
  wanted: T,
  isAsWanted: (found: T) => boolean,
): Promise<void> {
  const { name } = wanted.metadata;
  try {
    const found = await client.get<T>(kind, { name });
    if (isAsWanted(found)) return;
    await client.replace(kind, { ...found, ...wanted, metadata: { ...found.metadata, ...wanted.metadata } });
  } catch (error) {
    if (!failedWith(error, 'NotFound')) throw error;
    try {
      await client.create(kind, wanted);
    } catch (createError) {
      // Another control worker was faster; the next look compares.
      if (!alreadyExists(createError)) throw createError;
    }
  }
}
