import { isDeepStrictEqual } from 'node:util';
import type { ListOptions } from '../../activities/kubernetes/client.js';
import type { ResourceKind } from '../../machine-config/api/flavour.js';

/** An object as the fake stores it: everything may be in it. */
export interface StoredObject {
  apiVersion: string;
  kind: string;
  metadata: {
    name: string;
    namespace?: string;
    uid: string;
    resourceVersion: string;
    generation?: number;
    creationTimestamp: string;
    deletionTimestamp?: string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
    finalizers?: string[];
  };
  spec?: Record<string, unknown>;
  status?: Record<string, unknown>;
  [field: string]: unknown;
}

type Json = Record<string, unknown>;

const isRecord = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** RFC 7396: null deletes, records merge, everything else replaces. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isRecord(patch)) return structuredClone(patch);
  const result: Json = isRecord(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) Reflect.deleteProperty(result, key);
    else result[key] = mergePatch(result[key], value);
  }
  return result;
}

/** Kinds whose status is no subresource. */
const WITHOUT_STATUS = new Set([
  'machineconfigs',
  'events',
  'clusterroles',
  'clusterrolebindings',
  'secrets',
  'configmaps',
]);

export const hasStatusSubresource = ({ plural }: ResourceKind): boolean => !WITHOUT_STATUS.has(plural);

/** Kinds that a PUT may write without a resourceVersion. */
export const allowsUnconditionalUpdate = ({ group }: ResourceKind): boolean =>
  group === '' || group === 'rbac.authorization.k8s.io';

/** Core kinds carry no generation. */
export const countsGenerations = allowsUnconditionalUpdate;

const FIXED = ['name', 'namespace', 'uid', 'creationTimestamp', 'deletionTimestamp', 'generation', 'resourceVersion'];

/** What is stored when `wanted` is written over `before` through the object or its status. */
export function mergeWrite(
  resource: ResourceKind,
  before: StoredObject,
  wanted: StoredObject,
  subresource?: 'status',
): StoredObject {
  if (subresource === 'status') return withStatus(before, wanted.status);
  const metadata: Json = { ...wanted.metadata };
  for (const key of FIXED) {
    const value = (before.metadata as Json)[key];
    if (value === undefined) Reflect.deleteProperty(metadata, key);
    else metadata[key] = value;
  }
  const next = { ...wanted, metadata } as StoredObject;
  if (!hasStatusSubresource(resource)) return next;
  return withStatus(next, before.status);
}

function withStatus(object: StoredObject, status: Record<string, unknown> | undefined): StoredObject {
  const next = { ...object };
  if (status === undefined) delete next.status;
  else next.status = status;
  return next;
}

/** True if anything outside metadata and status differs: that is what makes a new generation. */
export function differsInSpec(left: StoredObject, right: StoredObject): boolean {
  const spec = (object: StoredObject) => ({ ...object, metadata: undefined, status: undefined });
  return !isDeepStrictEqual(spec(left), spec(right));
}

/** Labels and annotations are strings; the first that is not, as a path. */
export function firstNonString(object: { metadata: object }): string | undefined {
  for (const map of ['labels', 'annotations']) {
    const entries = Object.entries(((object.metadata as Json)[map] as Json | undefined) ?? {});
    const wrong = entries.find(([, value]) => typeof value !== 'string');
    if (wrong !== undefined) return `metadata.${map}[${wrong[0]}]`;
  }
  return undefined;
}

export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly {
    readonly key: string;
    readonly operator: string;
    readonly values?: string[];
  }[];
}

export function matchesLabels(selector: LabelSelector, labels: Readonly<Record<string, string>> = {}): boolean {
  const equal = Object.entries(selector.matchLabels ?? {}).every(([key, value]) => labels[key] === value);
  return equal && (selector.matchExpressions ?? []).every((expression) => matchesExpression(expression, labels));
}

function matchesExpression(
  { key, operator, values = [] }: { key: string; operator: string; values?: string[] },
  labels: Readonly<Record<string, string>>,
): boolean {
  const value = labels[key];
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    default:
      throw new Error(`unknown operator ${operator}`);
  }
}

/** The string form of a label selector: `a=b`, `a==b`, `a!=b`, `a`, `!a`, `a in (b,c)`, `a notin (b,c)`. */
export function parseLabelSelector(text: string): LabelSelector {
  const terms = text.split(/,(?![^(]*\))/).map((term) => term.trim());
  return { matchExpressions: terms.filter((term) => term !== '').map(parseTerm) };
}

function parseTerm(term: string): { key: string; operator: string; values?: string[] } {
  const set = /^(\S+)\s+(in|notin)\s+\(([^)]*)\)$/.exec(term);
  if (set !== null) {
    const values = (set[3] ?? '').split(',').map((value) => value.trim());
    return { key: set[1] ?? '', operator: set[2] === 'in' ? 'In' : 'NotIn', values };
  }
  const equality = /^([^!=\s]+)\s*(!=|==|=)\s*(\S*)$/.exec(term);
  if (equality !== null) {
    return { key: equality[1] ?? '', operator: equality[2] === '!=' ? 'NotIn' : 'In', values: [equality[3] ?? ''] };
  }
  return term.startsWith('!') ? { key: term.slice(1), operator: 'DoesNotExist' } : { key: term, operator: 'Exists' };
}

/** `spec.nodeName=worker-1,metadata.name!=x`; the fields that the fake knows are those of Pods and all names. */
export function matchesFields(text: string, object: StoredObject): boolean {
  return text.split(',').every((term) => {
    const [, field = '', operator, wanted] = /^([^!=]+)(!=|==|=)(.*)$/.exec(term) ?? [];
    const value = fieldOf(object, field) ?? '';
    return operator === '!=' ? value !== wanted : value === wanted;
  });
}

function fieldOf(object: StoredObject, field: string): unknown {
  switch (field) {
    case 'metadata.name':
      return object.metadata.name;
    case 'metadata.namespace':
      return object.metadata.namespace;
    case 'spec.nodeName':
      return object.spec?.nodeName;
    case 'status.phase':
      return object.status?.phase;
    default:
      throw new Error(`field selector on ${field}: the fake does not know it`);
  }
}

export function isSelected(object: StoredObject, options: ListOptions): boolean {
  const { namespace, labelSelector, fieldSelector } = options;
  if (namespace !== undefined && object.metadata.namespace !== namespace) return false;
  if (labelSelector && !matchesLabels(parseLabelSelector(labelSelector), object.metadata.labels)) return false;
  return !fieldSelector || matchesFields(fieldSelector, object);
}
