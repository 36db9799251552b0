import type { ResourceKind } from '../../machine-config/api/flavour.js';

/** The part of every Kubernetes object that we rely on. */
export interface KubernetesObject {
  apiVersion?: string;
  kind?: string;
  metadata: {
    name: string;
    namespace?: string;
    uid?: string;
    resourceVersion?: string;
    generation?: number;
    creationTimestamp?: string;
    deletionTimestamp?: string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
    ownerReferences?: {
      apiVersion: string;
      kind: string;
      name: string;
      uid: string;
      controller?: boolean;
      blockOwnerDeletion?: boolean;
    }[];
  };
}

export interface ObjectName {
  readonly name: string;
  readonly namespace?: string;
}

export interface ListOptions {
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
}

export interface ApplyOptions {
  /** Shown in managedFields; what this manager said before and says no longer goes. */
  readonly fieldManager: string;
  /** Takes fields over that others set; otherwise that is a Conflict. */
  readonly force?: boolean;
  /** The API server checks everything and stores nothing. */
  readonly dryRun?: boolean;
}

/** Why an eviction was not made. */
export type EvictionResult =
  | { readonly outcome: 'evicted' }
  | { readonly outcome: 'gone' }
  /** 429 or the 500 of two budgets on one pod; `why` names the budget, for example `PDB shop/cart allows 0 disruptions`. */
  | {
      readonly outcome: 'refused';
      readonly why: string;
      /** `namespace/name` of the budget, where one alone refuses. */
      readonly budget?: string;
      readonly retryAfterSeconds?: number;
    };

/**
 * The narrow client: only the calls we make. Every method rejects with an ApplicationFailure whose type is a FailureCode
 * (NotFound, Conflict, Forbidden, Invalid, ApiUnavailable) and whose cause is the original error; a call that is not
 * answered within 15 seconds is ApiUnavailable.
 */
export interface KubernetesClient {
  get<T extends KubernetesObject>(resource: ResourceKind, object: ObjectName): Promise<T>;
  /** All pages. */
  list<T extends KubernetesObject>(resource: ResourceKind, options?: ListOptions): Promise<T[]>;
  create<T extends KubernetesObject>(resource: ResourceKind, object: T): Promise<T>;
  /** PUT; the object's resourceVersion, if present, is the precondition. */
  replace<T extends KubernetesObject>(resource: ResourceKind, object: T, subresource?: 'status'): Promise<T>;
  /** JSON merge patch; put `metadata.resourceVersion` into it to make it a compare-and-swap. */
  patch<T extends KubernetesObject>(
    resource: ResourceKind,
    object: ObjectName,
    mergePatch: object,
    subresource?: 'status',
  ): Promise<T>;
  /** Server-side apply: creates the object, or makes those fields what `object` says. */
  apply<T extends KubernetesObject>(resource: ResourceKind, object: T, options: ApplyOptions): Promise<T>;
  /** With its own grace period. `uid`: only the object of that uid; another one of its name is a Conflict. */
  delete(resource: ResourceKind, object: ObjectName & { readonly uid?: string | undefined }): Promise<void>;
  /** The kind of that name as the API server serves it, asked of its discovery; undefined: it knows none. */
  discover(apiVersion: string, kind: string): Promise<ResourceKind | undefined>;
  /** What the API server's own check of its etcd says when it fails; undefined: it is well, or may not be asked. */
  etcdProblem(): Promise<string | undefined>;
  /** pods/eviction; refusals by budgets are values. */
  evict(pod: { name: string; namespace: string; uid?: string }): Promise<EvictionResult>;
  /**
   * Lists, then watches until the signal aborts; lists again after every error or end, with a delay. `onChange` gets
   * every object at first and then each change; `onSynced` is called after the first full list.
   */
  watch<T extends KubernetesObject>(
    resource: ResourceKind,
    handler: WatchHandler<T>,
    signal: AbortSignal,
    scope?: WatchScope,
  ): void;
}

/** What of a kind is watched; all of it where nothing is said. Somebody who may read one object only can watch that. */
export type WatchScope = Pick<ListOptions, 'namespace' | 'fieldSelector'>;

export interface WatchHandler<T extends KubernetesObject> {
  onChange(type: 'ADDED' | 'MODIFIED' | 'DELETED', object: T): void;
  onSynced?(): void;
  /** Everything up to this resourceVersion has been told: after each full list, each change and each bookmark. */
  onVersion?(resourceVersion: string): void;
  onError?(error: unknown): void;
}

const core = (plural: string, kind: string, namespaced: boolean): ResourceKind => ({
  group: '',
  version: 'v1',
  plural,
  kind,
  namespaced,
});
const rbac = (plural: string, kind: string): ResourceKind => ({
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  plural,
  kind,
  namespaced: false,
});

const admission = (plural: string, kind: string): ResourceKind => ({
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  plural,
  kind,
  namespaced: false,
});

/** Kinds that are not of the MachineConfig API. */
export const KINDS = {
  node: core('nodes', 'Node', false),
  pod: core('pods', 'Pod', true),
  namespace: core('namespaces', 'Namespace', false),
  event: core('events', 'Event', true),
  secret: core('secrets', 'Secret', true),
  configMap: core('configmaps', 'ConfigMap', true),
  serviceAccount: core('serviceaccounts', 'ServiceAccount', true),
  role: { ...rbac('roles', 'Role'), namespaced: true },
  roleBinding: { ...rbac('rolebindings', 'RoleBinding'), namespaced: true },
  validatingAdmissionPolicy: admission('validatingadmissionpolicies', 'ValidatingAdmissionPolicy'),
  validatingWebhookConfiguration: admission('validatingwebhookconfigurations', 'ValidatingWebhookConfiguration'),
  validatingAdmissionPolicyBinding: admission('validatingadmissionpolicybindings', 'ValidatingAdmissionPolicyBinding'),
  clusterRole: rbac('clusterroles', 'ClusterRole'),
  clusterRoleBinding: rbac('clusterrolebindings', 'ClusterRoleBinding'),
  customResourceDefinition: {
    group: 'apiextensions.k8s.io',
    version: 'v1',
    plural: 'customresourcedefinitions',
    kind: 'CustomResourceDefinition',
    namespaced: false,
  },
  selfSubjectReview: {
    group: 'authentication.k8s.io',
    version: 'v1',
    plural: 'selfsubjectreviews',
    kind: 'SelfSubjectReview',
    namespaced: false,
  },
  persistentVolumeClaim: core('persistentvolumeclaims', 'PersistentVolumeClaim', true),
  persistentVolume: core('persistentvolumes', 'PersistentVolume', false),
  deployment: { group: 'apps', version: 'v1', plural: 'deployments', kind: 'Deployment', namespaced: true },
  replicaSet: { group: 'apps', version: 'v1', plural: 'replicasets', kind: 'ReplicaSet', namespaced: true },
  statefulSet: { group: 'apps', version: 'v1', plural: 'statefulsets', kind: 'StatefulSet', namespaced: true },
  replicationController: core('replicationcontrollers', 'ReplicationController', true),
  job: { group: 'batch', version: 'v1', plural: 'jobs', kind: 'Job', namespaced: true },
  podDisruptionBudget: {
    group: 'policy',
    version: 'v1',
    plural: 'poddisruptionbudgets',
    kind: 'PodDisruptionBudget',
    namespaced: true,
  },
} as const satisfies Record<string, ResourceKind>;
