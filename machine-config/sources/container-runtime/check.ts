import type { ContainerRuntimeSettings } from '../../api/container-runtime-config.js';
import type { ContainerRuntime } from '../../api/controller-config.js';
import type { Problem } from '../../api/parse.js';
import { quote } from '../../ignition/findings.js';
import { parseQuantity } from '../quantity.js';

const LOG_LEVELS = ['error', 'fatal', 'panic', 'warn', 'info', 'debug', 'trace'];
/** Fewer processes, and no container starts. */
const MIN_PIDS = 20;
/** What CRI-O reads of a log at once; a smaller log could not be read back. */
const LOG_READ_BYTES = 8192;
/** Sizes as containers-storage reads them: other units of Kubernetes it does not know. */
const STORAGE_SIZE = /^\d+(\.\d+)?[kMGTP]?i?$/u;

const SETTINGS = 'spec.containerRuntimeConfig';
type Field = keyof ContainerRuntimeSettings;

/**
 * What is wrong with the settings of a ContainerRuntimeConfig, for nodes with that container runtime. Beyond its schema:
 * limits that only code can check, and what the runtime has no setting for.
 */
export function checkContainerRuntime(settings: ContainerRuntimeSettings, runtime: ContainerRuntime): Problem[] {
  const checks: Partial<Record<Field, string | undefined>> = {
    pidsLimit: pidsProblem(settings.pidsLimit),
    logLevel: logLevelProblem(settings.logLevel),
    logSizeMax: logSizeProblem(settings.logSizeMax),
    overlaySize: overlayProblem(settings.overlaySize),
  };
  const wrong = Object.entries(checks).flatMap(([field, message]) =>
    message === undefined ? [] : [{ path: `${SETTINGS}.${field}`, message }],
  );
  return runtime === 'containerd' ? [...wrong, ...beyondContainerd(settings)] : wrong;
}

function pidsProblem(limit: number | undefined): string | undefined {
  if (limit === undefined || limit === 0 || limit >= MIN_PIDS) return undefined;
  return `${limit} is too few processes for a container to start; write at least ${MIN_PIDS}, or 0 for no limit`;
}

function logLevelProblem(level: string | undefined): string | undefined {
  if (level === undefined || level === '' || LOG_LEVELS.includes(level)) return undefined;
  return `${quote(level)} is no log level; write one of ${LOG_LEVELS.join(', ')}`;
}

function logSizeProblem(size: string | number | undefined): string | undefined {
  if (size === undefined) return undefined;
  const bytes = parseQuantity(String(size));
  if (bytes === undefined) return `${quote(size)} is no quantity; write a size such as 50Mi`;
  if (bytes > 0 && bytes <= LOG_READ_BYTES) {
    return `${quote(size)} is not more than the ${LOG_READ_BYTES} bytes that are read at once; write a larger size, such as 50Mi`;
  }
  return undefined;
}

function overlayProblem(size: string | number | undefined): string | undefined {
  if (size === undefined) return undefined;
  const bytes = parseQuantity(String(size));
  if (bytes === undefined) return `${quote(size)} is no quantity; write a size such as 10Gi`;
  if (bytes < 0) return `${quote(size)} is less than nothing; write a size such as 10Gi, or 0 for no limit`;
  if (bytes > 0 && !STORAGE_SIZE.test(String(size))) {
    return `${quote(size)} is a unit that storage.conf does not know; write it with k, M, G, T, P, Ki, Mi, Gi, Ti or Pi`;
  }
  return undefined;
}

/** Why containerd cannot do it, and who can. */
const NOT_IN_CONTAINERD: Partial<Record<Field, string>> = {
  pidsLimit: 'containerd limits no processes by itself; set podPidsLimit in a KubeletConfig',
  logSizeMax: 'with containerd the kubelet cuts logs; set containerLogMaxSize in a KubeletConfig',
  overlaySize:
    'the overlayfs of containerd has no size for a container; set limits of ephemeral-storage in pods, or a quota of the file system',
  additionalLayerStores: 'only CRI-O has stores besides its own; leave it out',
  additionalImageStores: 'only CRI-O has stores besides its own; leave it out',
  additionalArtifactStores: 'only CRI-O has stores besides its own; leave it out',
};

/** A limit of 0 asks for what containerd does anyway. */
function beyondContainerd(settings: ContainerRuntimeSettings): Problem[] {
  return Object.entries(NOT_IN_CONTAINERD)
    .filter(([field]) => {
      const value = settings[field as Field];
      return value !== undefined && (typeof value === 'object' || (parseQuantity(String(value)) ?? 1) > 0);
    })
    .map(([field, message]) => ({ path: `${SETTINGS}.${field}`, message }));
}
