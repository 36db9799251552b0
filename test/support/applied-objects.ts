import type { ObjectName } from '../../activities/kubernetes/client.js';
import type { ResourceKind } from '../../machine-config/api/flavour.js';
import { isRecord } from '../../machine-config/ignition/findings.js';

interface Application {
  readonly manager: string;
  readonly object: object;
}

/** What each manager applied last, so that what it says no longer goes, as with server-side apply. */
export class AppliedObjects {
  readonly #last = new Map<string, object>();

  /** The object as a merge patch, with nulls for what the manager has said before and says no longer. */
  said(resource: ResourceKind, target: ObjectName, { manager, object }: Application): object {
    return withNulls(this.#last.get(keyOf(resource, target, manager)) ?? {}, object);
  }

  remember(resource: ResourceKind, target: ObjectName, { manager, object }: Application): void {
    this.#last.set(keyOf(resource, target, manager), structuredClone(object));
  }
}

function keyOf(resource: ResourceKind, { namespace = '', name }: ObjectName, manager: string): string {
  return [resource.group, resource.plural, namespace, name, manager].join('/');
}

function withNulls(before: object, after: object): object {
  const gone = Object.keys(before).filter((key) => !(key in after));
  const kept = Object.entries(after).map(([key, value]: [string, unknown]): [string, unknown] => {
    const old: unknown = (before as Record<string, unknown>)[key];
    return [key, isRecord(value) ? withNulls(isRecord(old) ? old : {}, value) : value];
  });
  return Object.fromEntries([...gone.map((key): [string, unknown] => [key, null]), ...kept]);
}
