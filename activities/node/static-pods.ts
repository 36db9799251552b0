import { isControlPlaneNode } from '../../machine-config/pool/control-plane.js';
import { nameSome } from '../../machine-config/pool/sentences.js';
import type { KubernetesObject } from '../kubernetes/client.js';
import { KINDS } from '../kubernetes/client.js';
import type { NodeDependencies } from './dependencies.js';
import { notYet } from './failures.js';
import type { OwnNode } from './own-node.js';

const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror';
/** The start of a boot is known to the second, and the clock may be set while it boots. */
const CLOCK_TOLERANCE_MILLISECONDS = 10_000;

type StaticPod = KubernetesObject & {
  status?: {
    conditions?: { type: string; status: string; lastTransitionTime?: string }[];
    containerStatuses?: { name: string; state?: { running?: { startedAt?: string } } }[];
  };
};

/**
 * Throws NodeNotReady, which is benign, until the static pods of a node of the control plane run again after its boot:
 * the API server and etcd are among them, and the next node goes only when they are back. What the API server shows of
 * them may still be from before the reboot, so that being Ready alone says nothing: a container must have been started
 * since, or the pod become Ready since.
 */
export async function checkStaticPods({ facts }: OwnNode, deps: NodeDependencies): Promise<void> {
  if (!isControlPlaneNode(facts)) return;
  const { client, node, host } = deps;
  const pods = await client.list<StaticPod>(KINDS.pod, { fieldSelector: `spec.nodeName=${node}` });
  const bootedAt = (await host.bootedAt?.()) ?? Number.NEGATIVE_INFINITY;
  const waiting = pods
    .filter(({ metadata }) => metadata.annotations?.[MIRROR_ANNOTATION] !== undefined)
    .filter((pod) => !runsSince(pod, bootedAt - CLOCK_TOLERANCE_MILLISECONDS))
    .map(({ metadata }) => metadata.name)
    .sort();
  if (waiting.length === 0) return;
  throw notYet('NodeNotReady', `${node} waits until its static pods run again after the boot: ${nameSome(waiting)}`);
}

function runsSince({ status }: StaticPod, time: number): boolean {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  if (ready?.status !== 'True') return false;
  const isSince = (text: string | undefined) => Date.parse(text ?? '') >= time;
  if (time === Number.NEGATIVE_INFINITY || isSince(ready.lastTransitionTime)) return true;
  const started = status?.containerStatuses ?? [];
  return started.length > 0 && started.every(({ state }) => isSince(state?.running?.startedAt));
}
