import {
  CONTROLLER_CONFIG_NAME,
  containerRuntimeOf,
  nodeFlavourOf,
  type ContainerRuntime,
  type ControllerConfig,
  type NodeFlavour,
} from '../../machine-config/api/controller-config.js';
import { nameSome } from '../../machine-config/pool/sentences.js';
import { ok, problem, warning, type DoctorFinding } from './findings.js';

/** What is looked at of a node that some pool selects. */
export interface ExaminedNode {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** As the kubelet reports it, `containerd://1.7.27`. */
  readonly containerRuntimeVersion?: string | undefined;
  /** Version of its node worker; absent: none has registered. */
  readonly worker?: string | undefined;
}

/** What kubeadm writes on every Node that it joins to a cluster. */
const KUBEADM_ANNOTATION = 'kubeadm.alpha.kubernetes.io/cri-socket';
/** What an OpenShift node says of its operating system. */
const OPENSHIFT_LABEL = 'node.openshift.io/os_id';
const RUNTIME_PREFIX: Readonly<Record<string, ContainerRuntime>> = { 'containerd:': 'containerd', 'cri-o:': 'crio' };

/** How a node was set up, where it tells. */
function flavourOf({ labels, annotations }: ExaminedNode): NodeFlavour | undefined {
  if (OPENSHIFT_LABEL in labels) return 'openshift';
  return KUBEADM_ANNOTATION in annotations ? 'kubeadm' : undefined;
}

function runtimeOf({ containerRuntimeVersion = '' }: ExaminedNode): ContainerRuntime | undefined {
  return RUNTIME_PREFIX[containerRuntimeVersion.split('//')[0] ?? ''];
}

interface Setting<T extends string> {
  readonly check: string;
  readonly field: string;
  readonly said: T;
  readonly found: (node: ExaminedNode) => T | undefined;
}

/** A setting that follows another sort of nodes writes files that nobody reads, or that break what reads them. */
function compare<T extends string>(nodes: readonly ExaminedNode[], setting: Setting<T>): DoctorFinding {
  const { check, field, said, found } = setting;
  const others = nodes.flatMap((node) => {
    const is = found(node);
    return is === undefined || is === said ? [] : [{ name: node.name, is }];
  });
  const [first] = others;
  if (first === undefined) return ok(check, `The nodes are as ${field} of the ControllerConfig says: ${said}`);
  const names = nameSome(others.map(({ name }) => name));
  const what = `${field} of ControllerConfig ${CONTROLLER_CONFIG_NAME} is ${said}, but ${names} look like ${first.is}`;
  return others.length === nodes.length
    ? problem(check, `${what}: set ${field}: ${first.is}, or what is generated for them has no effect`)
    : warning(check, `${what}: what is generated for those has no effect`);
}

/** Whether the nodes are what the ControllerConfig takes them for. */
export function examineSettings(
  nodes: readonly ExaminedNode[],
  controllerConfig: Pick<ControllerConfig, 'spec'> | undefined,
): DoctorFinding[] {
  return [
    compare(nodes, {
      check: 'node flavour',
      field: 'spec.nodeFlavour',
      said: nodeFlavourOf(controllerConfig),
      found: flavourOf,
    }),
    compare(nodes, {
      check: 'container runtime',
      field: 'spec.containerRuntime',
      said: containerRuntimeOf(controllerConfig),
      found: runtimeOf,
    }),
  ];
}

/** Whether each node has a node worker, and all of them the same. */
export function examineWorkers(nodes: readonly ExaminedNode[]): DoctorFinding[] {
  const check = 'node workers';
  const without = nodes.filter(({ worker }) => worker === undefined).map(({ name }) => name);
  const versions = [...new Set(nodes.flatMap(({ worker }) => worker ?? []))].sort();
  const findings: DoctorFinding[] = [];
  if (without.length > 0) {
    const sentence = `No node worker has registered on ${nameSome(without)}, so nothing is changed there: install drydock-node, and look at its log`;
    findings.push(warning(check, sentence));
  }
  if (versions.length > 1) {
    findings.push(warning(check, `The node workers are of versions ${nameSome(versions)}: upgrade the older ones`));
  }
  if (findings.length > 0) return findings;
  return [ok(check, nodes.length === 0 ? 'No pool has a node yet' : `All ${nodes.length} nodes have one`)];
}
