import { apiVersionOf, type ApiFlavour, type ResourceKind } from '../machine-config/api/flavour.js';
import { KINDS, type KubernetesClient, type KubernetesObject } from '../activities/kubernetes/client.js';
import { failedWith } from '../activities/kubernetes/failures.js';
import { admissionManifests, installedControlUser } from './install/admission.js';
import { installCrds } from './install/crds.js';
import { findForeignOperator } from './install/foreign-operator.js';
import { applyManifest, type Manifest } from './install/manifest.js';
import { CONTROL_USER, rbacManifests } from './install/rbac.js';
import { firstBootManifests, installedIgnitionUser } from './install/first-boot.js';
import { installedWebhook, webhookManifest, type WebhookPlace } from './install/webhook.js';
import type { InstallAction, InstalledObject, InstallResult } from './install/report.js';
import { clusterConfiguration, emptyConfig, builtInPool, BUILT_IN_ROLES, rolesOf } from './install/objects.js';

export type { InstallResult } from './install/report.js';

export interface InstallInput {
  readonly client: KubernetesClient;
  readonly flavour: ApiFlavour;
  /**
   * How the pools are created where nodes exist already: `pause` (default) leaves every node as it is until somebody
   * resumes the pool, `run` lets the first rollout start as soon as the control worker runs.
   */
  readonly nodeExistsPolicy?: 'pause' | 'run';
  /**
   * The user as whom the control worker works; default: what the last installation was told, else the
   * service account `drydock-control` in the namespace `drydock`. It gets the rights of a control worker, and the admission policies keep it to them.
   */
  readonly controlUser?: string;
  /** The webhook of the control workers; default: the one that the last installation was told of, else none. */
  readonly webhook?: WebhookPlace;
  /**
   * The user as whom an Ignition server works, where machines may boot from one; default: the one that the last
   * installation was told of, else there is none.
   */
  readonly ignitionUser?: string;
  /** How long the API server may take to serve the new kinds; default 60 seconds. */
  readonly crdTimeoutMs?: number;
}

/** Install will not run on this cluster. The message is one line that says why and what to do. */
export class InstallRefused extends Error {
  override readonly name = 'InstallRefused';
}

/**
 * Brings the API to a cluster: CustomResourceDefinitions, roles, admission policies, MachineConfiguration `cluster`, the configs `00-master` and
 * `00-worker`, the pools `master` and `worker`. Run again it changes nothing, except CRDs, roles and policies that differ from ours; an
 * existing config or pool is never changed, and no Node ever. Rejects with InstallRefused where another operator
 * manages the nodes, before anything is written.
 */
export async function install(input: InstallInput): Promise<InstallResult> {
  const { client, flavour } = input;
  const foreign = await findForeignOperator(client);
  if (foreign !== undefined) throw new InstallRefused(foreign);

  const { validatingAdmissionPolicy } = KINDS;
  const apiVersion = apiVersionOf(validatingAdmissionPolicy);
  if ((await client.discover(apiVersion, validatingAdmissionPolicy.kind)) === undefined) {
    throw new InstallRefused(
      `the API server does not serve ${validatingAdmissionPolicy.kind} of ${apiVersion}, without which any node could choose its own config: Kubernetes 1.32 or newer is needed`,
    );
  }

  const nodes = await client.list(KINDS.node);
  const labels = nodes.map((node) => node.metadata.labels ?? {});
  const paused = nodes.length > 0 && input.nodeExistsPolicy !== 'run';
  const roles = rolesOf(labels);

  const objects: InstalledObject[] = [...(await installCrds(client, flavour, input.crdTimeoutMs ?? 60_000))];
  for (const manifest of await manifestsOf(input)) {
    const action = await applyManifest(client, manifest);
    objects.push({ kind: manifest.resource.kind, name: manifest.object.metadata.name, action });
  }
  const ensure = async (resource: ResourceKind, object: KubernetesObject): Promise<InstallAction> => {
    const action = await ensureExists(client, resource, object);
    objects.push({ kind: resource.kind, name: object.metadata.name, action });
    return action;
  };
  await ensure(flavour.machineConfiguration, clusterConfiguration());
  for (const role of BUILT_IN_ROLES) await ensure(flavour.machineConfig, emptyConfig(flavour, role));
  const created: string[] = [];
  for (const role of BUILT_IN_ROLES) {
    const pool = builtInPool(flavour, role, { selector: roles.selectors[role], paused });
    if ((await ensure(flavour.machineConfigPool, pool)) === 'created') created.push(role);
  }
  return {
    flavour: flavour.name,
    changed: objects.some(({ action }) => action !== 'unchanged'),
    objects,
    notes: created.length === 0 ? [] : notesOn({ created, paused, nodeCount: nodes.length, strangers: roles.notes }),
  };
}

/** Roles, policies and what else is kept as we write it. What was asked for at an earlier installation stays so. */
async function manifestsOf(input: InstallInput): Promise<Manifest[]> {
  const { client, flavour } = input;
  const controlUser = input.controlUser ?? (await installedControlUser(client, flavour)) ?? CONTROL_USER;
  const webhook = input.webhook ?? (await installedWebhook(client, flavour));
  const ignitionUser = input.ignitionUser ?? (await installedIgnitionUser(client, flavour));
  return [
    ...rbacManifests(flavour, controlUser),
    ...admissionManifests(flavour, controlUser),
    ...(webhook === undefined ? [] : [webhookManifest(flavour, webhook, controlUser)]),
    ...(ignitionUser === undefined ? [] : firstBootManifests(flavour, { controlUser, ignitionUser })),
  ];
}

async function ensureExists(
  client: KubernetesClient,
  resource: ResourceKind,
  object: KubernetesObject,
): Promise<InstallAction> {
  try {
    await client.get(resource, { name: object.metadata.name });
    return 'unchanged';
  } catch (error) {
    if (!failedWith(error, 'NotFound')) throw error;
  }
  try {
    await client.create(resource, object);
    return 'created';
  } catch (error) {
    // Two installs at once: the other one was first.
    if (!failedWith(error, 'Conflict')) throw error;
    return 'unchanged';
  }
}

function notesOn(facts: {
  created: readonly string[];
  paused: boolean;
  nodeCount: number;
  strangers: readonly string[];
}): string[] {
  const pausedNote = `the cluster has nodes already (${facts.nodeCount}), so these pools were created paused and no node changes: ${facts.created.join(', ')}; start one with: drydock pool resume POOL`;
  return [...(facts.paused ? [pausedNote] : []), ...facts.strangers];
}
