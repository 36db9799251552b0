import { isDeepStrictEqual } from 'node:util';
import { KINDS } from '../../activities/kubernetes/client.js';
import type { ResourceKind } from '../../machine-config/api/flavour.js';
import { refuse, type Admission, type ClusterState } from './cluster-state.js';
import type { StoredObject } from './object-rules.js';

export type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete';

/** One request as authorization sees it. */
export interface FakeCall {
  readonly identity: string;
  readonly verb: Verb;
  readonly resource: ResourceKind;
  readonly subresource?: 'status' | 'eviction' | undefined;
  readonly name?: string | undefined;
  readonly namespace?: string | undefined;
  readonly fieldSelector?: string | undefined;
}

const NODE_PREFIX = 'system:node:';

function nodeOf(identity: string): string | undefined {
  return identity.startsWith(NODE_PREFIX) ? identity.slice(NODE_PREFIX.length) : undefined;
}

/**
 * Throws Forbidden for what a `system:node:NAME` may not do. Other identities may do everything. The rules are those of
 * the Node authorizer and NodeRestriction of Kubernetes 1.32 and later, plus what RBAC objects in the cluster grant.
 */
export function authorize(call: FakeCall, state: ClusterState): void {
  const node = nodeOf(call.identity);
  if (node === undefined || nodeMay(call, node, state) || rbacAllows(call, state)) return;
  const resource =
    call.subresource === undefined ? call.resource.plural : `${call.resource.plural}/${call.subresource}`;
  throw forbidden(call, `User "${call.identity}" cannot ${call.verb} resource "${resource}"`);
}

function nodeMay(call: FakeCall, node: string, state: ClusterState): boolean {
  const { verb, resource } = call;
  if (resource.group !== '') return false;
  if (resource.plural === 'nodes') return mayOnNodes(call, node);
  if (resource.plural === 'pods') return mayOnPods(call, node, state);
  if (resource.plural === 'persistentvolumeclaims') return verb === 'get' && claimsOf(node, state).has(addressOf(call));
  if (resource.plural === 'persistentvolumes') return verb === 'get' && volumesOf(node, state).has(call.name ?? '');
  return resource.plural === 'events' && ['create', 'update', 'patch'].includes(verb);
}

function mayOnNodes({ verb, name, fieldSelector }: FakeCall, node: string): boolean {
  if (verb === 'list' || verb === 'watch') return fieldSelector === `metadata.name=${node}`;
  return name === node && verb !== 'delete';
}

function mayOnPods(call: FakeCall, node: string, state: ClusterState): boolean {
  if (call.verb === 'list' || call.verb === 'watch') return call.fieldSelector === `spec.nodeName=${node}`;
  const pod = state.find(KINDS.pod, { name: call.name ?? '', namespace: call.namespace ?? '' });
  // Whether a pod of that name exists elsewhere is not for the node to know, but a missing one is simply not found.
  if (pod !== undefined && pod.spec?.nodeName !== node) return false;
  if (call.subresource === 'eviction') return true;
  return call.verb === 'get' || call.verb === 'delete' || call.subresource === 'status';
}

const addressOf = ({ namespace = '', name = '' }: Pick<FakeCall, 'namespace' | 'name'>) => `${namespace}/${name}`;

/** Of the pods that are bound to the node, as long as they are. */
function claimsOf(node: string, state: ClusterState): Set<string> {
  const pods = state.all(KINDS.pod).filter(({ spec }) => spec?.nodeName === node);
  return new Set(
    pods.flatMap(({ metadata, spec }) =>
      ((spec?.volumes ?? []) as { persistentVolumeClaim?: { claimName: string } }[]).flatMap((volume) =>
        volume.persistentVolumeClaim === undefined
          ? []
          : [addressOf({ namespace: metadata.namespace, name: volume.persistentVolumeClaim.claimName })],
      ),
    ),
  );
}

function volumesOf(node: string, state: ClusterState): Set<unknown> {
  const claims = claimsOf(node, state);
  const mine = state.all(KINDS.persistentVolumeClaim).filter(({ metadata }) => claims.has(addressOf(metadata)));
  return new Set(mine.map(({ spec }) => spec?.volumeName));
}

interface Rule {
  readonly verbs?: readonly string[];
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly resourceNames?: readonly string[];
}

function rbacAllows(call: FakeCall, state: ClusterState): boolean {
  const { identity, namespace } = call;
  const roleIn = (binding: StoredObject, role: { namespace?: string } = {}) => {
    const { name } = binding.roleRef as { name: string };
    const kind = role.namespace === undefined ? KINDS.clusterRole : KINDS.role;
    return state.find(kind, { name, ...role })?.rules ?? [];
  };
  const everywhere = state.all(KINDS.clusterRoleBinding).filter((binding) => isSubject(identity, binding));
  const here = state
    .all(KINDS.roleBinding)
    .filter((binding) => binding.metadata.namespace === namespace && isSubject(identity, binding));
  const rules = [
    ...everywhere.flatMap((binding) => roleIn(binding)),
    ...(namespace === undefined ? [] : here.flatMap((binding) => roleIn(binding, { namespace }))),
  ];
  return rules.some((rule) => ruleAllows(rule, call));
}

/** A list or watch of the one object of a name counts as one of that object. */
const nameIn = ({ name, fieldSelector = '' }: FakeCall) => name ?? /^metadata\.name=([^,]+)$/u.exec(fieldSelector)?.[1];

function isSubject(identity: string, binding: StoredObject): boolean {
  const subjects = (binding.subjects ?? []) as { kind: string; name: string }[];
  const groups = ['system:authenticated', ...(nodeOf(identity) === undefined ? [] : ['system:nodes'])];
  return subjects.some(({ kind, name }) =>
    kind === 'Group' ? groups.includes(name) : kind === 'User' && name === identity,
  );
}

function ruleAllows(rule: Rule, call: FakeCall): boolean {
  const resource =
    call.subresource === undefined ? call.resource.plural : `${call.resource.plural}/${call.subresource}`;
  const has = (list: readonly string[] | undefined, value: string): boolean =>
    (list ?? []).includes('*') || (list ?? []).includes(value);
  const names = rule.resourceNames ?? [];
  const name = nameIn(call);
  return (
    has(rule.verbs, call.verb) &&
    has(rule.apiGroups, call.resource.group) &&
    has(rule.resources, resource) &&
    (names.length === 0 || (name !== undefined && names.includes(name)))
  );
}

/** Label keys of Kubernetes itself that a kubelet may set on its Node. */
const KUBELET_LABELS =
  /^((node|kubelet)\.kubernetes\.io\/|kubernetes\.io\/(hostname|arch|os)$|topology\.kubernetes\.io\/|failure-domain\.beta\.kubernetes\.io\/|beta\.kubernetes\.io\/(instance-type|arch|os)$)/;

function protectedLabelChange(before: StoredObject, after: StoredObject): string | undefined {
  const [old = {}, now = {}] = [before.metadata.labels, after.metadata.labels];
  const changed = [...new Set([...Object.keys(old), ...Object.keys(now)])].filter((key) => old[key] !== now[key]);
  return changed.find((key) => {
    const domain = key.split('/')[0] ?? '';
    return /(^|\.)(kubernetes|k8s)\.io$/.test(domain) && !KUBELET_LABELS.test(key);
  });
}

/**
 * What a node may not change on its own Node: taints, owners, protected labels (NodeRestriction), and desiredConfig
 * (Drydock's own admission policy: `assign` is its only writer).
 */
export function nodeAdmission(call: FakeCall): Admission | undefined {
  if (nodeOf(call.identity) === undefined || call.resource.kind !== 'Node') return undefined;
  return (before, after) => {
    if (!isDeepStrictEqual(before.spec?.taints, after.spec?.taints)) throw forbidden(call, 'may not change taints');
    const owners = (object: StoredObject): unknown =>
      (object.metadata as { ownerReferences?: unknown }).ownerReferences;
    if (!isDeepStrictEqual(owners(before), owners(after))) throw forbidden(call, 'may not change ownerReferences');
    const label = protectedLabelChange(before, after);
    if (label !== undefined) throw forbidden(call, `may not change label ${label}`);
    for (const key of Object.keys({ ...before.metadata.annotations, ...after.metadata.annotations })) {
      if (key.endsWith('/desiredConfig') && before.metadata.annotations?.[key] !== after.metadata.annotations?.[key]) {
        throw forbidden(call, `may not change annotation ${key}`);
      }
    }
  };
}

function forbidden(call: FakeCall, message: string): Error {
  const { verb, resource, name, namespace } = call;
  const what = name === undefined ? resource.plural : `${resource.plural} "${name}"`;
  return refuse({ verb, kind: resource.kind, name, namespace }, 403, 'Forbidden', `${what} is forbidden: ${message}`);
}
