import { isDeepStrictEqual } from 'node:util';
import { DRYDOCK_ANNOTATIONS, type ApiFlavour } from '../../machine-config/api/flavour.js';
import type { MachineConfigNode } from '../../machine-config/api/machine-config-node.js';
import type { NodeFacts } from '../../machine-config/pool/facts.js';
import { isOnItsWay, nodeReport, nodeStatus, type NodeReport } from '../../machine-config/pool/machine-config-node.js';
import type { KubernetesClient, KubernetesObject } from '../kubernetes/client.js';
import { ifThere } from '../kubernetes/failures.js';

export type MachineConfigNodeResource = KubernetesObject & MachineConfigNode;

/** What is remembered of an object, so that it need not be read before it is written. */
export interface KnownNode extends Omit<NodeReport, 'bootBefore'> {
  readonly bootBefore: string | undefined;
  /** uid of the Node that owns it. */
  readonly owner: string | undefined;
  readonly pool: string;
  /** The facts that its status was made from; undefined: not known. */
  readonly madeFrom?: string;
  /** The object itself, while an update is on its way; there may be thousands in which nothing happens. */
  readonly object?: MachineConfigNodeResource;
}

export function knownNode(object: MachineConfigNodeResource): KnownNode {
  const { metadata, spec } = object;
  return {
    spec,
    bootBefore: metadata.annotations?.[DRYDOCK_ANNOTATIONS.bootBefore],
    owner: metadata.ownerReferences?.find(({ kind }) => kind === 'Node')?.uid,
    pool: spec.pool.name,
    object,
  };
}

export interface NodeToWrite {
  readonly node: NodeFacts;
  /** Undefined: it is in none. */
  readonly pool: string | undefined;
  /** Undefined: it has to be read. */
  readonly known: KnownNode | undefined;
}

interface Access {
  readonly client: KubernetesClient;
  readonly flavour: ApiFlavour;
  readonly now: Date;
}

/** Of a Node only what its object tells of: a kubelet that reports every few seconds changes none of this. */
function factsKey(node: NodeFacts, pool: string | undefined): string {
  const { uid, worker, current, desired, state, reason, applying, cordonedFor, bootId } = node;
  const { force, forceGranted, noDrain, heldCordon } = node;
  const isManaged = worker !== undefined;
  const facts = [uid, pool, isManaged, current, desired, state, reason, applying, cordonedFor, bootId];
  return JSON.stringify([...facts, force, forceGranted, noDrain, heldCordon]);
}

/**
 * Brings the MachineConfigNode of a node up to date: its spec, then its status, each only where it differs.
 *
 * @throws Conflict where somebody else wrote it, NotFound where it was deleted meanwhile, and the client's failures.
 */
export async function writeMachineConfigNode(access: Access, wanted: NodeToWrite): Promise<KnownNode> {
  const { client, flavour, now } = access;
  const { node, pool } = wanted;
  const madeFrom = factsKey(node, pool);
  if (wanted.known?.madeFrom === madeFrom) return wanted.known;
  const object = await withSpec(access, wanted);
  const { bootBefore } = knownNode(object);
  const status = nodeStatus({
    node,
    pool,
    bootBefore,
    generation: object.metadata.generation ?? 1,
    previous: object.status,
    now: now.toISOString(),
  });
  const written = isDeepStrictEqual(status, object.status)
    ? object
    : await client.replace(flavour.machineConfigNode, { ...object, status }, 'status');
  const { object: kept, ...known } = knownNode(written);
  return { ...known, madeFrom, ...(kept !== undefined && isOnItsWay({ node, bootBefore }) ? { object: kept } : {}) };
}

/** The object with the spec that the node needs; written where it is not so, which answers with the whole of it. */
async function withSpec({ client, flavour }: Access, wanted: NodeToWrite): Promise<MachineConfigNodeResource> {
  const { node, pool } = wanted;
  const { name, uid } = node;
  const kind = flavour.machineConfigNode;
  const find = () => ifThere(() => client.get<MachineConfigNodeResource>(kind, { name }));
  const found = wanted.known === undefined ? await find() : undefined;
  const known = wanted.known ?? (found && knownNode(found));
  const { spec, bootBefore } = nodeReport({ node, pool, bootBefore: known?.bootBefore });
  const metadata = {
    name,
    annotations: { [DRYDOCK_ANNOTATIONS.bootBefore]: bootBefore },
    ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name, uid }],
  };
  if (known?.owner !== uid) {
    // Of an earlier machine of that name, and collected with its Node: what it tells is of no use for this one.
    if (known !== undefined) await ifThere(() => client.delete(kind, { name }));
    return client.create<MachineConfigNodeResource>(kind, { metadata, spec });
  }
  const isSame = known.bootBefore === bootBefore && isDeepStrictEqual(known.spec, spec);
  if (!isSame) return client.patch<MachineConfigNodeResource>(kind, { name }, { metadata, spec });
  return known.object ?? client.get<MachineConfigNodeResource>(kind, { name });
}
