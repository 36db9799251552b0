import { randomBytes } from 'node:crypto';
import { KINDS, type KubernetesClient, type KubernetesObject } from '../kubernetes/client.js';
import { failedWith } from '../kubernetes/failures.js';

/** What happened to a node, for `kubectl describe node` and `kubectl get events`. */
export type EventReason =
  | 'ConfigDriftDetected'
  | 'ConfigDriftResolved'
  | 'UpdateApplied'
  | 'UpdateFailed'
  | 'RolledBack'
  /** After an undone update a service could not be given its old files. */
  | 'ServiceNotRestored'
  | 'Reboot'
  | 'RebootInhibited'
  | 'NodeDone';

/** Tells what happens to the own Node as Events. Never waits, never fails. */
export interface NodeEvents {
  normal(reason: EventReason, message: string): void;
  warning(reason: EventReason, message: string): void;
  /** Resolves when what was told so far is written or given up. */
  flushed(): Promise<void>;
}

export interface NodeEventsOptions {
  readonly client: KubernetesClient;
  readonly node: string;
  readonly now: () => Date;
  /** Told of each Event that could not be written. */
  readonly onError?: (error: unknown) => void;
}

/** Of core/v1, as the kubelet writes them. */
type Event = KubernetesObject & {
  readonly involvedObject: { apiVersion: string; kind: string; name: string; uid: string };
  readonly type: 'Normal' | 'Warning';
  readonly reason: EventReason;
  readonly message: string;
  readonly source: { component: string; host: string };
  readonly reportingComponent: string;
  readonly reportingInstance: string;
  readonly firstTimestamp: string;
  readonly lastTimestamp: string;
  readonly count: number;
};

/** Events of objects without a namespace live here. */
const NAMESPACE = 'default';
const COMPONENT = 'drydock-node';
/** The API server's limit. */
const LONGEST_MESSAGE = 1_024;
/** What happens again within this time is the same Event with a higher count. */
const SAME_WITHIN_MS = 10 * 60_000;
/** So many Events at once, and then one in a while, as the field's clients limit theirs: a flood tells nobody anything. */
const MOST_AT_ONCE = 25;
const ONE_MORE_AFTER_MS = 60_000;
const MOST_REMEMBERED = 50;
/** Those that wait for an API server that does not answer; older ones are given up. */
const MOST_WAITING = 50;

/** Events regarding the Node `node`, written with the node's own identity. */
export function createNodeEvents(options: NodeEventsOptions): NodeEvents {
  const writer = new EventWriter(options);
  return {
    normal: (reason, message) => writer.tell('Normal', reason, message),
    warning: (reason, message) => writer.tell('Warning', reason, message),
    flushed: () => writer.flushed(),
  };
}

interface Series {
  readonly key: string;
  readonly type: Event['type'];
  readonly reason: EventReason;
  readonly message: string;
  readonly first: Date;
  last: Date;
  count: number;
  /** Name of the Event once it is written. */
  name?: string;
  isWaiting: boolean;
}

class EventWriter {
  private readonly options: NodeEventsOptions;
  /** The latest last. */
  private readonly series = new Map<string, Series>();
  private waiting: Series[] = [];
  private writing: Promise<void> = Promise.resolve();
  private tokens = MOST_AT_ONCE;
  private refilledAt: number;

  constructor(options: NodeEventsOptions) {
    this.options = options;
    this.refilledAt = options.now().getTime();
  }

  tell(type: Event['type'], reason: EventReason, text: string): void {
    const message = text.length <= LONGEST_MESSAGE ? text : `${text.slice(0, LONGEST_MESSAGE - 1)}…`;
    const series = this.count(type, reason, message);
    if (series.isWaiting || !this.mayWrite()) return;
    series.isWaiting = true;
    this.waiting.push(series);
    for (const given of this.waiting.splice(0, Math.max(0, this.waiting.length - MOST_WAITING))) {
      given.isWaiting = false;
    }
    this.writing = this.writing.then(() => this.writeNext());
  }

  flushed(): Promise<void> {
    return this.writing;
  }

  private count(type: Event['type'], reason: EventReason, message: string): Series {
    const now = this.options.now();
    const key = JSON.stringify([type, reason, message]);
    const known = this.series.get(key);
    this.series.delete(key);
    const isSame = known !== undefined && now.getTime() - known.last.getTime() < SAME_WITHIN_MS;
    const series: Series = isSame
      ? known
      : { key, type, reason, message, first: now, last: now, count: 0, isWaiting: false };
    series.count += 1;
    series.last = now;
    this.series.set(key, series);
    const [oldest] = this.series.keys();
    if (this.series.size > MOST_REMEMBERED && oldest !== undefined) this.series.delete(oldest);
    return series;
  }

  /** What is not written for want of a token is counted in the next one of its series that is. */
  private mayWrite(): boolean {
    const now = this.options.now().getTime();
    const more = Math.floor((now - this.refilledAt) / ONE_MORE_AFTER_MS);
    if (more > 0) {
      this.tokens = Math.min(MOST_AT_ONCE, this.tokens + more);
      this.refilledAt += more * ONE_MORE_AFTER_MS;
    }
    if (this.tokens <= 0) return false;
    this.tokens -= 1;
    return true;
  }

  private async writeNext(): Promise<void> {
    const series = this.waiting.shift();
    if (series === undefined) return;
    series.isWaiting = false;
    try {
      await this.write(series);
    } catch (error) {
      this.options.onError?.(error);
    }
  }

  private async write(series: Series): Promise<void> {
    const { client } = this.options;
    if (series.name !== undefined) {
      const { count, last } = series;
      try {
        const place = { name: series.name, namespace: NAMESPACE };
        await client.patch(KINDS.event, place, { count, lastTimestamp: seconds(last) });
        return;
      } catch (error) {
        // API servers forget Events after an hour.
        if (!failedWith(error, 'NotFound')) throw error;
      }
    }
    const { metadata } = await client.create(KINDS.event, this.event(series));
    series.name = metadata.name;
  }

  private event({ type, reason, message, first, last, count }: Series): Event {
    const { node } = this.options;
    return {
      metadata: { name: eventName(node), namespace: NAMESPACE },
      // As the kubelet does: a Node's Events carry its name for a uid, and are found by either.
      involvedObject: { apiVersion: 'v1', kind: 'Node', name: node, uid: node },
      type,
      reason,
      message,
      source: { component: COMPONENT, host: node },
      reportingComponent: COMPONENT,
      reportingInstance: node,
      firstTimestamp: seconds(first),
      lastTimestamp: seconds(last),
      count,
    };
  }
}

/** At most 253 characters, as every name. */
function eventName(node: string): string {
  return `${node.slice(0, 230).replace(/[.-]+$/, '')}.${randomBytes(8).toString('hex')}`;
}

/** Times of Events have no fraction. */
const seconds = (date: Date): string => `${date.toISOString().slice(0, 19)}Z`;
