import pMap from 'p-map';
import type { ResourceKind } from '../../machine-config/api/flavour.js';
import type { NodeFacts } from '../../machine-config/pool/facts.js';
import { lackOfOwner, waits, type GateVerdict } from '../../machine-config/pool/gate-verdicts.js';
import { nameSome } from '../../machine-config/pool/sentences.js';
import { KINDS, type KubernetesClient } from '../kubernetes/client.js';
import { ifThere } from '../kubernetes/failures.js';

/** Owners whose replicas can be counted. Of pods that something else owns, nobody here knows where they run again. */
const OWNERS: Readonly<Record<string, ResourceKind>> = Object.fromEntries(
  [KINDS.deployment, KINDS.replicaSet, KINDS.statefulSet, KINDS.replicationController, KINDS.job].map((kind) => [
    kind.kind,
    kind,
  ]),
);

const QUESTIONS_AT_ONCE = 8;
/** Enough to know that something is wrong, and what. */
const ENOUGH_LACKS = 3;

/**
 * Whether what owns the pods that were evicted from these nodes has all its replicas again. An owner that is gone needs
 * none.
 *
 * @throws the client's failures.
 */
export async function podsRescheduled(client: KubernetesClient, nodes: readonly NodeFacts[]): Promise<GateVerdict> {
  const owners = [...new Set(nodes.flatMap(({ evictedOwners = [] }) => evictedOwners))].sort();
  const lacks: string[] = [];
  await pMap(
    owners,
    async (owner) => {
      const [namespace = '', kindName = '', name = ''] = owner.split('/');
      const kind = OWNERS[kindName];
      if (kind === undefined || lacks.length >= ENOUGH_LACKS) return;
      const object = await ifThere(() => client.get(kind, { namespace, name }));
      const lack = object && lackOfOwner(kindName, object);
      if (lack !== undefined) lacks.push(lack);
    },
    { concurrency: QUESTIONS_AT_ONCE },
  );
  if (lacks.length > 0) return waits(`pods evicted from updated nodes do not all run again: ${nameSome(lacks, 3)}`);
  return { passed: true, why: `what owns the evicted pods has all its replicas (${owners.length} owners)` };
}
