import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { KINDS, type KubernetesClient, type KubernetesObject } from '../../activities/kubernetes/client.js';
import { alreadyExists, ifThere } from '../../activities/kubernetes/failures.js';
import { DRYDOCK_ANNOTATIONS, type ApiFlavour } from '../../machine-config/api/flavour.js';
import { NAMESPACE } from '../demo/workloads.js';
import { KUBELET_LABEL, KUBELET_RUNNING, TERMINATION_ANNOTATION } from '../kubernetes/kubelets.js';
import { waitUntil } from '../processes/wait-until.js';
import { HAND_ANNOTATION, labelsOfPool, selectorsOfPool } from './cast.js';
import type { Revision } from './fault.js';

export interface HandOptions {
  /** Straight to the API server. */
  readonly client: KubernetesClient;
  readonly flavour: ApiFlavour;
  /** The folder that is the root of a simulated node. */
  readonly rootOf: (node: string) => string;
}

interface NodePatch {
  readonly metadata?: {
    readonly resourceVersion?: string | undefined;
    readonly labels?: object;
    readonly annotations?: object;
  };
  readonly spec?: object;
}
interface Trying {
  readonly what: string;
  readonly since: number;
  refusal: string;
}
type StoredNode = KubernetesObject & { spec?: object; status?: { nodeInfo?: object } };

/** The API server may be killed or frozen at that moment, and comes back. */
const PATIENCE_MS = 180_000;
const RETRY_MS = 500;
const BOOT_ID_FILE = 'proc/sys/kernel/random/boot_id';

export const configName = (pool: string): string => `50-${pool}-chaos`;
/** Without the first slash. A file of its own for each pool: the custom ones have that of the workers as well. */
export const revisionFile = (pool: string): string => `etc/drydock-chaos-${pool}`;
export const revisionContents = ({ file }: Revision): string => `revision ${file}\n`;

/**
 * What people do to a cluster with kubectl. Whatever it does to a Node carries HAND_ANNOTATION in the same write. The
 * API server may be away: every act is tried again until it is done.
 */
export class Hand {
  readonly #options: HandOptions;
  /** What was begun last with each object: acts on one object keep their order, however often they are tried. */
  readonly #last = new Map<string, Promise<void>>();
  /** What is being tried. */
  readonly #trying = new Set<Trying>();
  #acts = 0;

  constructor(options: HandOptions) {
    this.#options = options;
  }

  /** What is not done yet, for how long, and why. */
  get unfinished(): string[] {
    return [...this.#trying].map(({ what, since, refusal }) => {
      const why = refusal === '' ? '' : `: ${refusal}`;
      return `${what}, for ${Math.round((Date.now() - since) / 1000)} s${why}`;
    });
  }

  async createPool(pool: string, maxUnavailable: number): Promise<void> {
    const { client, flavour } = this.#options;
    const spec = { ...selectorsOfPool(pool, flavour.roleLabel), maxUnavailable };
    await client.create(flavour.machineConfigPool, { metadata: { name: pool }, spec } as KubernetesObject);
  }

  setPool(pool: string, spec: { maxUnavailable?: number | string; paused?: boolean }): Promise<void> {
    const { client, flavour } = this.#options;
    return this.#insist(`change pool ${pool}`, pool, () =>
      client.patch(flavour.machineConfigPool, { name: pool }, { spec }),
    );
  }

  /** Makes the MachineConfig of the pool say this. */
  setConfig(pool: string, revision: Revision): Promise<void> {
    const { client, flavour } = this.#options;
    const metadata = { name: configName(pool), labels: { [flavour.roleLabel]: pool } };
    const spec = revisionSpec(pool, revision, flavour.sshUser);
    return this.#insist(`change ${metadata.name}`, metadata.name, async () => {
      try {
        await client.create(flavour.machineConfig, { metadata, spec } as KubernetesObject);
      } catch (error) {
        if (!alreadyExists(error)) throw error;
        await client.patch(flavour.machineConfig, { name: metadata.name }, { spec });
      }
    });
  }

  relabel(node: string, pool: string): Promise<void> {
    return this.#patchNode(node, { metadata: { labels: labelsOfPool(pool) } });
  }

  cordon(node: string): Promise<void> {
    return this.#patchNode(node, { spec: { unschedulable: true } });
  }

  uncordon(node: string): Promise<void> {
    return this.#patchNode(node, { spec: { unschedulable: null } });
  }

  hold(node: string): Promise<void> {
    const annotations = { [DRYDOCK_ANNOTATIONS.hold]: 'held by the chaos test' };
    return this.#patchNode(node, { metadata: { annotations } });
  }

  /** Lifts a hold, and the cordon that was left to whoever held the node. */
  release(node: string): Promise<void> {
    const { client } = this.#options;
    return this.#insist(`release ${node}`, node, async () => {
      const found = await ifThere(() => client.get(KINDS.node, { name: node }));
      const keptCordon = found?.metadata.annotations?.[DRYDOCK_ANNOTATIONS.heldCordon] !== undefined;
      const annotations = { [DRYDOCK_ANNOTATIONS.hold]: null, [DRYDOCK_ANNOTATIONS.heldCordon]: null };
      const resourceVersion = found?.metadata.resourceVersion;
      await this.#write(node, {
        metadata: { annotations, resourceVersion },
        ...(keptCordon ? { spec: { unschedulable: null } } : {}),
      });
    });
  }

  /** Deletes the Node. @returns what creates it again, as its kubelet would: the machine has lived on meanwhile. */
  async deleteNode(node: string): Promise<() => Promise<void>> {
    const { client } = this.#options;
    let old: StoredNode | undefined;
    await this.#insist(`delete Node ${node}`, node, async () => {
      old ??= await client.get<StoredNode>(KINDS.node, { name: node });
      await ifThere(() => client.delete(KINDS.node, { name: node }));
    });
    return () => this.#createAgain(node, old);
  }

  /** Pods that nobody owns: evicted once, they are gone. */
  async createPods(app: string, count: number): Promise<void> {
    const { client } = this.#options;
    for (let made = 0; made < count; made += 1) {
      this.#acts += 1;
      const name = `${app}-chaos-${this.#acts}`;
      const pod = {
        metadata: { name, namespace: NAMESPACE, labels: { app }, annotations: { [TERMINATION_ANNOTATION]: '2s' } },
        spec: { containers: [{ name: 'main', image: 'registry.example/shop:1' }], terminationGracePeriodSeconds: 5 },
      };
      await this.#insist(`create pod ${name}`, name, () => orThere(client.create(KINDS.pod, pod)));
    }
  }

  async #createAgain(name: string, old: StoredNode | undefined): Promise<void> {
    const { client, rootOf } = this.#options;
    const { [KUBELET_LABEL]: running, ...labels } = old?.metadata.labels ?? {};
    this.#acts += 1;
    const annotations = { [HAND_ANNOTATION]: String(this.#acts) };
    await this.#insist(`create Node ${name} again`, name, async () => {
      await orThere(client.create(KINDS.node, { metadata: { name, labels, annotations } }));
      const bootID = (await readFile(join(rootOf(name), BOOT_ID_FILE), 'utf8')).trim();
      const status = { ...old?.status, conditions: [], nodeInfo: { ...old?.status?.nodeInfo, bootID } };
      await client.patch(KINDS.node, { name }, { status }, 'status');
      // A machine that was down when its Node went says itself when it is up.
      const patch = { metadata: { labels: { [KUBELET_LABEL]: KUBELET_RUNNING } } };
      if (running === KUBELET_RUNNING) await client.patch(KINDS.node, { name }, patch);
    });
  }

  /** Tries until it is done, after whatever was begun with the object before. */
  #insist(what: string, object: string, act: () => Promise<unknown>): Promise<void> {
    const before = this.#last.get(object) ?? Promise.resolve();
    const ended = before.catch(() => undefined).then(() => this.#try(what, act));
    this.#last.set(object, ended);
    return ended;
  }

  async #try(what: string, act: () => Promise<unknown>): Promise<void> {
    const trying: Trying = { what, since: Date.now(), refusal: '' };
    const done = async () => {
      try {
        await act();
        return true;
      } catch (error) {
        trying.refusal = error instanceof Error ? error.message : String(error);
        throw error;
      }
    };
    this.#trying.add(trying);
    try {
      await waitUntil(done, { what: `the API server to ${what}`, timeoutMs: PATIENCE_MS, intervalMs: RETRY_MS });
    } finally {
      this.#trying.delete(trying);
    }
  }

  #patchNode(node: string, patch: NodePatch): Promise<void> {
    return this.#insist(`change Node ${node}`, node, () => this.#write(node, patch));
  }

  async #write(node: string, patch: NodePatch): Promise<void> {
    this.#acts += 1;
    const annotations = { ...patch.metadata?.annotations, [HAND_ANNOTATION]: String(this.#acts) };
    const metadata = { ...patch.metadata, annotations };
    // Somebody else may have deleted it just now.
    await ifThere(() => this.#options.client.patch(KINDS.node, { name: node }, { ...patch, metadata }));
  }
}

function revisionSpec(pool: string, revision: Revision, sshUser: string): object {
  const file = {
    path: `/${revisionFile(pool)}`,
    mode: 0o644,
    overwrite: true,
    contents: { source: `data:,${encodeURIComponent(revisionContents(revision))}` },
  };
  const key = `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA${String(revision.key).padEnd(41, 'A')} ${pool}`;
  return {
    config: {
      ignition: { version: '3.4.0' },
      storage: { files: [file] },
      passwd: { users: [{ name: sshUser, sshAuthorizedKeys: [key] }] },
    },
  };
}

/** An object that is there already is what an earlier attempt made, whose answer was lost. */
async function orThere(creation: Promise<unknown>): Promise<void> {
  await creation.catch((error: unknown) => {
    if (!alreadyExists(error)) throw error;
  });
}
