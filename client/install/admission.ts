import { KINDS, type KubernetesClient } from '../../activities/kubernetes/client.js';
import { ifThere } from '../../activities/kubernetes/failures.js';
import { apiFlavour, DRYDOCK_ANNOTATIONS, FLAVOUR_NAMES, type ApiFlavour } from '../../machine-config/api/flavour.js';
import { WAITING_TAINT } from '../../machine-config/pool/facts.js';
import { STARTUP_TAINT_PREFIX } from '../../machine-config/pool/startup-taint.js';
import { machineConfigRules } from './machine-config-admission.js';
import { DRYDOCK_LABELS, type Manifest } from './manifest.js';

/*
 * Admission policies, in CEL, of Kubernetes 1.32 and later. RBAC cannot tell one annotation from another; these can.
 */

const A = DRYDOCK_ANNOTATIONS;

interface Variable {
  readonly name: string;
  readonly expression: string;
}

interface Validation {
  readonly expression: string;
  readonly messageExpression: string;
  readonly reason: 'Forbidden' | 'Invalid';
}

const text = (value: string): string => JSON.stringify(value);
const list = (values: readonly string[]): string => JSON.stringify(values);

/** Which of these annotations the request changes; an empty one is as an absent one. */
const changed = (keys: string): string =>
  `${keys}.filter(k, (k in variables.before ? variables.before[k] : "") != (k in variables.after ? variables.after[k] : ""))`;

const common = (controlUser: string): Variable[] => [
  { name: 'isControl', expression: `request.userInfo.username == ${text(controlUser)}` },
  {
    name: 'before',
    expression: 'oldObject != null && has(oldObject.metadata.annotations) ? oldObject.metadata.annotations : {}',
  },
  { name: 'after', expression: 'has(object.metadata.annotations) ? object.metadata.annotations : {}' },
];

const forbid = (expression: string, messageExpression: string): Validation => ({
  expression,
  messageExpression,
  reason: 'Forbidden',
});

/** Grants are the control worker's; a node only takes back what is done. */
function grantsOfNodes(flavour: ApiFlavour): { variables: Variable[]; validations: Validation[] } {
  const granted = [flavour.annotations.desiredConfig, A.forceGranted, A.noDrain, A.gatesPassed];
  return {
    variables: [
      { name: 'isNode', expression: 'has(request.userInfo.groups) && "system:nodes" in request.userInfo.groups' },
      { name: 'grants', expression: changed(list(granted)) },
      { name: 'orders', expression: changed(list([A.hold, A.release, A.retry])) },
    ],
    validations: [
      // Whoever may create any Node may bring one back with what it had; a node may not.
      forbid(
        `variables.isControl || (oldObject == null && !variables.isNode) || variables.grants.all(k, variables.isNode && !(k in variables.after) && k in ${list([A.forceGranted, A.noDrain])})`,
        '"Node " + object.metadata.name + ": " + variables.grants[0] + " is written by the control worker of Drydock alone, not by " + request.userInfo.username + ": change the pool or its MachineConfigs, or use drydock node hold, release or retry"',
      ),
      forbid(
        `!variables.isNode || variables.orders.all(k, !(k in variables.after) && k in ${list([A.release, A.retry])})`,
        '"Node " + object.metadata.name + ": " + variables.orders[0] + " is written by people, not by the node itself: use drydock node hold, release or retry with a user of your own"',
      ),
    ],
  };
}

const otherTaints = (object: string): string =>
  `has(${object}.spec.taints) ? ${object}.spec.taints.filter(t, !(t.key == ${text(WAITING_TAINT.key)} && t.effect == ${text(WAITING_TAINT.effect)})) : []`;
/** The taint with which a node came and that it loses when it is configured. */
const isStartup = (taint: string): string =>
  `(${taint}.key.startsWith(${text(STARTUP_TAINT_PREFIX)}) && ${taint}.effect == "NoSchedule")`;
const same = (path: string, absent: string): string =>
  `(has(object.${path}) ? object.${path} : ${absent}) == (has(oldObject.${path}) ? oldObject.${path} : ${absent})`;

/** The control worker may patch Nodes for its grants and its taint, and for nothing else. */
function limitsOfControl(): { variables: Variable[]; validations: Validation[] } {
  // Of every flavour: one cluster may have the policies of several, and one control worker's user in all of them.
  const desired = FLAVOUR_NAMES.map((name) => apiFlavour(name).annotations.desiredConfig);
  const own = list([...desired, A.forceGranted, A.noDrain, A.gatesPassed]);
  const message = (what: string): string =>
    `"Node " + object.metadata.name + ": the control worker of Drydock may not change ${what}: it writes grants and the taint ${WAITING_TAINT.key} only; do not use its identity for anything else"`;
  const whenControl = (expression: string, what: string): Validation =>
    forbid(`!variables.isControl || oldObject == null || (${expression})`, message(what));
  return {
    variables: [
      { name: 'taintsBefore', expression: `oldObject == null ? [] : (${otherTaints('oldObject')})` },
      { name: 'taintsAfter', expression: otherTaints('object') },
    ],
    validations: [
      whenControl(same('spec.unschedulable', 'false'), 'spec.unschedulable'),
      whenControl(
        `variables.taintsBefore == variables.taintsAfter || variables.taintsBefore.filter(t, !${isStartup('t')}) == variables.taintsAfter`,
        'taints of others',
      ),
      whenControl(
        `${changed('variables.before.map(k, k)')}.all(k, k in ${own}) && variables.after.all(k, k in variables.before || k in ${own})`,
        'annotations of others',
      ),
      whenControl(
        `${same('metadata.labels', '{}')} && ${same('metadata.finalizers', '[]')} && ${same('metadata.ownerReferences', '[]')}`,
        'labels, finalizers or owners',
      ),
      whenControl('!has(request.subResource) || request.subResource == ""', 'the status'),
    ],
  };
}

/** An approval is by whoever writes it, and what the control worker remembers on a pool is its own. */
function poolRules(): { variables: Variable[]; validations: Validation[] } {
  return {
    variables: [
      { name: 'approvals', expression: changed(list([A.approval, A.approvedBy])) },
      { name: 'records', expression: changed(list([A.lastGrant, A.rolledBackFrom])) },
    ],
    validations: [
      forbid(
        `variables.approvals.size() == 0 || (!(${text(A.approval)} in variables.after) && !(${text(A.approvedBy)} in variables.after)) || (${text(A.approvedBy)} in variables.after && variables.after[${text(A.approvedBy)}] == request.userInfo.username)`,
        `"MachineConfigPool " + object.metadata.name + ": ${A.approvedBy} must be " + request.userInfo.username + ", who writes this approval: use drydock rollout approve " + object.metadata.name`,
      ),
      forbid(
        'variables.isControl || variables.records.size() == 0',
        '"MachineConfigPool " + object.metadata.name + ": " + variables.records[0] + " is written by the control worker of Drydock alone, not by " + request.userInfo.username + ": leave it out"',
      ),
    ],
  };
}

/** On a policy: the user that it takes for the control worker, so that the next installation keeps to it. */
const CONTROL_USER_ANNOTATION = 'drydock.dev/control-user';

const nodePolicyName = (flavour: ApiFlavour): string => `drydock-nodes-${flavour.name}`;

/** The user that the policies of this cluster take for the control worker; undefined: there are none. */
export async function installedControlUser(client: KubernetesClient, flavour: ApiFlavour): Promise<string | undefined> {
  const name = nodePolicyName(flavour);
  const live = await ifThere(() => client.get(KINDS.validatingAdmissionPolicy, { name }));
  return live?.metadata.annotations?.[CONTROL_USER_ANNOTATION];
}

interface PolicyParts {
  readonly controlUser: string;
  readonly name: string;
  readonly apiGroup: string;
  readonly apiVersion: string;
  readonly resources: readonly string[];
  readonly variables: readonly Variable[];
  readonly validations: readonly Validation[];
  /** What becomes of a change that the policy cannot judge; default Fail. */
  readonly failurePolicy?: 'Fail' | 'Ignore';
}

function policy({
  name,
  controlUser,
  apiGroup,
  apiVersion,
  resources,
  variables,
  validations,
  failurePolicy = 'Fail',
}: PolicyParts): Manifest[] {
  const metadata = { name, labels: DRYDOCK_LABELS, annotations: { [CONTROL_USER_ANNOTATION]: controlUser } };
  const rule = { apiGroups: [apiGroup], apiVersions: [apiVersion], operations: ['CREATE', 'UPDATE'], resources };
  return [
    {
      resource: KINDS.validatingAdmissionPolicy,
      object: {
        metadata,
        spec: { failurePolicy, matchConstraints: { resourceRules: [rule] }, variables, validations },
      },
    },
    {
      resource: KINDS.validatingAdmissionPolicyBinding,
      object: { metadata, spec: { policyName: name, validationActions: ['Deny'] } },
    },
  ];
}

/**
 * The admission policies of one flavour. `controlUser` is the user as whom the control worker works, and whom they keep
 * to what a control worker does.
 */
export function admissionManifests(flavour: ApiFlavour, controlUser: string): Manifest[] {
  const nodes = [grantsOfNodes(flavour), limitsOfControl()];
  const pools = poolRules();
  const configs = machineConfigRules(flavour);
  return [
    ...policy({
      name: nodePolicyName(flavour),
      controlUser,
      apiGroup: '',
      apiVersion: 'v1',
      // Whoever may write the status may write annotations with it.
      resources: ['nodes', 'nodes/status'],
      variables: [...common(controlUser), ...nodes.flatMap(({ variables }) => variables)],
      validations: nodes.flatMap(({ validations }) => validations),
    }),
    ...policy({
      name: `drydock-pools-${flavour.name}`,
      controlUser,
      apiGroup: flavour.group,
      apiVersion: flavour.version,
      resources: [flavour.machineConfigPool.plural],
      variables: [...common(controlUser), ...pools.variables],
      validations: pools.validations,
    }),
    ...policy({
      name: `drydock-machine-configs-${flavour.name}`,
      controlUser,
      apiGroup: flavour.group,
      apiVersion: flavour.version,
      resources: [flavour.machineConfig.plural],
      ...configs,
      failurePolicy: 'Ignore',
    }),
  ];
}
