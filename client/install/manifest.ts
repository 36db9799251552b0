import { MANAGED_BY_DRYDOCK, MANAGED_BY_LABEL } from '../../machine-config/api/crd.js';
import type { KubernetesClient, KubernetesObject } from '../../activities/kubernetes/client.js';
import { failedWith } from '../../activities/kubernetes/failures.js';
import type { ResourceKind } from '../../machine-config/api/flavour.js';
import { isRecord } from '../../machine-config/ignition/findings.js';
import type { InstallAction } from './report.js';

export const DRYDOCK_LABELS = { [MANAGED_BY_LABEL]: MANAGED_BY_DRYDOCK };

/** An object that Drydock brings to a cluster and keeps as it is written here. */
export interface Manifest {
  readonly resource: ResourceKind;
  readonly object: KubernetesObject & Readonly<Record<string, unknown>>;
}

const MAX_ATTEMPTS = 5;

/** Creates the object, or makes it what is wanted; what the API server and others added to it stays. */
export async function applyManifest(client: KubernetesClient, { resource, object }: Manifest): Promise<InstallAction> {
  const { name, namespace } = object.metadata;
  const place = namespace === undefined ? { name } : { name, namespace };
  for (let attempt = 1; ; attempt++) {
    try {
      const live = await found(client, resource, place);
      if (live === undefined) {
        await client.create(resource, object);
        return 'created';
      }
      if (holds(live, object)) return 'unchanged';
      const labels = { ...live.metadata.labels, ...object.metadata.labels };
      const annotations = { ...live.metadata.annotations, ...object.metadata.annotations };
      await client.replace(resource, { ...live, ...object, metadata: { ...live.metadata, labels, annotations } });
      return 'updated';
    } catch (error) {
      // Somebody wrote in between: look again.
      if (!failedWith(error, 'Conflict') || attempt === MAX_ATTEMPTS) throw error;
    }
  }
}

async function found(
  client: KubernetesClient,
  resource: ResourceKind,
  place: { name: string; namespace?: string },
): Promise<KubernetesObject | undefined> {
  try {
    return await client.get(resource, place);
  } catch (error) {
    if (failedWith(error, 'NotFound')) return undefined;
    throw error;
  }
}

/** Whether all of `wanted` stands in `live`; lists are compared whole. */
function holds(live: unknown, wanted: unknown): boolean {
  if (Array.isArray(wanted)) {
    return Array.isArray(live) && live.length === wanted.length && wanted.every((each, at) => holds(live[at], each));
  }
  if (!isRecord(wanted)) return live === wanted;
  return isRecord(live) && Object.entries(wanted).every(([key, value]) => holds(live[key], value));
}
