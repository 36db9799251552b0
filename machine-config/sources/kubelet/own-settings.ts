import type { NodeFlavour } from '../../api/controller-config.js';
import { parseKubeletConfig, parseStrictly, type Problem } from '../../api/parse.js';
import type { KubeletConfigSpec } from '../../api/kubelet-config.js';
import { isRecord } from '../../ignition/findings.js';
import { kubeletConfigurationSchema, type KubeletConfiguration } from './configuration.js';
import { tlsSettings } from './tls.js';

/** What one KubeletConfig says by itself. */
export interface OwnSettings {
  /** Without apiVersion and kind; the TLS profile and, on kubeadm nodes, the log level are in it. */
  readonly fields: KubeletConfiguration;
  readonly logLevel?: number;
  readonly autoSizing?: boolean;
  readonly problems: readonly Problem[];
}

const FIELDS = 'spec.kubeletConfig';

/** Reads and checks a KubeletConfig without knowing its pools. Never throws. */
export function readOwnSettings(object: unknown, flavour: NodeFlavour): OwnSettings {
  const parsed = parseKubeletConfig(object);
  if (!parsed.ok) return { fields: {}, problems: parsed.problems };
  const { kubeletConfig, logLevel, autoSizingReserved, tlsSecurityProfile } = parsed.value.spec;
  const read = parseStrictly(kubeletConfigurationSchema, kubeletConfig ?? {});
  if (!read.ok) return { fields: {}, problems: read.problems.map(below) };
  const written = withoutType(read.value);
  const tls = tlsSettings(tlsSecurityProfile);
  const fields: KubeletConfiguration = { ...written, ...tls.settings };
  const isVerbose = flavour === 'kubeadm' && logLevel !== undefined;
  return {
    fields: isVerbose ? { ...fields, logging: { ...fields.logging, verbosity: logLevel } } : fields,
    ...(logLevel === undefined ? {} : { logLevel }),
    ...(autoSizingReserved === undefined ? {} : { autoSizing: autoSizingReserved }),
    problems: [
      ...tls.problems,
      ...twiceSaid(written, parsed.value.spec, flavour),
      ...belongToCluster(written, flavour),
      ...sizingProblems(written, autoSizingReserved, flavour),
    ],
  };
}

function withoutType(configuration: KubeletConfiguration): KubeletConfiguration {
  const fields = { ...configuration };
  delete fields.apiVersion;
  delete fields.kind;
  return fields;
}

/** A problem of the kubelet's fields, as a problem of the object that carries them. */
export function below({ path, message }: Problem): Problem {
  return { path: path === '' ? FIELDS : path.startsWith('[') ? `${FIELDS}${path}` : `${FIELDS}.${path}`, message };
}

function twiceSaid(written: KubeletConfiguration, spec: KubeletConfigSpec, flavour: NodeFlavour): Problem[] {
  const problems: Problem[] = [];
  const { tlsSecurityProfile, logLevel } = spec;
  if (tlsSecurityProfile && (written.tlsMinVersion !== undefined || written.tlsCipherSuites !== undefined)) {
    const message = 'says what kubeletConfig.tlsMinVersion and tlsCipherSuites say too; leave one of the two out';
    problems.push({ path: 'spec.tlsSecurityProfile', message });
  }
  if (flavour === 'kubeadm' && logLevel !== undefined && written.logging?.verbosity !== undefined) {
    const message = 'says what kubeletConfig.logging.verbosity says too; leave one of the two out';
    problems.push({ path: 'spec.logLevel', message });
  }
  return problems;
}

/** What a field says that is not the empty value of its type. */
function isGiven(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0;
  if (isRecord(value)) return Object.keys(value).length > 0;
  return value !== undefined && value !== '';
}

/** Fields that one setting of the whole cluster decides, not the kubelets of a pool. */
function belongToCluster(fields: KubeletConfiguration, flavour: NodeFlavour): Problem[] {
  const owner = flavour === 'kubeadm' ? 'kubeadm keeps it in the ConfigMap kubelet-config' : 'the cluster sets it';
  const always = {
    cgroupDriver: fields.cgroupDriver,
    clusterDNS: fields.clusterDNS,
    clusterDomain: fields.clusterDomain,
  };
  // With kubeadm nothing else sets these, so there they are a pool's to set.
  const onOpenShift = {
    featureGates: fields.featureGates,
    failSwapOn: fields.failSwapOn,
    'memorySwap.swapBehavior': fields.memorySwap?.swapBehavior,
  };
  return Object.entries({ ...always, ...(flavour === 'openshift' ? onOpenShift : {}) })
    .filter(([, value]) => isGiven(value))
    .map(([path]) => below({ path, message: `may not be set here: ${owner}, the same for all nodes; leave it out` }));
}

function sizingProblems(
  { systemReserved }: KubeletConfiguration,
  autoSizing: boolean | undefined,
  flavour: NodeFlavour,
): Problem[] {
  if (autoSizing !== true) return [];
  if (flavour === 'kubeadm') {
    const message =
      'needs the sizing service of OpenShift nodes, which nodes of kubeadm do not have; write kubeletConfig.systemReserved';
    return [{ path: 'spec.autoSizingReserved', message }];
  }
  if (!isGiven(systemReserved)) return [];
  const message = 'does not go together with autoSizingReserved: true, which works it out; leave one of the two out';
  return [below({ path: 'systemReserved', message })];
}
