import type { ResourceKind } from '../../machine-config/api/flavour.js';

/** The part of an APIResourceList that we read. */
interface ServedResources {
  readonly resources?: readonly { readonly name: string; readonly kind: string; readonly namespaced: boolean }[];
}

/** A kind out of what the API server serves under an apiVersion; undefined: it is not there. */
export function discovered(apiVersion: string, kind: string, served: unknown): ResourceKind | undefined {
  // A subresource may bear the kind of its object, or of another one.
  const found = (served as ServedResources).resources?.find((each) => each.kind === kind && !each.name.includes('/'));
  if (found === undefined) return undefined;
  const [first = '', second] = apiVersion.split('/');
  const [group, version] = second === undefined ? ['', first] : [first, second];
  return { group, version, plural: found.name, kind, namespaced: found.namespaced };
}
