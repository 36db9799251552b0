import type { ContainerRuntimeSettings } from '../../api/container-runtime-config.js';
import { CONTROLLER_CONFIG_NAME, type ContainerRuntime } from '../../api/controller-config.js';
import type { MachineConfigPool } from '../../api/machine-config-pool.js';
import type { SourceProblem } from '../source.js';

/** The container runtime of a node as its kubelet reports it, `containerd://1.7.27`. */
export interface NodeRuntime {
  readonly node: string;
  readonly pool: string;
  readonly version: string;
}

interface Place {
  readonly chosen: readonly MachineConfigPool[];
  readonly nodes: readonly NodeRuntime[];
}

const REPORTED_AS: Record<ContainerRuntime, string> = { containerd: 'containerd://', crio: 'cri-o://' };

function membersOf({ chosen, nodes }: Place): NodeRuntime[] {
  return nodes.filter(({ pool }) => chosen.some(({ metadata }) => metadata.name === pool));
}

/** containerd 1.x takes what an imported file says of the CRI plugin in place of all that config.toml says of it. */
export function whyNodesCannot(
  { defaultRuntime }: ContainerRuntimeSettings,
  runtime: ContainerRuntime,
  place: Place,
): SourceProblem | undefined {
  if (runtime !== 'containerd' || defaultRuntime === undefined) return undefined;
  const old = membersOf(place).find(({ version }) => /^containerd:\/\/v?[01]\./u.test(version));
  if (old === undefined) return undefined;
  const message = `spec.containerRuntimeConfig.defaultRuntime: node ${old.node} runs ${old.version}, where an imported file replaces all settings of the CRI plugin; update it to containerd 2, or write the runtime into its config.toml`;
  return { reason: 'RuntimeTooOld', message };
}

/** Nodes that run another container runtime than the one that is written for. */
export function runtimeWarnings(runtime: ContainerRuntime, place: Place): string[] {
  const others = membersOf(place).filter(({ version }) => version !== '' && !version.startsWith(REPORTED_AS[runtime]));
  const [first] = others;
  if (first === undefined) return [];
  return [
    `${others.length} of the nodes run something else than ${runtime}, such as ${first.node} with ${first.version}; what is written follows spec.containerRuntime of ControllerConfig ${CONTROLLER_CONFIG_NAME}`,
  ];
}
