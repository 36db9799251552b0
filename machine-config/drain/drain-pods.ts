import { matchesSelector } from '../api/label-selector.js';
import type { DrainPolicy } from './drain-policy.js';

/** The part of a Kubernetes Pod that a drain decides with. */
export interface DrainPod {
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly uid?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly finalizers?: readonly string[];
    /** When its grace period is over, not when its deletion was asked for. */
    readonly deletionTimestamp?: string;
    readonly ownerReferences?: readonly {
      readonly kind: string;
      readonly name: string;
      readonly controller?: boolean;
    }[];
  };
  readonly spec?: { readonly volumes?: readonly PodVolume[] };
  readonly status?: { readonly phase?: string };
}

export interface PodVolume {
  readonly name: string;
  readonly persistentVolumeClaim?: { readonly claimName: string };
  /** Its claim is named after the pod and the volume. */
  readonly ephemeral?: object;
}

/** The pods on a node that hold its drain. */
export interface SortedPods {
  /** To be evicted now. */
  readonly evict: readonly DrainPod[];
  /** To be waited for until they end by themselves. */
  readonly awaited: readonly DrainPod[];
  /** Temporal's own: evicted when nothing else is left, since a drain is told to Temporal. */
  readonly last: readonly DrainPod[];
}

const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror';
const TEMPORAL_LABELS = ['app.kubernetes.io/name', 'app.kubernetes.io/part-of'] as const;

/** Name and namespace of the pod in which the node worker itself runs. */
export interface OwnPod {
  readonly name: string;
  readonly namespace: string;
}

/** What sets pods apart besides what they are. */
export interface PodRules {
  readonly policy: Pick<DrainPolicy, 'waitFor'>;
  readonly ownPod?: OwnPod | undefined;
  /** Awaited pods whose time is over are evicted as the others are. */
  readonly evictAwaited?: boolean;
}

/**
 * Whether a drain has to move a pod. Not those of DaemonSets, which are made for this node and come back at once; a node
 * cannot read DaemonSets, so one whose DaemonSet is gone counts as one as long as it names it as its controller. Not
 * mirror pods, which only show what the kubelet runs from files; not finished ones, which run nothing; not the one in
 * which this worker runs. Pods without a controller, and those with an emptyDir, are moved as all others.
 */
export function mustMove(pod: DrainPod, ownPod?: OwnPod): boolean {
  const { name, namespace } = pod.metadata;
  const isOwn = ownPod?.name === name && ownPod.namespace === namespace;
  return !isOwn && controllerOf(pod)?.kind !== 'DaemonSet' && !isMirrorPod(pod) && !isFinished(pod);
}

/** Sorts the pods of a node that a drain has to see go. */
export function sortPods(pods: readonly DrainPod[], { policy, ownPod, evictAwaited = false }: PodRules): SortedPods {
  const moving = pods.filter((pod) => mustMove(pod, ownPod));
  const awaited = evictAwaited ? [] : moving.filter((pod) => isAwaited(pod, policy));
  const rest = moving.filter((pod) => !awaited.includes(pod));
  return { awaited, evict: rest.filter((pod) => !isTemporal(pod)), last: rest.filter(isTemporal) };
}

function isAwaited({ metadata }: DrainPod, { waitFor }: PodRules['policy']): boolean {
  if (waitFor === undefined) return false;
  const { selector, namespaces } = waitFor;
  const isThere = namespaces === undefined || namespaces.includes(metadata.namespace ?? 'default');
  return isThere && matchesSelector(selector, metadata.labels);
}

/** Whether a pod belongs to a Temporal server: it goes last, since it may be what moves the others. */
export function isTemporal({ metadata: { labels = {} } }: Pick<DrainPod, 'metadata'>): boolean {
  return TEMPORAL_LABELS.some((label) => labels[label] === 'temporal');
}

function controllerOf({ metadata }: DrainPod) {
  return metadata.ownerReferences?.find(({ controller }) => controller === true);
}

function isMirrorPod({ metadata }: DrainPod): boolean {
  return metadata.annotations?.[MIRROR_ANNOTATION] !== undefined;
}

function isFinished({ status }: DrainPod): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed';
}

/** `namespace/name`. */
export const podName = ({ metadata }: DrainPod): string => `${metadata.namespace ?? 'default'}/${metadata.name}`;

/** Somebody asked for its deletion already. */
export const isTerminating = ({ metadata }: DrainPod): boolean => metadata.deletionTimestamp !== undefined;

/** Longer than a kubelet needs to tell that a pod has ended. */
const OVERDUE_MS = 60_000;

/** Its grace period has been over for a while, and it is still there. */
export function isOverdue({ metadata }: DrainPod, now: number): boolean {
  return metadata.deletionTimestamp !== undefined && now > Date.parse(metadata.deletionTimestamp) + OVERDUE_MS;
}

/** `namespace/Kind/name` of what controls a pod; undefined: nothing does. */
export function ownerName(pod: DrainPod): string | undefined {
  const controller = controllerOf(pod);
  return controller && `${pod.metadata.namespace ?? 'default'}/${controller.kind}/${controller.name}`;
}

/** Names of the claims, in the pod's namespace, behind its volumes. */
export function claimNames({ metadata, spec }: DrainPod): string[] {
  return (spec?.volumes ?? []).flatMap(({ name, persistentVolumeClaim, ephemeral }) => {
    if (persistentVolumeClaim !== undefined) return [persistentVolumeClaim.claimName];
    return ephemeral === undefined ? [] : [`${metadata.name}-${name}`];
  });
}
