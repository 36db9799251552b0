import type { ResourceKind } from '../../machine-config/api/flavour.js';
import type { KubernetesClient, KubernetesObject, ObjectName, WatchScope } from './client.js';

export type ChangeType = 'ADDED' | 'MODIFIED' | 'DELETED';

/** One change of an object; `before` is what the cache held until now. */
export interface CacheChange<T> {
  readonly type: ChangeType;
  readonly object: T;
  readonly before: T | undefined;
}

export interface WatchCacheOptions {
  /** Ends the watch. */
  readonly signal: AbortSignal;
  /** Everything is seen this much later, in order; for tests of what a lagging watch does. */
  readonly delayMs?: number;
  /** What of the kind; default: all of it. */
  readonly scope?: WatchScope;
  /** Errors of the watch; it goes on by itself. */
  readonly onError?: (error: unknown) => void;
  /** It is heard of again, or still. */
  readonly onProgress?: () => void;
}

/** How far a cache is behind the API server, as far as it can know. */
export interface Freshness {
  /** The cache has seen everything up to this resourceVersion; single objects may be newer. */
  readonly version: string;
  /** Epoch milliseconds at which the watch was heard of last, be it only by a bookmark. */
  readonly heardAt: number;
}

/** The objects of one kind as the watch shows them: soon, not at once. */
export class WatchCache<T extends KubernetesObject> {
  private readonly objects = new Map<string, T>();
  private readonly listeners = new Set<(change: CacheChange<T>) => void>();
  private readonly firstList: Promise<void>;
  private isComplete = false;
  private readonly progressListeners = new Set<(version: string) => void>();
  private reached: Freshness | undefined;

  constructor(client: KubernetesClient, resource: ResourceKind, options: WatchCacheOptions) {
    const { signal, delayMs = 0, onError, onProgress, scope } = options;
    const later = (action: () => void): void => {
      if (delayMs === 0) action();
      else setTimeout(() => signal.aborted || action(), delayMs);
    };
    const { promise, resolve, reject } = withResolvers();
    this.firstList = promise;
    // A cache that nobody waits for may be stopped before its first list.
    promise.catch(() => undefined);
    const stopped = (): void => reject(new Error(`the cache of ${resource.plural} was stopped`));
    if (signal.aborted) stopped();
    signal.addEventListener('abort', stopped, { once: true });
    client.watch<T>(
      resource,
      {
        onChange: (type, object) => later(() => this.apply(type, object)),
        onSynced: () =>
          later(() => {
            this.isComplete = true;
            signal.removeEventListener('abort', stopped);
            resolve();
          }),
        onVersion: (version) =>
          later(() => {
            this.reached = { version, heardAt: Date.now() };
            onProgress?.();
            for (const listener of this.progressListeners) listener(version);
          }),
        onError: (error) => onError?.(error),
      },
      signal,
      scope,
    );
  }

  /** Resolves after the first full list; rejects if the signal aborts before. */
  synced(): Promise<void> {
    return this.firstList;
  }

  /** True after the first full list. */
  hasSynced(): boolean {
    return this.isComplete;
  }

  /** All objects, in no particular order. They are shared: do not change them. */
  list(): T[] {
    return [...this.objects.values()];
  }

  /** Undefined before the first full list. */
  freshness(): Freshness | undefined {
    return this.reached;
  }

  /** Resolves true once the cache has come to a version that is enough, false if that lasts too long. */
  async reaches(isEnough: (version: string) => boolean, timeoutMs: number): Promise<boolean> {
    if (this.reached !== undefined && isEnough(this.reached.version)) return true;
    return new Promise((resolve) => {
      const end = (answer: boolean): void => {
        clearTimeout(timer);
        this.progressListeners.delete(listener);
        resolve(answer);
      };
      const listener = (version: string): void => {
        if (isEnough(version)) end(true);
      };
      const timer = setTimeout(() => end(false), timeoutMs);
      this.progressListeners.add(listener);
    });
  }

  get(object: ObjectName | string): T | undefined {
    return this.objects.get(keyOf(typeof object === 'string' ? { name: object } : object));
  }

  /** Called for each change after it is in the cache, the first list included if it is still to come. */
  onChange(listener: (change: CacheChange<T>) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private apply(type: ChangeType, object: T): void {
    const key = keyOf(object.metadata);
    const before = this.objects.get(key);
    if (type === 'DELETED') this.objects.delete(key);
    else this.objects.set(key, object);
    for (const listener of this.listeners) listener({ type, object, before });
  }
}

function keyOf({ namespace, name }: ObjectName): string {
  return `${namespace ?? ''}/${name}`;
}

/** Promise.withResolvers, which Node 20 does not have. */
function withResolvers(): { promise: Promise<void>; resolve: () => void; reject: (error: Error) => void } {
  let settle: { resolve: () => void; reject: (error: Error) => void } | undefined;
  const promise = new Promise<void>((resolve, reject) => (settle = { resolve, reject }));
  if (settle === undefined) throw new Error('unreachable: the executor of a promise runs at once');
  return { promise, ...settle };
}
