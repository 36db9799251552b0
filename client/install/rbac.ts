import { DRYDOCK_LABELS, type Manifest } from './manifest.js';
import { KINDS } from '../../activities/kubernetes/client.js';
import type { ApiFlavour } from '../../machine-config/api/flavour.js';
import { IMAGE_DIGEST_MIRROR_SET, IMAGE_TAG_MIRROR_SET } from '../../machine-config/api/image-mirrors.js';
import { certificateRoleName } from '../../machine-config/certificates/objects.js';

/** The namespace of what Drydock has of its own in a cluster. */
export const NAMESPACE = 'drydock';
const CONTROL_ACCOUNT = 'drydock-control';
/** The user as whom a control worker works, unless told otherwise. */
export const CONTROL_USER = `system:serviceaccount:${NAMESPACE}:${CONTROL_ACCOUNT}`;

const RBAC_GROUP = 'rbac.authorization.k8s.io';
const SYSTEM = 'kube-system';

/** A rule of RBAC. */
export interface Rule {
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly nonResourceURLs?: readonly string[];
  readonly verbs: readonly string[];
}

export const on = (apiGroup: string, resources: readonly string[], verbs: readonly string[]): Rule => ({
  apiGroups: [apiGroup],
  resources,
  verbs,
});

export const READ = ['get', 'list', 'watch'];

const NAMESPACED_ROLES = ['roles', 'rolebindings'];

/** Kinds that MachineConfigs are generated from. */
const SOURCES = ['kubeletconfigs', 'containerruntimeconfigs', 'controllerconfigs'];
const MIRROR_SETS = [IMAGE_DIGEST_MIRROR_SET.plural, IMAGE_TAG_MIRROR_SET.plural];
const withSubresource = (name: string): string[] => SOURCES.map((plural) => `${plural}/${name}`);

/**
 * All that a control worker does. It may bind the roles of pools without `escalate` and `bind`, since it has itself
 * what they grant.
 */
function controlRules(flavour: ApiFlavour): Rule[] {
  const { group, machineConfiguration } = flavour;
  return [
    on('', ['nodes'], ['get', 'list', 'watch', 'patch']),
    { apiGroups: [''], resources: ['namespaces'], resourceNames: [SYSTEM], verbs: ['get'] },
    on('', ['events'], ['create', 'patch']),
    on(group, ['machineconfigpools'], ['get', 'list', 'watch', 'patch']),
    on(group, ['machineconfigpools/status'], ['update']),
    // Rendered configs name their pool as an owner whose deletion they block.
    on(group, ['machineconfigpools/finalizers'], ['update']),
    on(group, ['machineconfigs'], ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete']),
    // What MachineConfigs are generated from; they own them, and their deletion waits for them.
    on(group, SOURCES, [...READ, 'patch']),
    on(group, withSubresource('status'), ['patch']),
    on(group, withSubresource('finalizers'), ['update']),
    on(IMAGE_DIGEST_MIRROR_SET.group, MIRROR_SETS, READ),
    on(
      IMAGE_DIGEST_MIRROR_SET.group,
      MIRROR_SETS.map((plural) => `${plural}/status`),
      ['patch'],
    ),
    on(group, ['machineconfignodes'], ['get', 'list', 'create', 'patch', 'delete']),
    on(group, ['machineconfignodes/status'], ['update']),
    on(machineConfiguration.group, ['machineconfigurations'], READ),
    on(machineConfiguration.group, ['machineconfigurations/status'], ['update']),
    on(RBAC_GROUP, ['clusterroles', 'clusterrolebindings'], ['get', 'create', 'update']),
    // What lets nodes read the Secrets and ConfigMaps of certificates: one name, in whichever namespace.
    on(RBAC_GROUP, NAMESPACED_ROLES, ['create']),
    {
      ...on(RBAC_GROUP, NAMESPACED_ROLES, ['list', 'update', 'delete']),
      resourceNames: [certificateRoleName(flavour)],
    },
    { nonResourceURLs: ['/readyz/etcd'], verbs: ['get'] },
  ];
}

/** What the gates `available` and `podsRescheduled` look at. */
const GATE_RULES: readonly Rule[] = [
  on('apps', ['deployments'], ['get', 'list']),
  on('apps', ['replicasets', 'statefulsets'], ['get']),
  on('batch', ['jobs'], ['get']),
  on('', ['replicationcontrollers'], ['get']),
];

/** Without MachineConfigs: the contents of files may be secret. */
function viewerRules({ group, machineConfiguration }: ApiFlavour): Rule[] {
  return [
    on('', ['nodes'], READ),
    { apiGroups: [''], resources: ['namespaces'], resourceNames: [SYSTEM], verbs: ['get'] },
    on(group, ['machineconfigpools', 'machineconfignodes', ...SOURCES], READ),
    on(machineConfiguration.group, ['machineconfigurations'], READ),
  ];
}

/** What pause, approve, resume, run-now, hold, release, retry, stop and go write. */
function operatorRules(flavour: ApiFlavour): Rule[] {
  return [
    ...viewerRules(flavour),
    on('', ['nodes'], ['patch']),
    on(flavour.group, ['machineconfigpools'], ['patch']),
    on(flavour.machineConfiguration.group, ['machineconfigurations'], ['create', 'patch']),
  ];
}

const clusterRole = (name: string, rules: readonly Rule[]): Manifest => ({
  resource: KINDS.clusterRole,
  object: { metadata: { name, labels: DRYDOCK_LABELS }, rules },
});

/** As RBAC names a user, which a service account is too. */
function subjectOf(user: string): object {
  const [, , namespace, name] = /^system:serviceaccount:/u.test(user) ? user.split(':') : [];
  return name === undefined || namespace === undefined
    ? { apiGroup: RBAC_GROUP, kind: 'User', name: user }
    : { kind: 'ServiceAccount', name, namespace };
}

/** The user that a subject stands for; the reverse of how a binding names one. */
export function userOf(subject: { readonly kind: string; readonly name: string; readonly namespace?: string }): string {
  const { kind, name, namespace = '' } = subject;
  return kind === 'ServiceAccount' ? `system:serviceaccount:${namespace}:${name}` : name;
}

/** A role of that name, in its namespace or in the cluster, and that the user has it. */
export function grantedTo(
  user: string,
  place: { readonly name: string; readonly namespace?: string },
  rules: readonly Rule[],
): Manifest[] {
  const metadata = { ...place, labels: DRYDOCK_LABELS };
  const isNamespaced = place.namespace !== undefined;
  const subjects = [subjectOf(user)];
  return [
    { resource: isNamespaced ? KINDS.role : KINDS.clusterRole, object: { metadata, rules } },
    {
      resource: isNamespaced ? KINDS.roleBinding : KINDS.clusterRoleBinding,
      object: { metadata, roleRef: roleRef(isNamespaced ? 'Role' : 'ClusterRole', place.name), subjects },
    },
  ];
}

const roleRef = (kind: 'ClusterRole' | 'Role', name: string) => ({ apiGroup: RBAC_GROUP, kind, name });

/** Roles of one flavour have its name, so that two in a cluster do not take each other's rules. */
export function rbacManifests(flavour: ApiFlavour, controlUser: string): Manifest[] {
  const named = (role: string): string => `drydock:${flavour.name}:${role}`;
  const subjects = [subjectOf(controlUser)];
  const metadata = (name: string, namespace?: string) => ({
    name,
    ...(namespace === undefined ? {} : { namespace }),
    labels: DRYDOCK_LABELS,
  });
  const bound = (role: string): Manifest => ({
    resource: KINDS.clusterRoleBinding,
    object: { metadata: metadata(named(role)), roleRef: roleRef('ClusterRole', named(role)), subjects },
  });
  const staticPods = { metadata: metadata('drydock:control-worker', SYSTEM) };
  const templates = { metadata: metadata('drydock:templates', NAMESPACE) };
  const certificates = { metadata: metadata('drydock:certificates', NAMESPACE) };
  return [
    { resource: KINDS.namespace, object: { metadata: metadata(NAMESPACE) } },
    { resource: KINDS.serviceAccount, object: { metadata: metadata(CONTROL_ACCOUNT, NAMESPACE) } },
    clusterRole(named('control-worker'), controlRules(flavour)),
    bound('control-worker'),
    clusterRole(named('gates'), GATE_RULES),
    bound('gates'),
    // The pods of the control plane.
    { resource: KINDS.role, object: { ...staticPods, rules: [on('', ['pods'], ['list'])] } },
    {
      resource: KINDS.roleBinding,
      object: { ...staticPods, roleRef: roleRef('Role', staticPods.metadata.name), subjects },
    },
    // Templates of configs; one in another namespace takes a role there.
    { resource: KINDS.role, object: { ...templates, rules: [on('', ['configmaps'], ['get'])] } },
    {
      resource: KINDS.roleBinding,
      object: { ...templates, roleRef: roleRef('Role', templates.metadata.name), subjects },
    },
    // It can let nodes read only what it may read itself; an object in another namespace takes a role there.
    { resource: KINDS.role, object: { ...certificates, rules: [on('', ['secrets', 'configmaps'], READ)] } },
    {
      resource: KINDS.roleBinding,
      object: { ...certificates, roleRef: roleRef('Role', certificates.metadata.name), subjects },
    },
    clusterRole(named('viewer'), viewerRules(flavour)),
    clusterRole(named('operator'), operatorRules(flavour)),
  ];
}
