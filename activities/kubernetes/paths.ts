import { ApplicationFailure } from '@temporalio/common';
import type { ResourceKind } from '../../machine-config/api/flavour.js';
import type { FailureCode } from '../../workflows/contract/failure-codes.js';

export type Query = Readonly<Record<string, string | undefined>>;

export interface ResourcePath {
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  readonly subresource?: string | undefined;
}

/**
 * `/api/v1/nodes/worker-1`, `/apis/GROUP/VERSION/namespaces/NS/PLURAL/NAME/status`.
 *
 * @throws Invalid for a name that would lead to another path than that of an object: names come from tasks, too.
 */
export function resourcePath(resource: ResourceKind, { namespace, name, subresource }: ResourcePath): string {
  const root = resource.group === '' ? '/api' : `/apis/${resource.group}`;
  const parts = [resource.version];
  if (resource.namespaced && namespace !== undefined) parts.push('namespaces', namespace);
  parts.push(resource.plural);
  if (name !== undefined) parts.push(name);
  if (subresource !== undefined) parts.push(subresource);
  return `${root}/${parts.map((part) => segment(part, resource)).join('/')}`;
}

/** An empty segment is the collection, and whoever normalizes a path takes `.` and `..` for folders. */
function segment(part: unknown, { kind }: ResourceKind): string {
  if (typeof part === 'string' && !['', '.', '..'].includes(part)) return encodeURIComponent(part);
  throw ApplicationFailure.nonRetryable(
    `${kind}: ${JSON.stringify(part)} is no name of an object: a name is neither empty nor a dot or two`,
    'Invalid' satisfies FailureCode,
  );
}

/** `/api/v1`, `/apis/apps/v1`: what is served under an apiVersion. */
export function groupPath(apiVersion: string): string {
  const root = apiVersion.includes('/') ? '/apis' : '/api';
  return `${root}/${apiVersion.split('/').map(encodeURIComponent).join('/')}`;
}

export function withQuery(path: string, query: Query): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given).toString()}`;
}
