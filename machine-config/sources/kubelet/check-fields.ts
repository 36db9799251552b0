import type { Problem } from '../../api/parse.js';
import { parseQuantity } from '../quantity.js';
import type { KubeletConfiguration } from './configuration.js';
import { HTTP2_SUITES } from './tls.js';
import { durationSeconds } from './values.js';

/**
 * What the fields of a kubelet's configuration demand of each other. The kubelet does not start where one of these is
 * broken, so that a node would be lost for it. Defaults are the kubelet's.
 */
interface FieldRule {
  readonly path: string;
  readonly isBroken: (fields: KubeletConfiguration) => boolean;
  readonly message: string;
}

const seconds = (text: string | undefined): number => durationSeconds(text ?? '0') ?? 0;
const within = (value: number, least: number, most: number): boolean => value >= least && value <= most;
const enforces = ({ enforceNodeAllocatable = [] }: KubeletConfiguration, ...names: string[]): boolean =>
  enforceNodeAllocatable.some((each) => names.includes(each));
const isSet = (text: string | undefined): boolean => text !== undefined && text !== '';
/** Zero, or at least a second. */
const isGrace = (text: string | undefined): boolean => seconds(text) === 0 || seconds(text) >= 1;

const IMAGE_RULES: readonly FieldRule[] = [
  {
    path: 'imageGCLowThresholdPercent',
    isBroken: ({ imageGCLowThresholdPercent: low = 80, imageGCHighThresholdPercent: high = 85 }) => low >= high,
    message: 'must be less than imageGCHighThresholdPercent (they are 80 and 85 where they are not given)',
  },
  {
    path: 'imageMaximumGCAge',
    isBroken: ({ imageMaximumGCAge: most, imageMinimumGCAge: least = '2m' }) =>
      seconds(most) > 0 && seconds(most) <= seconds(least),
    message: 'must be longer than imageMinimumGCAge (2m where it is not given)',
  },
  {
    path: 'maxParallelImagePulls',
    isBroken: ({ serializeImagePulls = true, maxParallelImagePulls = 1 }) =>
      serializeImagePulls && maxParallelImagePulls > 1,
    message: 'needs serializeImagePulls: false',
  },
  {
    path: 'preloadedImagesVerificationAllowlist',
    isBroken: ({ preloadedImagesVerificationAllowlist: list = [], imagePullCredentialsVerificationPolicy: policy }) =>
      list.length > 0 && policy !== 'NeverVerifyAllowlistedImages',
    message: 'needs imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages',
  },
];

const LIFETIME_RULES: readonly FieldRule[] = [
  {
    path: 'shutdownGracePeriodCriticalPods',
    isBroken: ({ shutdownGracePeriod, shutdownGracePeriodCriticalPods }) =>
      seconds(shutdownGracePeriodCriticalPods) > seconds(shutdownGracePeriod),
    message: 'is part of shutdownGracePeriod and must not be longer',
  },
  {
    path: 'shutdownGracePeriod',
    isBroken: ({ shutdownGracePeriod }) => !isGrace(shutdownGracePeriod),
    message: 'must be zero or at least 1s',
  },
  {
    path: 'shutdownGracePeriodCriticalPods',
    isBroken: ({ shutdownGracePeriodCriticalPods }) => !isGrace(shutdownGracePeriodCriticalPods),
    message: 'must be zero or at least 1s',
  },
  {
    path: 'shutdownGracePeriodByPodPriority',
    isBroken: ({ shutdownGracePeriodByPodPriority: byPriority = [], ...rest }) =>
      byPriority.length > 0 && seconds(rest.shutdownGracePeriod) + seconds(rest.shutdownGracePeriodCriticalPods) > 0,
    message: 'does not go together with shutdownGracePeriod; leave one of them out',
  },
  {
    path: 'crashLoopBackOff.maxContainerRestartPeriod',
    isBroken: ({ crashLoopBackOff: { maxContainerRestartPeriod } = {} }) =>
      maxContainerRestartPeriod !== undefined && !within(seconds(maxContainerRestartPeriod), 1, 300),
    message: 'must be between 1s and 300s',
  },
  {
    path: 'containerLogMonitorInterval',
    isBroken: ({ containerLogMonitorInterval }) =>
      containerLogMonitorInterval !== undefined && seconds(containerLogMonitorInterval) < 3,
    message: 'must be at least 3s',
  },
  {
    path: 'cpuCFSQuotaPeriod',
    isBroken: ({ cpuCFSQuotaPeriod }) =>
      cpuCFSQuotaPeriod !== undefined && !within(seconds(cpuCFSQuotaPeriod), 0.001, 1),
    message: 'must be between 1ms and 1s',
  },
];

const RESERVATION_RULES: readonly FieldRule[] = [
  {
    path: 'enforceNodeAllocatable',
    isBroken: ({ enforceNodeAllocatable: list = [] }) => new Set(list).size < list.length,
    message: 'lists the same value twice',
  },
  {
    path: 'enforceNodeAllocatable',
    isBroken: (fields) => enforces(fields, 'none') && (fields.enforceNodeAllocatable?.length ?? 0) > 1,
    message: 'must hold nothing besides none',
  },
  {
    path: 'enforceNodeAllocatable',
    isBroken: (fields) =>
      (enforces(fields, 'system-reserved') && enforces(fields, 'system-reserved-compressible')) ||
      (enforces(fields, 'kube-reserved') && enforces(fields, 'kube-reserved-compressible')),
    message: 'must not hold both a reservation and its compressible part',
  },
  {
    path: 'enforceNodeAllocatable',
    isBroken: (fields) =>
      enforces(fields, 'system-reserved', 'system-reserved-compressible') && !isSet(fields.systemReservedCgroup),
    message: 'needs systemReservedCgroup with system-reserved',
  },
  {
    path: 'enforceNodeAllocatable',
    isBroken: (fields) =>
      enforces(fields, 'kube-reserved', 'kube-reserved-compressible') && !isSet(fields.kubeReservedCgroup),
    message: 'needs kubeReservedCgroup with kube-reserved',
  },
  {
    path: 'cgroupsPerQOS',
    isBroken: ({ cgroupsPerQOS = true, enforceNodeAllocatable = ['pods'] }) =>
      !cgroupsPerQOS && enforceNodeAllocatable.some((each) => each !== 'none'),
    message: 'must be true unless enforceNodeAllocatable is [none]',
  },
  {
    path: 'reservedSystemCPUs',
    isBroken: ({ reservedSystemCPUs, systemReservedCgroup, kubeReservedCgroup }) =>
      isSet(reservedSystemCPUs) && (isSet(systemReservedCgroup) || isSet(kubeReservedCgroup)),
    message: 'does not go together with systemReservedCgroup and kubeReservedCgroup; leave them out',
  },
  {
    path: 'systemCgroups',
    isBroken: ({ systemCgroups, cgroupRoot }) => isSet(systemCgroups) && !isSet(cgroupRoot),
    message: 'needs cgroupRoot, such as /',
  },
  {
    path: 'systemReservedCgroup',
    isBroken: ({ systemReservedCgroup, systemCgroups }) =>
      isSet(systemReservedCgroup) && isSet(systemCgroups) && systemReservedCgroup !== systemCgroups,
    message: 'must be the same as systemCgroups where both are given',
  },
  {
    path: 'memoryManagerPolicy',
    isBroken: ({ memoryManagerPolicy, reservedMemory = [] }) =>
      memoryManagerPolicy === 'Static' && reservedMemory.length === 0,
    message:
      'needs reservedMemory with Static, which reserves per NUMA node what the other reservations reserve in all',
  },
  {
    path: 'reservedMemory',
    isBroken: ({ reservedMemory = [] }) => {
      const places = reservedMemory.flatMap(({ numaNode, limits }) =>
        Object.keys(limits).map((resource) => `${numaNode} ${resource}`),
      );
      const amounts = reservedMemory.flatMap(({ limits }) => Object.values(limits));
      return new Set(places).size < places.length || amounts.some((amount) => parseQuantity(amount) === 0);
    },
    message: 'must reserve more than zero, and each resource of a NUMA node once',
  },
];

const SERVER_RULES: readonly FieldRule[] = [
  {
    path: 'enableSystemLogQuery',
    isBroken: ({ enableSystemLogQuery = false, enableSystemLogHandler = true }) =>
      enableSystemLogQuery && !enableSystemLogHandler,
    message: 'needs enableSystemLogHandler: true',
  },
  {
    path: 'tlsCipherSuites',
    isBroken: ({ tlsCipherSuites: suites = [], tlsMinVersion }) =>
      suites.length > 0 && tlsMinVersion !== 'VersionTLS13' && !suites.some((suite) => HTTP2_SUITES.includes(suite)),
    message: `must hold ${HTTP2_SUITES.join(' or ')}, without which the kubelet's server (HTTP/2) does not start`,
  },
];

const RULES = [...IMAGE_RULES, ...LIFETIME_RULES, ...RESERVATION_RULES, ...SERVER_RULES];

/** The kubelet evicts by a soft threshold only with a grace period, and does not start where one is missing. */
function softEvictionProblems({ evictionSoft = {}, evictionSoftGracePeriod = {} }: KubeletConfiguration): Problem[] {
  return Object.keys(evictionSoft)
    .filter((signal) => evictionSoftGracePeriod[signal] === undefined)
    .map((signal) => ({
      path: `evictionSoft["${signal}"]`,
      message: `needs a grace period; add evictionSoftGracePeriod: {${signal}: "1m30s"}`,
    }));
}

/** Checks fields that each are right by themselves. The paths begin at the configuration. */
export function checkFields(fields: KubeletConfiguration): Problem[] {
  const broken = RULES.filter(({ isBroken }) => isBroken(fields));
  return [...broken.map(({ path, message }) => ({ path, message })), ...softEvictionProblems(fields)];
}
