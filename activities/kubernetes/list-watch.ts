import { setTimeout as sleep } from 'node:timers/promises';
import type { KubernetesObject, WatchHandler } from './client.js';

export interface ListResult<T> {
  readonly items: readonly T[];
  readonly resourceVersion: string;
}

/** One line of a watch. An ERROR's object is a Status. */
export type WatchEvent<T> =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'; readonly object: T }
  | { readonly type: 'ERROR'; readonly object: { readonly code?: number; readonly message?: string } };

export interface ListWatchSource<T> {
  list(signal: AbortSignal): Promise<ListResult<T>>;
  /** Resolves once the server has begun to answer; ends when the server ends it. */
  watch(resourceVersion: string, signal: AbortSignal): Promise<AsyncIterable<WatchEvent<T>>>;
}

export interface BackOff {
  readonly firstMilliseconds: number;
  readonly maxMilliseconds: number;
  /** A watch that lived this long was a healthy one: the next delay is the first again. */
  readonly healthyMilliseconds: number;
}

export const WATCH_BACK_OFF: BackOff = {
  firstMilliseconds: 1000,
  maxMilliseconds: 30_000,
  healthyMilliseconds: 30_000,
};

/**
 * Keeps a handler informed about every object of a kind. A watch that the server ends in the usual way is resumed where
 * it ended; after an error (410 among them) everything is listed again, and what vanished meanwhile is reported DELETED.
 */
export class ListWatch<T extends KubernetesObject> {
  private readonly known = new Map<string, T>();
  private readonly source: ListWatchSource<T>;
  private readonly handler: WatchHandler<T>;
  private readonly backOff: BackOff;
  private synced = false;

  constructor(source: ListWatchSource<T>, handler: WatchHandler<T>, backOff: BackOff = WATCH_BACK_OFF) {
    this.source = source;
    this.handler = handler;
    this.backOff = backOff;
  }

  /** Returns when the signal aborts; never throws. */
  async run(signal: AbortSignal): Promise<void> {
    const { firstMilliseconds, maxMilliseconds, healthyMilliseconds } = this.backOff;
    let delay = firstMilliseconds;
    let resourceVersion: string | undefined;
    while (!signal.aborted) {
      const startedAt = performance.now();
      try {
        resourceVersion ??= await this.relist(signal);
        resourceVersion = await this.follow(resourceVersion, signal);
      } catch (error) {
        resourceVersion = undefined;
        if (!isAborted(signal)) this.report(error);
      }
      if (performance.now() - startedAt >= healthyMilliseconds) delay = firstMilliseconds;
      await sleep(delay, undefined, { signal }).catch(() => undefined);
      delay = Math.min(delay * 2, maxMilliseconds);
    }
  }

  private async relist(signal: AbortSignal): Promise<string> {
    const { items, resourceVersion } = await this.source.list(signal);
    if (signal.aborted) return resourceVersion;
    const gone = new Map(this.known);
    for (const object of items) {
      const key = keyOf(object);
      const before = gone.get(key);
      gone.delete(key);
      this.known.set(key, object);
      if (before === undefined) this.tell('ADDED', object);
      else if (before.metadata.uid !== object.metadata.uid) {
        // Deleted and made again while we did not look.
        this.tell('DELETED', before);
        this.tell('ADDED', object);
      } else if (before.metadata.resourceVersion !== object.metadata.resourceVersion) this.tell('MODIFIED', object);
    }
    for (const [key, object] of gone) {
      this.known.delete(key);
      this.tell('DELETED', object);
    }
    if (!this.synced) {
      this.synced = true;
      this.guarded(() => this.handler.onSynced?.());
    }
    this.reached(resourceVersion);
    return resourceVersion;
  }

  /** The resourceVersion at which to go on. */
  private async follow(resourceVersion: string, signal: AbortSignal): Promise<string> {
    let reached = resourceVersion;
    for await (const event of await this.source.watch(resourceVersion, signal)) {
      if (signal.aborted) break;
      if (event.type === 'ERROR') {
        throw new Error(`the watch ended: ${event.object.code ?? ''} ${event.object.message ?? ''}`.trim());
      }
      reached = event.object.metadata.resourceVersion ?? reached;
      if (event.type !== 'BOOKMARK') {
        if (event.type === 'DELETED') this.known.delete(keyOf(event.object));
        else this.known.set(keyOf(event.object), event.object);
        this.tell(event.type, event.object);
      }
      this.reached(reached);
    }
    return reached;
  }

  private reached(resourceVersion: string): void {
    this.guarded(() => this.handler.onVersion?.(resourceVersion));
  }

  private tell(type: 'ADDED' | 'MODIFIED' | 'DELETED', object: T): void {
    this.guarded(() => this.handler.onChange(type, object));
  }

  private report(error: unknown): void {
    try {
      this.handler.onError?.(error);
    } catch {
      // Nobody is left to tell.
    }
  }

  /** A listener's bug shall not end the watch for the others. */
  private guarded(action: () => void): void {
    try {
      action();
    } catch (error) {
      this.report(error);
    }
  }
}

/** A call, so that the compiler does not take an earlier answer for the present one. */
const isAborted = (signal: AbortSignal): boolean => signal.aborted;

function keyOf({ metadata }: KubernetesObject): string {
  return `${metadata.namespace ?? ''}/${metadata.name}`;
}

/** Splits a stream into the JSON documents of its lines; a last line without its end is dropped. */
export async function* parseJsonLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator {
  const decoder = new TextDecoder();
  // Pieces are joined once a line: appending to one string is quadratic for an object of a megabyte.
  let pieces: string[] = [];
  for await (const chunk of chunks) {
    const lines = decoder.decode(chunk, { stream: true }).split('\n');
    const last = lines.pop() ?? '';
    for (const line of lines) {
      const whole = pieces.join('') + line;
      pieces = [];
      if (whole.trim() !== '') yield JSON.parse(whole) as unknown;
    }
    pieces.push(last);
  }
}
