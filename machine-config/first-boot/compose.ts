import type { ApiFlavour } from '../api/flavour.js';
import type { MachineConfig } from '../api/machine-config.js';
import type { IgnitionConfig, IgnitionFile } from '../ignition/config.js';
import { managedPaths } from '../ignition/validate-paths.js';
import { readSpec, type SpecContent } from '../render/spec.js';
import type { ServedVersion } from './accept.js';
import { bootstrapKubeconfig, type BootstrapIdentity } from './bootstrap-kubeconfig.js';
import { firstBootUnit } from './first-boot-unit.js';
import {
  KUBELET_LAYOUTS,
  MACHINE_CONFIG_FILE,
  NODE_ANNOTATIONS_FILE,
  NODE_ENVIRONMENT_FILE,
  NODE_PACKAGE_FILE,
  type KubeletLayout,
} from './paths.js';
import { fileOf } from './resources.js';
import { writeForVersion, type Written } from './to-version.js';

/** The package of the node worker that a machine fetches. */
export interface Artifact {
  readonly sha256: string;
  /** All that spec 2 can verify by. */
  readonly sha512: string;
}

/** What a first boot needs beside the config of its pool. */
export interface FirstBootInputs {
  readonly flavour: ApiFlavour;
  /** `https://host:port` of the Ignition server, as the machines reach it. */
  readonly server: string;
  /** PEM: the authorities of the server's certificate. */
  readonly serverAuthority: string;
  readonly artifact: Artifact;
  /** Lines `NAME=value`, the settings of the node worker. */
  readonly nodeEnvironment: string;
  readonly kubelet: KubeletLayout;
  readonly bootstrap: BootstrapIdentity;
}

export interface Composed {
  /** Files of the first boot that the pool's config writes itself; its own are served. */
  readonly overridden: readonly string[];
  for(version: ServedVersion): Written;
}

const SECRET = 0o600;
const PUBLIC = 0o644;
/** From here on Ignition itself sets kernel arguments. */
const ARGUMENTS_SINCE = 3;

/**
 * The config with which a machine boots as a node that is done with `config`: what the config says, what makes the node
 * worker take the disk for what it is, the worker itself, and what the kubelet needs to join. A file that the config
 * writes itself is left to it, since the disk must be as the config says.
 *
 * @throws Error when the config cannot be read, which one that was rendered here can.
 */
export function composeFirstBoot(config: MachineConfig, inputs: FirstBootInputs): Composed {
  const content = readSpec(config.spec);
  const [problem] = content.problems;
  if (problem !== undefined) {
    throw new Error(`${config.metadata.name}: ${problem.path}: ${problem.message}; render the pool again`);
  }
  const own = content.config ?? { ignition: { version: '3.5.0' } };
  const taken = new Set(managedPaths(own).map(({ path }) => path));
  const files = [...recordFiles(config, inputs), ...joiningFiles(inputs)];
  return {
    overridden: files.map(({ path }) => path).filter((path) => taken.has(path)),
    for: (version) => {
      const added = [...files.filter(({ path }) => !taken.has(path)), packageFile(inputs, version)];
      const whole = withFirstBoot(own, added, inputs.serverAuthority);
      return writeForVersion({ ...whole, ...kernelArgumentsFor(version, own, content) }, version);
    },
  };
}

/** By which the node worker knows what this disk is. */
function recordFiles(config: MachineConfig, { flavour, nodeEnvironment }: FirstBootInputs): IgnitionFile[] {
  const { apiVersion, kind, metadata, spec } = config;
  const { name } = metadata;
  const { currentConfig, desiredConfig, state } = flavour.annotations;
  const annotations = { [currentConfig]: name, [desiredConfig]: name, [state]: 'Done' };
  const whole = { apiVersion, kind, metadata: { name, annotations: metadata.annotations }, spec };
  return [
    fileOf(NODE_ANNOTATIONS_FILE, `${JSON.stringify(annotations)}\n`, PUBLIC),
    fileOf(MACHINE_CONFIG_FILE, `${JSON.stringify(whole)}\n`, SECRET),
    fileOf(NODE_ENVIRONMENT_FILE, nodeEnvironment, SECRET),
  ];
}

/** By which the kubelet joins the cluster. */
function joiningFiles({ bootstrap, kubelet }: FirstBootInputs): IgnitionFile[] {
  const { kubeconfig, clientCa } = KUBELET_LAYOUTS[kubelet];
  return [
    fileOf(kubeconfig, bootstrapKubeconfig(bootstrap), SECRET),
    fileOf(clientCa, bootstrap.certificateAuthority, PUBLIC),
  ];
}

/** Fetched by Ignition itself, which verifies and retries; the machine needs no other program and no other network. */
function packageFile({ server, artifact }: FirstBootInputs, version: ServedVersion): IgnitionFile {
  const hash = version === '2.2.0' ? `sha512-${artifact.sha512}` : `sha256-${artifact.sha256}`;
  return {
    path: NODE_PACKAGE_FILE,
    mode: SECRET,
    overwrite: true,
    contents: { source: `${server.replace(/\/+$/u, '')}/artifact/${artifact.sha256}`, verification: { hash } },
  };
}

function withFirstBoot(own: IgnitionConfig, files: readonly IgnitionFile[], authority: string): IgnitionConfig {
  const { ignition, storage = {}, systemd = {} } = own;
  const authorities = ignition.security?.tls?.certificateAuthorities ?? [];
  const source = `data:;base64,${Buffer.from(authority).toString('base64')}`;
  return {
    ...own,
    ignition: {
      ...ignition,
      security: { tls: { certificateAuthorities: [...authorities, { source }] } },
    },
    storage: {
      ...storage,
      files: [...(storage.files ?? []).map(overwriting), ...files],
      directories: [...(storage.directories ?? []), { path: '/var/lib/drydock', mode: 0o700 }],
    },
    systemd: { ...systemd, units: [...(systemd.units ?? []), firstBootUnit] },
  };
}

/** A MachineConfig overwrites unless it says otherwise; for Ignition it is the other way round. */
function overwriting(file: IgnitionFile): IgnitionFile {
  return file.contents?.source === undefined ? file : { ...file, overwrite: file.overwrite ?? true };
}

/**
 * Ignition sets those of the MachineConfig with its own, where it can. Where it cannot, the first boot sets the former
 * from the record, with a reboot, and the latter are for nobody to set: then that version is refused.
 */
function kernelArgumentsFor(
  version: ServedVersion,
  own: IgnitionConfig,
  { kernelArguments }: SpecContent,
): Pick<IgnitionConfig, 'kernelArguments'> {
  const [major, minor] = version.split('.').map(Number);
  if (kernelArguments.length === 0 || major !== 3 || (minor ?? 0) < ARGUMENTS_SINCE) return {};
  const shouldExist = [...new Set([...(own.kernelArguments?.shouldExist ?? []), ...kernelArguments])];
  return { kernelArguments: { ...own.kernelArguments, shouldExist } };
}
