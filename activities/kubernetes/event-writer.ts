import { randomBytes } from 'node:crypto';
import { KINDS, type KubernetesClient, type KubernetesObject } from './client.js';
import { failedWith } from './failures.js';

/** The object that an Event regards. */
export interface Regarded {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
}

export interface ToldEvent {
  readonly about: Regarded;
  readonly type: 'Normal' | 'Warning';
  /** One word in CamelCase. */
  readonly reason: string;
  readonly message: string;
}

export interface EventWriterOptions {
  readonly client: KubernetesClient;
  /** Which program writes, and where it runs. */
  readonly component: string;
  readonly instance: string;
  readonly now: () => Date;
  /** How many different Events are remembered, and how many wait for an API server that does not answer; default 50. */
  readonly capacity?: number;
  /** Told of each Event that could not be written. */
  readonly onError?: (error: unknown) => void;
}

/** Of core/v1, as the kubelet writes them. */
type Event = KubernetesObject & {
  readonly involvedObject: Regarded;
  readonly type: ToldEvent['type'];
  readonly reason: string;
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
/** The API server's limit. */
const LONGEST_MESSAGE = 1_024;
/** What happens again within this time is the same Event with a higher count. */
const SAME_WITHIN_MS = 10 * 60_000;
/** So many Events of one object at once, and then one in a while, as the field's clients limit theirs: a flood tells nobody anything. */
const MOST_AT_ONCE = 25;
const ONE_MORE_AFTER_MS = 60_000;
const DEFAULT_CAPACITY = 50;

interface Series extends ToldEvent {
  readonly key: string;
  readonly first: Date;
  last: Date;
  count: number;
  /** Name of the Event once it is written. */
  name?: string;
  isWaiting: boolean;
}

/** What may still be written of one object. */
interface Allowance {
  tokens: number;
  refilledAt: number;
}

/**
 * Writes Events, the same ones as one with a count, and never more than a person can read. Telling never waits and never
 * fails.
 */
export class EventWriter {
  readonly #options: EventWriterOptions;
  readonly #capacity: number;
  /** The latest last. */
  readonly #series = new Map<string, Series>();
  /** By object, the latest last. */
  readonly #allowances = new Map<string, Allowance>();
  readonly #waiting: Series[] = [];
  #writing: Promise<void> = Promise.resolve();

  constructor(options: EventWriterOptions) {
    this.#options = options;
    this.#capacity = options.capacity ?? DEFAULT_CAPACITY;
  }

  tell({ message: text, ...event }: ToldEvent): void {
    const message = text.length <= LONGEST_MESSAGE ? text : `${text.slice(0, LONGEST_MESSAGE - 1)}…`;
    const series = this.#count({ ...event, message });
    if (series.isWaiting || !this.#mayWrite(event.about)) return;
    series.isWaiting = true;
    this.#waiting.push(series);
    for (const given of this.#waiting.splice(0, Math.max(0, this.#waiting.length - this.#capacity))) {
      given.isWaiting = false;
    }
    this.#writing = this.#writing.then(() => this.#writeNext());
  }

  /** Resolves when what was told so far is written or given up. */
  flushed(): Promise<void> {
    return this.#writing;
  }

  #count(event: ToldEvent): Series {
    const now = this.#options.now();
    const { about, type, reason, message } = event;
    const key = JSON.stringify([about.kind, about.name, about.uid, type, reason, message]);
    const known = this.#series.get(key);
    const isSame = known !== undefined && now.getTime() - known.last.getTime() < SAME_WITHIN_MS;
    const series: Series = isSame ? known : { ...event, key, first: now, last: now, count: 0, isWaiting: false };
    series.count += 1;
    series.last = now;
    setLatest(this.#series, key, series, this.#capacity);
    return series;
  }

  /** What is not written for want of a token is counted in the next one of its series that is. */
  #mayWrite({ kind, name }: Regarded): boolean {
    const now = this.#options.now().getTime();
    const key = `${kind}/${name}`;
    const allowance = this.#allowances.get(key) ?? { tokens: MOST_AT_ONCE, refilledAt: now };
    setLatest(this.#allowances, key, allowance, this.#capacity);
    const more = Math.floor((now - allowance.refilledAt) / ONE_MORE_AFTER_MS);
    if (more > 0) {
      allowance.tokens = Math.min(MOST_AT_ONCE, allowance.tokens + more);
      allowance.refilledAt += more * ONE_MORE_AFTER_MS;
    }
    if (allowance.tokens <= 0) return false;
    allowance.tokens -= 1;
    return true;
  }

  async #writeNext(): Promise<void> {
    const series = this.#waiting.shift();
    if (series === undefined) return;
    series.isWaiting = false;
    try {
      await this.#write(series);
    } catch (error) {
      this.#options.onError?.(error);
    }
  }

  async #write(series: Series): Promise<void> {
    const { client } = this.#options;
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
    const { metadata } = await client.create(KINDS.event, this.#event(series));
    series.name = metadata.name;
  }

  #event({ about, type, reason, message, first, last, count }: Series): Event {
    const { component, instance } = this.#options;
    return {
      metadata: { name: eventName(about.name), namespace: NAMESPACE },
      involvedObject: about,
      type,
      reason,
      message,
      source: { component, host: instance },
      reportingComponent: component,
      reportingInstance: instance,
      firstTimestamp: seconds(first),
      lastTimestamp: seconds(last),
      count,
    };
  }
}

/** Puts the entry last, and drops the oldest where there are too many. */
function setLatest<T>(map: Map<string, T>, key: string, value: T, most: number): void {
  map.delete(key);
  map.set(key, value);
  const [oldest] = map.keys();
  if (map.size > most && oldest !== undefined) map.delete(oldest);
}

/** At most 253 characters, as every name. */
function eventName(object: string): string {
  return `${object.slice(0, 230).replace(/[.-]+$/, '')}.${randomBytes(8).toString('hex')}`;
}

/** Times of Events have no fraction. */
const seconds = (date: Date): string => `${date.toISOString().slice(0, 19)}Z`;
