import { stringify } from 'yaml';

/**
 * The label that says that a Node's kubelet is running. kwok plays the kubelet of exactly the Nodes that have it: it
 * renews their Lease, makes them Ready, runs and ends their Pods. Take the label away and all of that stops at once, as
 * when a machine goes down: the Lease ages, the controller manager marks the Node Unknown (NotReady) after its grace
 * period, Pods that are deleted stay Terminating. Put it back and the kubelet registers again. A node may change this
 * label on itself (NodeRestriction only guards labels of kubernetes.io and k8s.io).
 */
export const KUBELET_LABEL = 'drydock.dev/lab-kubelet';
export const KUBELET_RUNNING = 'running';

/** On a Pod: kwok leaves it not ready, for tests in which a workload does not come up. */
export const NEVER_READY_LABEL = 'drydock.dev/lab-never-ready';

/** On a Pod: how long it takes to end once it is deleted, as a Go duration (`5s`). At once if it is not given. */
export const TERMINATION_ANNOTATION = 'drydock.dev/lab-termination';

export interface KubeletTiming {
  /** After so many seconds without a sign of a kubelet its Node is NotReady (a real cluster: 40 or 50). */
  readonly graceSeconds: number;
}

/** kwok renews a Lease four times in its duration; the grace period must see several renewals. */
export function leaseSeconds({ graceSeconds }: KubeletTiming): number {
  return Math.max(2, Math.floor(graceSeconds * 0.8));
}

const NOW = '{{ Now | Quote }}';

function conditions(list: Readonly<Record<string, string>>, indent = ''): string {
  return Object.entries(list)
    .map(([type, rest]) => `${indent}- {type: ${type}, lastTransitionTime: ${NOW}, ${rest}}`)
    .join('\n');
}

/**
 * A kubelet that starts, or that was thought dead, reports itself Ready. Only conditions are written: nodeInfo (the boot
 * ID above all), capacity, labels, annotations and spec.unschedulable stay as whoever else wrote them.
 */
const nodeReady = {
  selector: [expression('.status.conditions.[] | select( .type == "Ready" ) | .status', 'NotIn', ['True'])],
  status: `conditions:
${conditions({
  Ready: `status: "True", reason: KubeletReady, message: kubelet is posting ready status, lastHeartbeatTime: ${NOW}`,
  MemoryPressure: `status: "False", reason: KubeletHasSufficientMemory, lastHeartbeatTime: ${NOW}`,
  DiskPressure: `status: "False", reason: KubeletHasNoDiskPressure, lastHeartbeatTime: ${NOW}`,
  PIDPressure: `status: "False", reason: KubeletHasSufficientPID, lastHeartbeatTime: ${NOW}`,
})}
`,
};

const podAlive = expression('.metadata.deletionTimestamp', 'DoesNotExist');

/**
 * Also Pods that the controller manager made not ready while their node was away: their containers run again. They keep
 * their address: a kwok that was started anew does not know which one that is, and the API server refuses a second.
 */
const podReady = {
  selector: [
    podAlive,
    expression('.status.phase', 'In', ['Pending', 'Running']),
    expression('.status.conditions.[] | select( .type == "Ready" ) | .status', 'NotIn', ['True']),
    expression(`.metadata.labels["${NEVER_READY_LABEL}"]`, 'DoesNotExist'),
  ],
  status: `phase: Running
startTime: {{ or .status.startTime Now | Quote }}
conditions:
${conditions({
  PodReadyToStartContainers: 'status: "True"',
  Initialized: 'status: "True"',
  ContainersReady: 'status: "True"',
  Ready: 'status: "True"',
})}
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  ready: true
  started: true
  restartCount: 0
  state: {running: {startedAt: ${NOW}}}
{{ end }}
{{ with NodeIPsWith .spec.nodeName }}
hostIP: {{ index . 0 | Quote }}
{{ end }}
{{ if not .status.podIP }}
{{ with PodIPsWith .spec.nodeName ( or .spec.hostNetwork false ) ( or .metadata.uid "" ) ( or .metadata.name "" ) ( or .metadata.namespace "" ) }}
podIP: {{ index . 0 | Quote }}
podIPs: [{ip: {{ index . 0 | Quote }}}]
{{ end }}
{{ end }}
`,
};

const podNeverReady = {
  selector: [
    podAlive,
    expression('.status.phase', 'In', ['Pending']),
    expression(`.metadata.labels["${NEVER_READY_LABEL}"]`, 'Exists'),
  ],
  status: `phase: Running
startTime: ${NOW}
conditions:
${conditions({ Initialized: 'status: "True"', ContainersReady: 'status: "False"', Ready: 'status: "False"' })}
`,
};

/** A Job's Pod ends well as soon as it runs. */
const podSucceeds = {
  selector: [
    podAlive,
    expression('.status.phase', 'In', ['Running']),
    expression('.metadata.ownerReferences.[].kind', 'In', ['Job']),
  ],
  status: 'phase: Succeeded\n',
};

interface Expression {
  readonly key: string;
  readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
  readonly values?: readonly string[];
}

function expression(key: string, operator: Expression['operator'], values?: readonly string[]): Expression {
  return { key, operator, ...(values === undefined ? {} : { values }) };
}

function stage(name: string, kind: 'Node' | 'Pod', selector: readonly Expression[], play: object): object {
  return {
    apiVersion: 'kwok.x-k8s.io/v1alpha1',
    kind: 'Stage',
    metadata: { name },
    spec: { resourceRef: { apiGroup: 'v1', kind }, selector: { matchExpressions: selector }, ...play },
  };
}

/** kwok's `--config`: what a kubelet of the lab does, as Stage objects. */
export function formatKwokConfig(): string {
  const deleted = [expression('.metadata.deletionTimestamp', 'Exists')];
  const stages = [
    stage('node-ready', 'Node', nodeReady.selector, { next: { statusTemplate: nodeReady.status } }),
    stage('pod-ready', 'Pod', podReady.selector, { next: { statusTemplate: podReady.status } }),
    stage('pod-never-ready', 'Pod', podNeverReady.selector, { next: { statusTemplate: podNeverReady.status } }),
    stage('pod-succeeds', 'Pod', podSucceeds.selector, { next: { statusTemplate: podSucceeds.status } }),
    stage('pod-ends', 'Pod', deleted, {
      delay: {
        durationMilliseconds: 0,
        durationFrom: { expressionFrom: `.metadata.annotations["${TERMINATION_ANNOTATION}"]` },
      },
      next: { delete: true },
    }),
  ];
  return stages.map((object) => stringify(object)).join('---\n');
}

export function kwokArguments(kubeconfig: string, config: string, timing: KubeletTiming): string[] {
  return [
    `--kubeconfig=${kubeconfig}`,
    `--config=${config}`,
    `--manage-nodes-with-label-selector=${KUBELET_LABEL}=${KUBELET_RUNNING}`,
    `--node-lease-duration-seconds=${leaseSeconds(timing)}`,
    '--cidr=10.244.0.0/16',
    '--node-ip=127.0.0.1',
    // At INFO it writes a line for each renewal of each Lease.
    '--v=WARN',
  ];
}
