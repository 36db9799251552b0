import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import {
  customResourceDefinitions,
  MANAGED_BY_DRYDOCK,
  MANAGED_BY_LABEL,
  sharedDefinitions,
  type CustomResourceDefinition,
} from '../../machine-config/api/crd.js';
import type { ApiFlavour } from '../../machine-config/api/flavour.js';
import { IMAGE_DIGEST_MIRROR_SET, IMAGE_TAG_MIRROR_SET } from '../../machine-config/api/image-mirrors.js';
import { KINDS, type KubernetesClient, type KubernetesObject } from '../../activities/kubernetes/client.js';
import { failedWith } from '../../activities/kubernetes/failures.js';
import type { InstallAction, InstalledObject } from './report.js';

/** What is read back: ours, with what the API server and others added. */
interface LiveCrd extends KubernetesObject {
  spec?: CustomResourceDefinition['spec'];
  status?: { conditions?: { type: string; status: string; message?: string }[] };
}

const CRDS = KINDS.customResourceDefinition;
const SERVED_CHECK_INTERVAL_MS = 200;
const MAX_ATTEMPTS = 5;

/** Creates or updates the flavour's CRDs and returns when the API server serves every one of them. */
export async function installCrds(
  client: KubernetesClient,
  flavour: ApiFlavour,
  timeoutMs: number,
): Promise<InstalledObject[]> {
  const wanted = customResourceDefinitions(flavour);
  const report: InstalledObject[] = [];
  for (const crd of wanted) {
    report.push({ kind: crd.kind, name: crd.metadata.name, action: await applyCrd(client, crd) });
  }
  const shared = sharedDefinitions();
  for (const crd of shared) {
    report.push({ kind: crd.kind, name: crd.metadata.name, action: await applyShared(client, crd) });
  }
  const deadline = AbortSignal.timeout(timeoutMs);
  await untilEstablished(client, new Set([...wanted, ...shared].map((crd) => crd.metadata.name)), deadline, timeoutMs);
  const { machineConfig, machineConfigPool, machineConfiguration, machineConfigNode } = flavour;
  const { controllerConfig, kubeletConfig, containerRuntimeConfig } = flavour;
  const core = [machineConfig, machineConfigPool, machineConfiguration, machineConfigNode];
  const sources = [controllerConfig, kubeletConfig, containerRuntimeConfig];
  for (const resource of [...core, ...sources, IMAGE_DIGEST_MIRROR_SET, IMAGE_TAG_MIRROR_SET]) {
    // A list that can hold one object at most: the real ones may be large.
    const list = () => client.list(resource, { fieldSelector: 'metadata.name=drydock' });
    await untilServed(list, `${resource.plural}.${resource.group}`, deadline, timeoutMs);
  }
  return report;
}

async function applyCrd(client: KubernetesClient, wanted: CustomResourceDefinition): Promise<InstallAction> {
  const { name } = wanted.metadata;
  for (let attempt = 1; ; attempt++) {
    try {
      const live = await find(client, name);
      if (live === undefined) {
        await client.create(CRDS, wanted);
        return 'created';
      }
      if (live.metadata.deletionTimestamp !== undefined) {
        throw new Error(
          `CustomResourceDefinition ${name} is being deleted, and all its objects with it: wait until it is gone and run install again`,
        );
      }
      if (isAsWanted(live, wanted)) return 'unchanged';
      await client.replace(CRDS, merged(live, wanted));
      return 'updated';
    } catch (error) {
      // Somebody wrote in between, such as the API server its status: look again.
      if (!failedWith(error, 'Conflict') || attempt === MAX_ATTEMPTS) throw error;
    }
  }
}

/** One that the cluster has from elsewhere, whatever its schema is, is left to whoever brought it. */
async function applyShared(client: KubernetesClient, wanted: CustomResourceDefinition): Promise<InstallAction> {
  const live = await find(client, wanted.metadata.name);
  const isOurs = live?.metadata.labels?.[MANAGED_BY_LABEL] === MANAGED_BY_DRYDOCK;
  return live === undefined || isOurs ? applyCrd(client, wanted) : 'unchanged';
}

async function find(client: KubernetesClient, name: string): Promise<LiveCrd | undefined> {
  try {
    return await client.get<LiveCrd>(CRDS, { name });
  } catch (error) {
    if (failedWith(error, 'NotFound')) return undefined;
    throw error;
  }
}

/** Compares only what we set: the API server adds to the spec, and labels of others are theirs. */
function isAsWanted(live: LiveCrd, wanted: CustomResourceDefinition): boolean {
  const { labels } = wanted.metadata;
  const { group, scope, names, versions } = wanted.spec;
  return (
    Object.entries(labels).every(([key, value]) => live.metadata.labels?.[key] === value) &&
    isDeepStrictEqual([live.spec?.group, live.spec?.scope], [group, scope]) &&
    isDeepStrictEqual(live.spec?.names, names) &&
    isDeepStrictEqual(live.spec?.versions, versions)
  );
}

function merged(live: LiveCrd, wanted: CustomResourceDefinition): LiveCrd {
  return {
    ...live,
    apiVersion: wanted.apiVersion,
    kind: wanted.kind,
    metadata: { ...live.metadata, labels: { ...live.metadata.labels, ...wanted.metadata.labels } },
    spec: { ...live.spec, ...wanted.spec },
  };
}

function condition(crd: LiveCrd, type: string) {
  return crd.status?.conditions?.find((candidate) => candidate.type === type);
}

/** Resolves when every CRD has the condition Established; rejects with a line that names those that have not. */
async function untilEstablished(
  client: KubernetesClient,
  names: ReadonlySet<string>,
  deadline: AbortSignal,
  timeoutMs: number,
): Promise<void> {
  const missing = new Map([...names].map((name) => [name, 'not seen yet']));
  const watching = new AbortController();
  try {
    await new Promise<void>((resolve, reject) => {
      const giveUp = () => {
        const list = [...missing].map(([name, why]) => `${name} (${why})`).join(', ');
        reject(new Error(`after ${timeoutMs / 1000} s the API server has not accepted the CRDs ${list}`));
      };
      if (deadline.aborted) giveUp();
      deadline.addEventListener('abort', giveUp, { signal: watching.signal });
      const onChange = (_type: string, crd: LiveCrd) => {
        const { name } = crd.metadata;
        if (!names.has(name)) return;
        if (condition(crd, 'Established')?.status === 'True') missing.delete(name);
        else missing.set(name, condition(crd, 'NamesAccepted')?.message ?? 'not established');
        if (missing.size === 0) resolve();
      };
      client.watch<LiveCrd>(CRDS, { onChange }, watching.signal);
    });
  } finally {
    watching.abort();
  }
}

/**
 * Established comes a moment before the new kind answers: at first its path is not there (404), then its storage
 * initializes (429, which is ApiUnavailable).
 */
async function untilServed(
  list: () => Promise<unknown>,
  name: string,
  deadline: AbortSignal,
  timeoutMs: number,
): Promise<void> {
  for (;;) {
    try {
      await list();
      return;
    } catch (error) {
      if (!failedWith(error, 'NotFound', 'ApiUnavailable')) throw error;
      if (deadline.aborted) {
        const waited = `after ${timeoutMs / 1000} s the API server does not serve ${name} yet`;
        throw new Error(`${waited}; run install again (${error.message})`, { cause: error });
      }
      await delay(SERVED_CHECK_INTERVAL_MS);
    }
  }
}
