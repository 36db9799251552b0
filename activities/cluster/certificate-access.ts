import { isDeepStrictEqual } from 'node:util';
import { CONTROLLER_CONFIG_NAME } from '../../machine-config/api/controller-config.js';
import {
  accessByNamespace,
  certificateObjects,
  certificateRoleName,
} from '../../machine-config/certificates/objects.js';
import { poolOf } from '../../machine-config/pool/membership.js';
import type { SourceProblem } from '../../machine-config/sources/source.js';
import { KINDS, type KubernetesClient, type KubernetesObject } from '../kubernetes/client.js';
import { alreadyExists, failedWith } from '../kubernetes/failures.js';
import type { ControlDependencies } from './control-dependencies.js';
import { readControllerConfig, type ControllerConfigResource } from './controller-config.js';
import { factsOf, poolSelectors } from './pool-view.js';

/** What is as it shall be is looked at again after this time, in case somebody changed it. */
const LOOK_AGAIN_MILLISECONDS = 60_000;
const RBAC_GROUP = 'rbac.authorization.k8s.io';

interface Wanted {
  /** Rules by namespace. */
  readonly rules: ReadonlyMap<string, readonly object[]>;
  readonly nodes: readonly string[];
}

interface Role extends KubernetesObject {
  rules?: readonly object[];
}
interface RoleBinding extends KubernetesObject {
  roleRef?: object;
  subjects?: readonly object[];
}

interface Found {
  readonly wanted: Wanted;
  readonly problem: SourceProblem | undefined;
  readonly at: number;
}
const FOUND = new WeakMap<KubernetesClient, Found>();

/**
 * Lets the managed members of pools, and nobody else, read the Secrets and ConfigMaps that a ControllerConfig names under
 * `certificates`, each by name, and takes that back where none is named any more. `seen` may be old: it only tells
 * whether anything is to be done, and that is done by the ControllerConfig as it is then. What was in order less than a
 * minute ago is not read again.
 *
 * @returns what an administrator has to do, if the control worker may not let nodes read something.
 * @throws the client's failures.
 */
export async function syncCertificateAccess(
  dependencies: ControlDependencies,
  seen: ControllerConfigResource | undefined,
): Promise<SourceProblem | undefined> {
  const { client, now } = dependencies;
  const found = FOUND.get(client);
  if (found !== undefined && isInOrder(found, wantedBy(seen, dependencies), now())) return found.problem;
  const wanted = wantedBy(await readControllerConfig(dependencies), dependencies);
  const problem = await bring(dependencies, wanted);
  FOUND.set(client, { wanted, problem, at: now() });
  return problem;
}

/** As syncCertificateAccess, by what the watch shows; nothing until it shows something. */
export async function syncCertificateAccessAsSeen(dependencies: ControlDependencies): Promise<void> {
  const { controllerConfigs } = dependencies;
  if (controllerConfigs?.freshness?.() === undefined) return;
  await syncCertificateAccess(dependencies, controllerConfigs.get(CONTROLLER_CONFIG_NAME));
}

/** Where nothing is wanted and nothing was, nobody can have spoilt anything. */
function isInOrder({ wanted: last, at }: Found, wanted: Wanted, now: number): boolean {
  return (wanted.rules.size === 0 || now - at < LOOK_AGAIN_MILLISECONDS) && isDeepStrictEqual(last, wanted);
}

function wantedBy(
  config: ControllerConfigResource | undefined,
  { nodes, pools, flavour }: Pick<ControlDependencies, 'nodes' | 'pools' | 'flavour'>,
): Wanted {
  const rules = accessByNamespace(certificateObjects(config?.spec.certificates ?? []));
  if (rules.size === 0) return { rules, nodes: [] };
  const selectors = poolSelectors(pools.list());
  const members = nodes
    .list()
    .map((node) => factsOf(node, flavour))
    .filter((node) => node.worker !== undefined && poolOf(node, selectors).kind === 'pool');
  return { rules, nodes: members.map(({ name }) => name).sort() };
}

async function bring(
  { client, flavour }: Pick<ControlDependencies, 'client' | 'flavour'>,
  wanted: Wanted,
): Promise<SourceProblem | undefined> {
  const name = certificateRoleName(flavour);
  const there = await findRoles(client, `metadata.name=${name}`);
  if (there === undefined) return OLD_RIGHTS;
  const { roles, bindings } = there;
  for (const [kind, found] of [
    [KINDS.roleBinding, bindings],
    [KINDS.role, roles],
  ] as const) {
    for (const namespace of found.keys()) {
      if (!wanted.rules.has(namespace)) await deleteIfThere(client, kind, { name, namespace });
    }
  }
  const subjects = wanted.nodes.map((node) => ({ apiGroup: RBAC_GROUP, kind: 'User', name: `system:node:${node}` }));
  const roleRef = { apiGroup: RBAC_GROUP, kind: 'Role', name };
  const refused: string[] = [];
  for (const [namespace, rules] of wanted.rules) {
    const metadata = { name, namespace };
    try {
      await ensure<Role>(client, KINDS.role, { metadata, rules }, roles.get(namespace));
      await ensure<RoleBinding>(client, KINDS.roleBinding, { metadata, roleRef, subjects }, bindings.get(namespace));
    } catch (error) {
      if (!failedWith(error, 'Forbidden', 'NotFound')) throw error;
      refused.push(namespace);
    }
  }
  return refused.length === 0 ? undefined : accessProblem(refused);
}

/** Of an installation that knows nothing of certificates; that must not hold up anything else. */
const OLD_RIGHTS: SourceProblem = {
  reason: 'MayNotGrant',
  message:
    'spec.certificates: the control worker may not look at Roles, so its own are of an earlier version; run drydock install again',
};

/** In all namespaces. Undefined: it may not be looked. */
async function findRoles(client: KubernetesClient, fieldSelector: string) {
  try {
    const bindings = byNamespace(await client.list<RoleBinding>(KINDS.roleBinding, { fieldSelector }));
    return { bindings, roles: byNamespace(await client.list<Role>(KINDS.role, { fieldSelector })) };
  } catch (error) {
    if (failedWith(error, 'Forbidden')) return undefined;
    throw error;
  }
}

function byNamespace<T extends KubernetesObject>(objects: readonly T[]): Map<string, T> {
  return new Map(objects.map((object) => [object.metadata.namespace ?? '', object]));
}

async function deleteIfThere(
  client: KubernetesClient,
  kind: (typeof KINDS)['role' | 'roleBinding'],
  object: { readonly name: string; readonly namespace: string },
): Promise<void> {
  try {
    await client.delete(kind, object);
  } catch (error) {
    if (!failedWith(error, 'NotFound')) throw error;
  }
}

async function ensure<T extends Role | RoleBinding>(
  client: KubernetesClient,
  kind: (typeof KINDS)['role' | 'roleBinding'],
  wanted: T,
  found: T | undefined,
): Promise<void> {
  const { metadata, ...parts } = wanted;
  if (found === undefined) {
    try {
      await client.create(kind, wanted);
    } catch (error) {
      // Another control worker was faster; the next look compares.
      if (!alreadyExists(error)) throw error;
    }
    return;
  }
  if (isSame(parts, found)) return;
  await client.replace(kind, { ...found, ...parts, metadata: { ...found.metadata, ...metadata } });
}

function isSame(parts: object, found: object): boolean {
  return Object.entries(parts).every(([key, value]) =>
    isDeepStrictEqual((found as Record<string, unknown>)[key] ?? [], value),
  );
}

function accessProblem(namespaces: readonly string[]): SourceProblem {
  return {
    reason: 'MayNotGrant',
    message:
      `spec.certificates: the control worker may not let nodes read what it names in ${namespaces.join(', ')}; put the ` +
      `Secrets and ConfigMaps into the namespace drydock, or bind a role there to the control worker that allows get, list and watch on them`,
  };
}
