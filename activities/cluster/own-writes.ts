import { compareVersions } from '../../machine-config/pool/grant-record.js';
import type { KubernetesObject } from '../kubernetes/client.js';
import type { CachedObjects } from './control-dependencies.js';

/** A watch shows an answer long before so many others have come. */
const MOST_REMEMBERED = 500;

/** What was read, or a later version of it that was seen besides. Where it cannot be told which is later, what was read. */
export function newerOf<T extends KubernetesObject>(read: T | undefined, seen: T | undefined): T | undefined {
  if (read === undefined || seen === undefined) return read;
  const order = compareVersions(seen.metadata.resourceVersion ?? '', read.metadata.resourceVersion ?? '');
  return order !== undefined && order > 0 ? seen : read;
}

/** The objects of a watch, where an answer to a write of our own stands for the object until the watch has caught up. */
export class OwnWrites<T extends KubernetesObject> {
  readonly #cache: CachedObjects<T>;
  readonly #answers = new Map<string, T>();

  constructor(cache: CachedObjects<T>) {
    this.#cache = cache;
  }

  remember(object: T): void {
    const { name } = object.metadata;
    // The oldest come first in a Map.
    this.#answers.delete(name);
    this.#answers.set(name, object);
    const [oldest] = this.#answers.keys();
    if (this.#answers.size > MOST_REMEMBERED && oldest !== undefined) this.#answers.delete(oldest);
  }

  /** Somebody else has written it since. */
  forget(name: string): void {
    this.#answers.delete(name);
  }

  /** The newest version that is known here, which need not be the newest there is. */
  get(name: string): T | undefined {
    const seen = this.#cache.get(name);
    const answer = this.#answers.get(name);
    if (answer === undefined || seen === undefined) return seen;
    const newer = compareVersions(answer.metadata.resourceVersion ?? '', seen.metadata.resourceVersion ?? '');
    if (newer !== undefined && newer > 0) return answer;
    this.#answers.delete(name);
    return seen;
  }
}
