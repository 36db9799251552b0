import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { ObjectName } from '../../activities/kubernetes/client.js';
import { refusedCall, type FailedCall } from '../../activities/kubernetes/failures.js';
import { apiVersionOf } from '../../machine-config/api/flavour.js';
import type { ResourceKind } from '../../machine-config/api/flavour.js';
import {
  allowsUnconditionalUpdate,
  countsGenerations,
  differsInSpec,
  firstNonString,
  hasStatusSubresource,
  mergePatch,
  mergeWrite,
  type StoredObject,
} from './object-rules.js';

export type StateEvent = 'ADDED' | 'MODIFIED' | 'DELETED';
export type StateListener = (type: StateEvent, object: StoredObject) => void;

/** Refuses or lets pass what is about to be written; throws to refuse. */
export type Admission = (before: StoredObject, after: StoredObject) => void;

export interface WriteInput {
  readonly resource: ResourceKind;
  readonly target: ObjectName;
  readonly subresource?: 'status' | undefined;
  readonly admit?: Admission | undefined;
}

const keyOf = ({ namespace, name }: ObjectName): string => `${namespace ?? ''}/${name}`;

/** The stored objects and the API server's rules about writing them. Synchronous: every call is one atomic step. */
export class ClusterState {
  private readonly now: () => Date;
  private readonly kinds = new Map<string, Map<string, StoredObject>>();
  private readonly listeners = new Map<string, Set<StateListener>>();
  private version = 100;

  constructor(now: () => Date) {
    this.now = now;
  }

  all(resource: ResourceKind): StoredObject[] {
    return [...this.store(resource).values()].sort((a, b) => (keyOf(a.metadata) < keyOf(b.metadata) ? -1 : 1));
  }

  find(resource: ResourceKind, target: ObjectName): StoredObject | undefined {
    return this.store(resource).get(keyOf(target));
  }

  read(resource: ResourceKind, target: ObjectName, call: FailedCall): StoredObject {
    const object = this.find(resource, target);
    if (object !== undefined) return object;
    throw refuse(call, 404, 'NotFound', `${resource.plural} "${target.name}" not found`);
  }

  create(resource: ResourceKind, wanted: object, call: FailedCall): StoredObject {
    const object = structuredClone(wanted) as StoredObject;
    this.checkShape(resource, object, call);
    if (this.find(resource, object.metadata) !== undefined) {
      throw refuse(call, 409, 'AlreadyExists', `${resource.plural} "${object.metadata.name}" already exists`);
    }
    if (object.metadata.resourceVersion) {
      throw refuse(call, 400, 'BadRequest', 'resourceVersion should not be set on objects to be created');
    }
    // Only Nodes register with their status; the kubelet sends it along.
    if (hasStatusSubresource(resource) && resource.kind !== 'Node') delete object.status;
    if (resource.kind === 'Pod') object.status = { phase: 'Pending' };
    return this.insert(resource, object);
  }

  /** Stores an object as it is, status included; for the set-up of tests. */
  insert(resource: ResourceKind, wanted: object): StoredObject {
    const object = structuredClone(wanted) as StoredObject;
    const { metadata } = object;
    const stored: StoredObject = {
      ...object,
      apiVersion: apiVersionOf(resource),
      kind: resource.kind,
      metadata: {
        ...metadata,
        uid: (metadata as { uid?: string }).uid ?? randomUUID(),
        creationTimestamp: (metadata as { creationTimestamp?: string }).creationTimestamp ?? this.timestamp(),
        resourceVersion: this.nextVersion(),
        ...(countsGenerations(resource) ? {} : { generation: 1 }),
      },
    };
    this.store(resource).set(keyOf(metadata), stored);
    this.emit(resource, 'ADDED', stored);
    return stored;
  }

  replace(input: WriteInput, wanted: object, call: FailedCall): StoredObject {
    const before = this.read(input.resource, input.target, call);
    const object = structuredClone(wanted) as StoredObject;
    if (!object.metadata.resourceVersion && !allowsUnconditionalUpdate(input.resource)) {
      const message = 'metadata.resourceVersion: Invalid value: 0: must be specified for an update';
      throw refuse(call, 422, 'Invalid', message);
    }
    return this.write(input, before, object, call);
  }

  patch(input: WriteInput, patch: object, call: FailedCall): StoredObject {
    const before = this.read(input.resource, input.target, call);
    return this.write(input, before, mergePatch(before, patch) as StoredObject, call);
  }

  /** The precondition of a deletion, if it has one. */
  checkUid(resource: ResourceKind, target: ObjectName & { readonly uid?: string | undefined }, call: FailedCall): void {
    const { uid } = this.read(resource, target, call).metadata;
    if (target.uid === undefined || target.uid === uid) return;
    const message = `the UID in the precondition (${target.uid}) does not match the UID in record (${uid})`;
    throw refuse(call, 409, 'Conflict', message);
  }

  /** With finalizers left the object stays, marked; a Pod's finalizers are how tests keep it terminating. */
  remove(resource: ResourceKind, target: ObjectName, call: FailedCall): void {
    const object = this.read(resource, target, call);
    if ((object.metadata.finalizers ?? []).length === 0) {
      this.drop(resource, object);
      return;
    }
    if (object.metadata.deletionTimestamp !== undefined) return;
    this.put(resource, { ...object, metadata: { ...object.metadata, deletionTimestamp: this.timestamp() } });
  }

  subscribe(resource: ResourceKind, listener: StateListener): () => void {
    const key = kindKey(resource);
    const listeners = this.listeners.get(key) ?? new Set();
    this.listeners.set(key, listeners.add(listener));
    return () => listeners.delete(listener);
  }

  private write(input: WriteInput, before: StoredObject, wanted: StoredObject, call: FailedCall): StoredObject {
    const { resource, subresource } = input;
    if (subresource === 'status' && !hasStatusSubresource(resource)) {
      throw refuse(call, 404, 'NotFound', 'the server could not find the requested resource');
    }
    this.checkShape(resource, wanted, call);
    this.checkPreconditions(resource, before, wanted, call);
    const next = mergeWrite(resource, before, wanted, subresource);
    if (isDeepStrictEqual(before, next)) return before;
    input.admit?.(before, next);
    if (before.metadata.deletionTimestamp !== undefined && (next.metadata.finalizers ?? []).length === 0) {
      this.drop(resource, next);
      return next;
    }
    if (!countsGenerations(resource) && differsInSpec(before, next)) {
      next.metadata = { ...next.metadata, generation: (before.metadata.generation ?? 0) + 1 };
    }
    return this.put(resource, next);
  }

  private checkShape(resource: ResourceKind, object: StoredObject, call: FailedCall): void {
    const wrong = firstNonString(object);
    if (wrong !== undefined) throw refuse(call, 400, 'BadRequest', `${wrong}: must be a string`);
    if (resource.namespaced && !object.metadata.namespace) {
      throw refuse(call, 400, 'BadRequest', `${resource.kind} is namespaced and no namespace was given`);
    }
  }

  private checkPreconditions(
    resource: ResourceKind,
    before: StoredObject,
    wanted: StoredObject,
    call: FailedCall,
  ): void {
    const { name, uid, resourceVersion } = wanted.metadata as Partial<StoredObject['metadata']>;
    if (name !== before.metadata.name) {
      throw refuse(
        call,
        400,
        'BadRequest',
        `the name of the object (${name ?? ''}) does not match the name on the URL`,
      );
    }
    if ((uid ?? before.metadata.uid) !== before.metadata.uid) {
      throw refuse(call, 409, 'Conflict', `Precondition failed: UID in precondition: ${uid ?? ''}`);
    }
    if (resourceVersion && resourceVersion !== before.metadata.resourceVersion) {
      const message = `Operation cannot be fulfilled on ${resource.plural} "${name}": the object has been modified`;
      throw refuse(call, 409, 'Conflict', message);
    }
  }

  private put(resource: ResourceKind, object: StoredObject): StoredObject {
    const stored = { ...object, metadata: { ...object.metadata, resourceVersion: this.nextVersion() } };
    this.store(resource).set(keyOf(stored.metadata), stored);
    this.emit(resource, 'MODIFIED', stored);
    return stored;
  }

  private drop(resource: ResourceKind, object: StoredObject): void {
    this.store(resource).delete(keyOf(object.metadata));
    const last = { ...object, metadata: { ...object.metadata, resourceVersion: this.nextVersion() } };
    this.emit(resource, 'DELETED', last);
  }

  private emit(resource: ResourceKind, type: StateEvent, object: StoredObject): void {
    for (const listener of this.listeners.get(kindKey(resource)) ?? []) listener(type, object);
  }

  private store(resource: ResourceKind): Map<string, StoredObject> {
    const key = kindKey(resource);
    const store = this.kinds.get(key) ?? new Map<string, StoredObject>();
    this.kinds.set(key, store);
    return store;
  }

  /** The newest resourceVersion that was given. */
  get newestVersion(): string {
    return String(this.version);
  }

  private nextVersion(): string {
    this.version += 1;
    return String(this.version);
  }

  /** Kubernetes keeps whole seconds. */
  private timestamp(): string {
    return this.now()
      .toISOString()
      .replace(/\.\d+Z$/, 'Z');
  }
}

const kindKey = ({ group, plural }: ResourceKind): string => `${group}/${plural}`;

/** The same failure that the real client makes of such an answer. */
export function refuse(call: FailedCall, status: number, reason: string, message: string): Error {
  return refusedCall(call, { status, body: { reason, message } });
}
