import { apiVersionOf, type ResourceKind } from '../../machine-config/api/flavour.js';
import { KINDS } from './client.js';
import type {
  ApplyOptions,
  EvictionResult,
  KubernetesClient,
  KubernetesObject,
  ListOptions,
  ObjectName,
  WatchHandler,
  WatchScope,
} from './client.js';
import { evictionBody, evictionResult, type EvictedPod } from './eviction.js';
import { refusedCall, type FailedCall } from './failures.js';
import type { ClusterSource } from './kubeconfig.js';
import { ListWatch, parseJsonLines, type ListResult, type WatchEvent } from './list-watch.js';
import { discovered } from './discovery.js';
import { groupPath, resourcePath, withQuery } from './paths.js';
import { parseStatus, Transport, type Answer, type Call } from './transport.js';

export type { ClusterSource } from './kubeconfig.js';

const PAGE = '500';
/** The server ends a watch after this time, so that watches spread out again over API servers. */
const WATCH_SECONDS = 300;
/** A bookmark comes at least each minute; longer silence than a whole watch means that nobody is there. */
const WATCH_SILENCE_SECONDS = WATCH_SECONDS + 30;
const DELETE_OPTIONS = { apiVersion: 'v1', kind: 'DeleteOptions' };
/** Shown in managedFields. */
const FIELD_MANAGER = 'drydock';

export interface KubernetesClientOptions {
  /** Default 15. */
  readonly timeoutSeconds?: number;
  readonly userAgent?: string;
}

/** The client, and an end to its connections. */
export interface ClosableKubernetesClient extends KubernetesClient {
  /** Closes all connections; watches end by their own signals. */
  close(): Promise<void>;
}

interface ListBody<T> {
  readonly metadata: { readonly resourceVersion?: string; readonly continue?: string };
  readonly items: readonly T[];
}

/**
 * A client of the API server that `source` names. Nothing is read or connected before the first call; a kubeconfig
 * that cannot be read fails that call as ApiUnavailable.
 */
export function createKubernetesClient(
  source: ClusterSource,
  options: KubernetesClientOptions = {},
): ClosableKubernetesClient {
  const { timeoutSeconds = 15, userAgent = 'drydock' } = options;
  return new RestClient(new Transport(source, { timeoutSeconds, userAgent }));
}

class RestClient implements ClosableKubernetesClient {
  private readonly transport: Transport;

  constructor(transport: Transport) {
    this.transport = transport;
  }

  async get<T extends KubernetesObject>(resource: ResourceKind, object: ObjectName): Promise<T> {
    const call = named('get', resource, object);
    return this.object<T>(resource, { ...call, method: 'GET', path: resourcePath(resource, call) });
  }

  async list<T extends KubernetesObject>(resource: ResourceKind, options: ListOptions = {}): Promise<T[]> {
    return [...(await this.listPages<T>(resource, options)).items];
  }

  async create<T extends KubernetesObject>(resource: ResourceKind, object: T): Promise<T> {
    const call = named('create', resource, object.metadata);
    const path = resourcePath(resource, { namespace: call.namespace });
    const body = { apiVersion: apiVersionOf(resource), kind: resource.kind, ...object };
    return this.object<T>(resource, { ...call, method: 'POST', path: written(path), body });
  }

  async replace<T extends KubernetesObject>(resource: ResourceKind, object: T, subresource?: 'status'): Promise<T> {
    const call = named('replace', resource, object.metadata);
    const path = resourcePath(resource, { ...call, subresource });
    const body = { apiVersion: apiVersionOf(resource), kind: resource.kind, ...object };
    return this.object<T>(resource, { ...call, method: 'PUT', path: written(path), body });
  }

  async patch<T extends KubernetesObject>(
    resource: ResourceKind,
    object: ObjectName,
    mergePatch: object,
    subresource?: 'status',
  ): Promise<T> {
    const call = named('patch', resource, object);
    const path = resourcePath(resource, { ...call, subresource });
    return this.object<T>(resource, {
      ...call,
      method: 'PATCH',
      path: written(path),
      body: mergePatch,
      contentType: 'application/merge-patch+json',
    });
  }

  async apply<T extends KubernetesObject>(resource: ResourceKind, object: T, options: ApplyOptions): Promise<T> {
    const call = named('apply', resource, object.metadata);
    const { fieldManager, force = false, dryRun = false } = options;
    const query = { fieldManager, force: String(force), ...(dryRun ? { dryRun: 'All' } : {}) };
    return this.object<T>(resource, {
      ...call,
      method: 'PATCH',
      path: withQuery(resourcePath(resource, call), query),
      body: { apiVersion: apiVersionOf(resource), kind: resource.kind, ...object },
      contentType: 'application/apply-patch+yaml',
    });
  }

  async delete(resource: ResourceKind, object: ObjectName & { readonly uid?: string | undefined }): Promise<void> {
    const call = named('delete', resource, object);
    const { uid } = object;
    const body = uid === undefined ? {} : { body: { ...DELETE_OPTIONS, preconditions: { uid } } };
    await this.json({ ...call, method: 'DELETE', path: resourcePath(resource, call), ...body });
  }

  async evict(pod: EvictedPod): Promise<EvictionResult> {
    const call = named('evict', KINDS.pod, pod);
    const path = resourcePath(KINDS.pod, { ...call, subresource: 'eviction' });
    const answer = await this.transport.send({ ...call, method: 'POST', path, body: evictionBody(pod) });
    return evictionResult(pod, refusalOf(answer));
  }

  async discover(apiVersion: string, kind: string): Promise<ResourceKind | undefined> {
    const call = { verb: 'discover', kind, method: 'GET', path: groupPath(apiVersion) } as const;
    const answer = await this.transport.send(call);
    return answer.status === 404 ? undefined : discovered(apiVersion, kind, accepted(call, answer));
  }

  async etcdProblem(): Promise<string | undefined> {
    const call = { verb: 'ask', kind: 'etcd', method: 'GET', path: '/readyz/etcd' } as const;
    const { status, text } = await this.transport.send(call);
    // Anything but a failed check says nothing of etcd: not allowed to ask, or a server without this check.
    return status === 500 ? text.replace(/\s+/g, ' ').trim().slice(0, 500) : undefined;
  }

  watch<T extends KubernetesObject>(
    resource: ResourceKind,
    handler: WatchHandler<T>,
    signal: AbortSignal,
    scope: WatchScope = {},
  ): void {
    const listWatch = new ListWatch<T>(
      {
        list: async (abort) => {
          const { items, resourceVersion } = await this.listPages<T>(resource, scope, abort);
          return { items: items.map((item) => slim(resource, item)), resourceVersion };
        },
        watch: (resourceVersion, abort) => this.watchOnce<T>(resource, scope, resourceVersion, abort),
      },
      handler,
    );
    void listWatch.run(signal);
  }

  close(): Promise<void> {
    return this.transport.close();
  }

  private async watchOnce<T extends KubernetesObject>(
    resource: ResourceKind,
    { namespace, fieldSelector }: WatchScope,
    resourceVersion: string,
    signal: AbortSignal,
  ): Promise<AsyncIterable<WatchEvent<T>>> {
    const query = {
      fieldSelector,
      watch: 'true',
      allowWatchBookmarks: 'true',
      resourceVersion,
      timeoutSeconds: String(WATCH_SECONDS),
    };
    const path = withQuery(resourcePath(resource, { namespace }), query);
    const call = { verb: 'watch', kind: resource.kind, namespace, method: 'GET', path, signal } as const;
    return watchEvents<T>(resource, await this.transport.stream(call, WATCH_SILENCE_SECONDS));
  }

  private async listPages<T extends KubernetesObject>(
    resource: ResourceKind,
    options: ListOptions,
    signal?: AbortSignal,
  ): Promise<ListResult<T>> {
    const { namespace, labelSelector, fieldSelector } = options;
    const call = { verb: 'list', kind: resource.kind, namespace, method: 'GET', ...(signal && { signal }) } as const;
    const query = { labelSelector, fieldSelector };
    const path = resourcePath(resource, { namespace });
    const items: T[] = [];
    let token: string | undefined;
    let limit: string | undefined = PAGE;
    for (;;) {
      const answer = await this.transport.send({
        ...call,
        path: withQuery(path, { ...query, limit, continue: token }),
      });
      if (answer.status === 410 && token !== undefined) {
        // The version that the pages are of has been compacted: all at once, since paging was too slow.
        items.length = 0;
        token = limit = undefined;
        continue;
      }
      const body = accepted(call, answer) as ListBody<T>;
      for (const item of body.items) items.push(withKind(resource, item));
      token = body.metadata.continue;
      if (!token) return { items, resourceVersion: body.metadata.resourceVersion ?? '' };
    }
  }

  private async object<T extends KubernetesObject>(resource: ResourceKind, call: Call): Promise<T> {
    return withKind(resource, (await this.json(call)) as T);
  }

  private async json(call: Call): Promise<unknown> {
    return accepted(call, await this.transport.send(call));
  }
}

/** The call's description; a namespaced kind is addressed in its namespace. */
function named(verb: string, resource: ResourceKind, object: ObjectName): FailedCall & ObjectName {
  const { name, namespace } = object;
  const call = { verb, kind: resource.kind, name };
  if (!resource.namespaced) return call;
  if (namespace !== undefined) return { ...call, namespace };
  throw refusedCall(call, {
    status: 400,
    body: { message: `${resource.kind} is namespaced and no namespace was given` },
  });
}

const written = (path: string): string => withQuery(path, { fieldManager: FIELD_MANAGER });

function refusalOf(answer: Answer) {
  const body = answer.status < 300 ? {} : parseStatus(answer.text);
  const retryAfterSeconds = answer.retryAfterSeconds ?? body.details?.retryAfterSeconds;
  return { status: answer.status, body, retryAfterSeconds };
}

function accepted(call: FailedCall, answer: Answer): unknown {
  if (answer.status >= 300) throw refusedCall(call, refusalOf(answer));
  return JSON.parse(answer.text) as unknown;
}

/** The items of a list come without their kind. */
function withKind<T extends KubernetesObject>(resource: ResourceKind, object: T): T {
  object.apiVersion ??= apiVersionOf(resource);
  object.kind ??= resource.kind;
  return object;
}

/**
 * Drops what nobody here reads: who manages which field, and the images on a Node. With 5,000 nodes in a cache these
 * are more than half of the memory.
 */
function slim<T extends KubernetesObject>(resource: ResourceKind, object: T): T {
  const metadata: KubernetesObject['metadata'] & { managedFields?: unknown } = object.metadata;
  delete metadata.managedFields;
  if (resource.kind === 'Node') {
    const node: KubernetesObject & { status?: { images?: unknown } } = object;
    delete node.status?.images;
  }
  return object;
}

async function* watchEvents<T extends KubernetesObject>(
  resource: ResourceKind,
  body: AsyncIterable<Buffer>,
): AsyncGenerator<WatchEvent<T>> {
  for await (const line of parseJsonLines(body)) {
    const event = line as WatchEvent<T>;
    yield event.type === 'ERROR' ? event : { type: event.type, object: slim(resource, event.object) };
  }
}
