import { setTimeout as sleep } from 'node:timers/promises';
import type {
  ApplyOptions,
  EvictionResult,
  KubernetesClient,
  KubernetesObject,
  ListOptions,
  ObjectName,
  WatchHandler,
  WatchScope,
} from '../../activities/kubernetes/client.js';
import { KINDS } from '../../activities/kubernetes/client.js';
import { evictionResult, type EvictedPod } from '../../activities/kubernetes/eviction.js';
import { apiVersionOf, type ResourceKind } from '../../machine-config/api/flavour.js';
import type { FailureCode } from '../../workflows/contract/failure-codes.js';
import { AppliedObjects } from './applied-objects.js';
import { ClusterState, refuse } from './cluster-state.js';
import { authorize, nodeAdmission, type FakeCall, type Verb } from './fake-authorization.js';
import { answerEviction } from './fake-evictions.js';
import { isSelected } from './object-rules.js';

export const POD_DISRUPTION_BUDGET = KINDS.podDisruptionBudget;

export type { FakeCall } from './fake-authorization.js';

/** An object that the server has: what it fills in is there. */
export type Stored<T extends KubernetesObject> = T & {
  metadata: { uid: string; resourceVersion: string; creationTimestamp: string };
};

export interface FakeClusterOptions {
  /** Default: the real time. */
  readonly now?: () => Date;
  /** uid of the namespace kube-system, which names the cluster. */
  readonly clusterUid?: string;
}

/** Which calls a fault hits; what is left out matches all. `update` is a replace. */
export interface CallMatch {
  readonly verb?: Verb;
  readonly kind?: string;
  readonly name?: string;
  readonly subresource?: 'status' | 'eviction';
  readonly identity?: string;
}

export interface Fault {
  /** Default ApiUnavailable. */
  readonly code?: 'Conflict' | 'NotFound' | 'Forbidden' | 'Invalid' | 'ApiUnavailable';
  /** The call takes effect and its answer is lost. */
  readonly afterEffect?: boolean;
  /** Default 1. */
  readonly times?: number;
}

const STATUS_OF = { Conflict: 409, NotFound: 404, Forbidden: 403, Invalid: 422, ApiUnavailable: 503 } as const;

interface Faults {
  latencyMs: number;
  etcdProblem: string | undefined;
  readonly planned: { match: CallMatch; code: FailureCode & keyof typeof STATUS_OF; after: boolean; left: number }[];
  readonly interceptors: Set<(call: FakeCall) => void | Promise<void>>;
}

/** A client of the fake API server with the rights of one identity. */
class FakeClient implements KubernetesClient {
  protected readonly state: ClusterState;
  protected readonly faults: Faults;
  private readonly identity: string;
  private readonly applied = new AppliedObjects();

  constructor(state: ClusterState, faults: Faults, identity: string) {
    this.state = state;
    this.faults = faults;
    this.identity = identity;
  }

  get<T extends KubernetesObject>(resource: ResourceKind, object: ObjectName): Promise<T> {
    const call = this.call('get', resource, object);
    return this.perform(call, () => this.state.read(resource, address(resource, object), failed(call)));
  }

  list<T extends KubernetesObject>(resource: ResourceKind, options: ListOptions = {}): Promise<T[]> {
    const { namespace, fieldSelector } = options;
    const call: FakeCall = { identity: this.identity, verb: 'list', resource, namespace, fieldSelector };
    return this.perform(call, () => this.state.all(resource).filter((object) => isSelected(object, options)));
  }

  create<T extends KubernetesObject>(resource: ResourceKind, object: T): Promise<T> {
    const call = this.call('create', resource, object.metadata);
    if (resource.kind === KINDS.selfSubjectReview.kind) {
      // Answered from the request, and stored nowhere.
      return this.perform(call, () => ({ ...object, status: { userInfo: { username: this.identity } } }));
    }
    return this.perform(call, () => this.state.create(resource, object, failed(call)));
  }

  replace<T extends KubernetesObject>(resource: ResourceKind, object: T, subresource?: 'status'): Promise<T> {
    const call = this.call('update', resource, object.metadata, subresource);
    const input = { resource, target: address(resource, object.metadata), subresource, admit: nodeAdmission(call) };
    return this.perform(call, () => this.state.replace(input, object, failed(call)));
  }

  patch<T extends KubernetesObject>(
    resource: ResourceKind,
    object: ObjectName,
    mergePatch: object,
    subresource?: 'status',
  ): Promise<T> {
    const call = this.call('patch', resource, object, subresource);
    const input = { resource, target: address(resource, object), subresource, admit: nodeAdmission(call) };
    return this.perform(call, () => this.state.patch(input, mergePatch, failed(call)));
  }

  /** Conflicts between managers are not known here: every apply is as if forced. */
  apply<T extends KubernetesObject>(resource: ResourceKind, object: T, options: ApplyOptions): Promise<T> {
    const call = this.call('patch', resource, object.metadata);
    return this.perform(call, () => {
      const target = address(resource, object.metadata);
      const before = this.state.find(resource, target);
      const said = this.applied.said(resource, target, { manager: options.fieldManager, object });
      if (options.dryRun) return { ...before, ...object };
      this.applied.remember(resource, target, { manager: options.fieldManager, object });
      if (before === undefined) return this.state.create(resource, object, failed(call));
      return this.state.patch({ resource, target, admit: nodeAdmission(call) }, said, failed(call));
    });
  }

  async delete(resource: ResourceKind, object: ObjectName & { readonly uid?: string | undefined }): Promise<void> {
    const call = this.call('delete', resource, object);
    await this.perform(call, () => {
      this.state.checkUid(resource, object, failed(call));
      this.state.remove(resource, address(resource, object), failed(call));
      return null;
    });
  }

  evict(pod: EvictedPod): Promise<EvictionResult> {
    const call = this.call('create', KINDS.pod, pod, 'eviction');
    return this.perform(call, () => {
      const stored = this.state.find(KINDS.pod, pod);
      const budgets = this.state.all(POD_DISRUPTION_BUDGET);
      const result = evictionResult(pod, answerEviction(pod, stored, this.state.all(KINDS.pod), budgets));
      if (result.outcome === 'evicted') this.state.remove(KINDS.pod, pod, failed(call));
      return result;
    });
  }

  discover(apiVersion: string, kind: string): Promise<ResourceKind | undefined> {
    const known = Object.values<ResourceKind>(KINDS);
    return Promise.resolve(known.find((each) => apiVersionOf(each) === apiVersion && each.kind === kind));
  }

  etcdProblem(): Promise<string | undefined> {
    return Promise.resolve(this.faults.etcdProblem);
  }

  /** Events come asynchronously and in order, as from the real one. */
  watch<T extends KubernetesObject>(
    resource: ResourceKind,
    handler: WatchHandler<T>,
    signal: AbortSignal,
    scope: WatchScope = {},
  ): void {
    const call: FakeCall = { identity: this.identity, verb: 'watch', resource, ...scope };
    const start = (): void => {
      authorize(call, this.state);
      const deliver = (action: () => void): void => queueMicrotask(() => signal.aborted || action());
      for (const object of this.state.all(resource).filter((each) => isSelected(each, scope)))
        deliver(() => handler.onChange('ADDED', copy<T>(object)));
      deliver(() => handler.onSynced?.());
      const listed = this.state.newestVersion;
      deliver(() => handler.onVersion?.(listed));
      const stop = this.state.subscribe(resource, (type, object) => {
        if (!isSelected(object, scope)) return;
        const seen = copy<T>(object);
        deliver(() => handler.onChange(type, seen));
        deliver(() => handler.onVersion?.(seen.metadata.resourceVersion));
      });
      signal.addEventListener('abort', stop, { once: true });
    };
    queueMicrotask(() => {
      if (signal.aborted) return;
      try {
        start();
      } catch (error) {
        handler.onError?.(error);
      }
    });
  }

  private call(
    verb: Verb,
    resource: ResourceKind,
    { name, namespace }: ObjectName,
    subresource?: 'status' | 'eviction',
  ): FakeCall {
    return { identity: this.identity, verb, resource, name, namespace, subresource };
  }

  private async perform<T>(call: FakeCall, effect: () => unknown): Promise<T> {
    if (this.faults.latencyMs > 0) await sleep(this.faults.latencyMs);
    else await Promise.resolve();
    for (const interceptor of this.faults.interceptors) await interceptor(call);
    const fault = this.faults.planned.find(({ match, left }) => left > 0 && isHit(match, call));
    if (fault !== undefined) fault.left -= 1;
    const lost = (): Error =>
      refuse(failed(call), STATUS_OF[fault?.code ?? 'ApiUnavailable'], 'Fault', 'injected fault');
    if (fault?.after === false) throw lost();
    authorize(call, this.state);
    const result = structuredClone(effect()) as T;
    if (fault?.after) throw lost();
    return result;
  }
}

/**
 * The one behavioural fake of the API server: versions and conflicts, merge patches, the status subresource, selectors,
 * evictions with PodDisruptionBudgets, watches, and the limits of node identities. It has no controllers: nothing
 * recreates a pod or fills in a status by itself. Itself it is a client that may do everything.
 */
export class FakeCluster extends FakeClient {
  constructor({ now = () => new Date(), clusterUid = 'cluster-1' }: FakeClusterOptions = {}) {
    super(
      new ClusterState(now),
      { latencyMs: 0, etcdProblem: undefined, planned: [], interceptors: new Set() },
      'admin',
    );
    this.add(KINDS.namespace, { metadata: { name: 'kube-system', uid: clusterUid } });
  }

  /** The same cluster with the rights of `identity`; `system:node:NAME` is limited as the real API server limits it. */
  as(identity: string): KubernetesClient {
    return new FakeClient(this.state, this.faults, identity);
  }

  /** Puts an object there as it is: status, uid and creationTimestamp included. */
  add<T extends KubernetesObject>(resource: ResourceKind, object: T): Stored<T> {
    return copy<T>(this.state.insert(resource, object));
  }

  /** Without a call: the object as it is now. */
  peek<T extends KubernetesObject>(resource: ResourceKind, object: ObjectName | string): Stored<T> | undefined {
    const found = this.state.find(resource, typeof object === 'string' ? { name: object } : object);
    return found === undefined ? undefined : copy<T>(found);
  }

  /** Called at each change at once, before the writer gets its answer: for invariants that must hold at any instant. */
  observe<T extends KubernetesObject>(
    resource: ResourceKind,
    observer: (type: 'ADDED' | 'MODIFIED' | 'DELETED', object: Stored<T>) => void,
  ): () => void {
    return this.state.subscribe(resource, (type, object) => observer(type, copy<T>(object)));
  }

  /** Runs before every call; throws to fail it, waits to delay it, writes to race with it. */
  intercept(interceptor: (call: FakeCall) => void | Promise<void>): () => void {
    this.faults.interceptors.add(interceptor);
    return () => this.faults.interceptors.delete(interceptor);
  }

  /** The next matching calls fail. */
  failNext(match: CallMatch, { code = 'ApiUnavailable', afterEffect = false, times = 1 }: Fault = {}): void {
    this.faults.planned.push({ match, code, after: afterEffect, left: times });
  }

  /** What the API server says of its etcd; undefined: it is well. */
  set etcdIs(problem: string | undefined) {
    this.faults.etcdProblem = problem;
  }

  /** Every call takes this long. */
  set latencyMs(milliseconds: number) {
    this.faults.latencyMs = milliseconds;
  }
}

function address(resource: ResourceKind, { name, namespace }: ObjectName): ObjectName {
  return resource.namespaced && namespace !== undefined ? { name, namespace } : { name };
}

const failed = ({ verb, resource, name, namespace, subresource }: FakeCall) => ({
  verb: subresource === 'eviction' ? 'evict' : verb === 'update' ? 'replace' : verb,
  kind: resource.kind,
  name,
  namespace,
});

function isHit(match: CallMatch, call: FakeCall): boolean {
  const { kind, ...rest } = match;
  if (kind !== undefined && kind !== call.resource.kind) return false;
  return Object.entries(rest).every(([key, value]) => call[key as keyof FakeCall] === value);
}

const copy = <T extends KubernetesObject>(object: object): Stored<T> => structuredClone(object) as Stored<T>;
