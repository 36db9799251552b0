import { z } from 'zod';
import { isCipherSuite, TLS_VERSIONS } from './tls.js';
import {
  address,
  cpuSet,
  goDuration,
  mapOf,
  minimumReclaim,
  port,
  portOrOff,
  quantity,
  threshold,
  wholePercentage,
} from './values.js';

/**
 * KubeletConfiguration of kubelet.config.k8s.io/v1beta1, as Kubernetes 1.34 to 1.36 know it: names, types and what may
 * stand in a field by itself. What fields demand of each other is in check-fields.ts.
 */
export const KUBELET_API_VERSION = 'kubelet.config.k8s.io/v1beta1';

const flag = z.boolean();
const text = z.string();
const count = z.int32().min(0);
const texts = z.array(text);
const options = z.record(text, text);

const cipherSuite = text.refine(isCipherSuite, {
  error: 'is no cipher suite that the kubelet knows; write a name such as TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256',
});

/** What the kubelet watches to evict pods in time. */
export const EVICTION_SIGNALS = [
  'memory.available',
  'nodefs.available',
  'nodefs.inodesFree',
  'imagefs.available',
  'imagefs.inodesFree',
  'containerfs.available',
  'containerfs.inodesFree',
  'allocatableMemory.available',
  'pid.available',
] as const;
const reserved = mapOf(['cpu', 'memory', 'ephemeral-storage', 'pid'], quantity);

const taint = z.strictObject({
  key: text.min(1, { error: 'must not be empty' }),
  value: text.exactOptional(),
  effect: z.enum(['NoSchedule', 'PreferNoSchedule', 'NoExecute']),
});

const verbosity = z.int().min(0).max(2_147_483_647);
const outputRouting = z.strictObject({ splitStream: flag.exactOptional(), infoBufferSize: quantity.exactOptional() });
const logging = z.strictObject({
  format: z.enum(['', 'text', 'json']).exactOptional(),
  flushFrequency: z
    .union([goDuration, z.int().min(0)], { error: 'must be a duration such as "5s", or nanoseconds as a number' })
    .exactOptional(),
  verbosity: verbosity.exactOptional(),
  vmodule: z.array(z.strictObject({ filePattern: text.min(1), verbosity })).exactOptional(),
  options: z.strictObject({ text: outputRouting.exactOptional(), json: outputRouting.exactOptional() }).exactOptional(),
});

const authentication = z.strictObject({
  x509: z.strictObject({ clientCAFile: text.exactOptional() }).exactOptional(),
  webhook: z.strictObject({ enabled: flag.exactOptional(), cacheTTL: goDuration.exactOptional() }).exactOptional(),
  anonymous: z.strictObject({ enabled: flag.exactOptional() }).exactOptional(),
});
const authorization = z.strictObject({
  mode: z.enum(['AlwaysAllow', 'Webhook']).exactOptional(),
  webhook: z
    .strictObject({ cacheAuthorizedTTL: goDuration.exactOptional(), cacheUnauthorizedTTL: goDuration.exactOptional() })
    .exactOptional(),
});

/** How a node presents itself, and what it serves. */
const serverFields = {
  enableServer: flag,
  address,
  port,
  readOnlyPort: portOrOff,
  tlsCertFile: text,
  tlsPrivateKeyFile: text,
  tlsCipherSuites: z.array(cipherSuite),
  tlsCurvePreferences: z.array(z.int32()),
  tlsMinVersion: z.enum(['', ...TLS_VERSIONS]),
  rotateCertificates: flag,
  serverTLSBootstrap: flag,
  authentication,
  authorization,
  enableDebuggingHandlers: flag,
  enableContentionProfiling: flag,
  enableProfilingHandler: flag,
  enableDebugFlagsHandler: flag,
  enableSystemLogHandler: flag,
  enableSystemLogQuery: flag,
  healthzPort: portOrOff,
  healthzBindAddress: address,
  streamingConnectionIdleTimeout: goDuration,
  showHiddenMetricsForVersion: text.regex(/^(?:\d+\.\d+)?$/u, { error: 'must be a version such as 1.34' }),
  logging,
  tracing: z.strictObject({
    endpoint: text.exactOptional(),
    samplingRatePerMillion: z.int32().min(0).max(1_000_000).exactOptional(),
  }),
  registerNode: flag,
  registerWithTaints: z.array(taint),
  nodeStatusUpdateFrequency: goDuration,
  nodeStatusReportFrequency: goDuration,
  nodeStatusMaxImages: z.int32().min(-1),
  nodeLeaseDurationSeconds: z.int32().min(1),
  providerID: text,
  featureGates: z.record(text, flag),
};

/** Where pods come from, and how many there may be. */
const podFields = {
  staticPodPath: text,
  staticPodURL: text,
  staticPodURLHeader: z.record(text, texts),
  podLogsDir: text.regex(/^(?:\/|(?:\/[!-.0-~]+)+)$/u, { error: 'must be an absolute path of ASCII characters' }),
  podCIDR: text,
  maxPods: count,
  podsPerCore: count,
  podPidsLimit: z.int(),
  clusterDomain: text,
  clusterDNS: z.array(address),
  resolvConf: text,
  hairpinMode: z.enum(['hairpin-veth', 'promiscuous-bridge', 'none']),
  enableControllerAttachDetach: flag,
  makeIPTablesUtilChains: flag,
  iptablesMasqueradeBit: z.int32().min(0).max(31),
  iptablesDropBit: z.int32().min(0).max(31),
  allowedUnsafeSysctls: texts,
  seccompDefault: flag,
  volumePluginDir: text,
  volumeStatsAggPeriod: goDuration,
  localStorageCapacityIsolation: flag,
  configMapAndSecretChangeDetectionStrategy: z.enum(['Get', 'Cache', 'Watch']),
  crashLoopBackOff: z.strictObject({ maxContainerRestartPeriod: goDuration.exactOptional() }),
  userNamespaces: z.strictObject({
    idsPerPod: z
      .int()
      .min(65_536)
      .max(4_294_967_295)
      .multipleOf(65_536, { error: 'must be a multiple of 65536' })
      .exactOptional(),
  }),
  runOnce: z.literal(false, { error: 'is not supported by the kubelet any more; leave it out' }),
};

/** What it asks of the API server and of the container runtime, and how often. */
const runtimeFields = {
  containerRuntimeEndpoint: text,
  imageServiceEndpoint: text,
  runtimeRequestTimeout: goDuration,
  syncFrequency: goDuration,
  fileCheckFrequency: goDuration,
  httpCheckFrequency: goDuration,
  registryPullQPS: count,
  registryBurst: count,
  serializeImagePulls: flag,
  maxParallelImagePulls: z.int32().min(1),
  imagePullCredentialsVerificationPolicy: z.enum([
    'NeverVerify',
    'NeverVerifyPreloadedImages',
    'NeverVerifyAllowlistedImages',
    'AlwaysVerify',
  ]),
  preloadedImagesVerificationAllowlist: texts,
  eventRecordQPS: count,
  eventBurst: count,
  kubeAPIQPS: count,
  kubeAPIBurst: count,
  contentType: text,
  imageMinimumGCAge: goDuration,
  imageMaximumGCAge: goDuration,
  imageGCHighThresholdPercent: z.int32().min(0).max(100),
  imageGCLowThresholdPercent: z.int32().min(0).max(100),
  containerLogMaxSize: quantity,
  containerLogMaxFiles: z.int32().min(2),
  containerLogMaxWorkers: z.int32().min(1),
  containerLogMonitorInterval: goDuration,
  maxOpenFiles: z.int().min(0),
};

/** How the node's resources are shared between pods, the system and the kubelet. */
const resourceFields = {
  cgroupDriver: z.enum(['cgroupfs', 'systemd']),
  cgroupRoot: text,
  cgroupsPerQOS: flag,
  kubeletCgroups: text,
  systemCgroups: text,
  failCgroupV1: flag,
  cpuManagerPolicy: z.enum(['none', 'static']),
  cpuManagerPolicyOptions: options,
  cpuManagerReconcilePeriod: goDuration,
  singleProcessOOMKill: flag,
  memoryManagerPolicy: z.enum(['None', 'Static']),
  memoryReservationPolicy: z.enum(['None', 'TieredReservation']),
  memoryThrottlingFactor: z
    .number()
    .gt(0, { error: 'must be greater than 0' })
    .max(1, { error: 'must not be greater than 1' }),
  topologyManagerPolicy: z.enum(['none', 'best-effort', 'restricted', 'single-numa-node']),
  topologyManagerScope: z.enum(['container', 'pod']),
  topologyManagerPolicyOptions: options,
  qosReserved: mapOf(['memory'], wholePercentage),
  cpuCFSQuota: flag,
  cpuCFSQuotaPeriod: goDuration,
  oomScoreAdj: z.int32().min(-1000).max(1000),
  systemReserved: reserved,
  kubeReserved: reserved,
  reservedSystemCPUs: cpuSet,
  systemReservedCgroup: text,
  kubeReservedCgroup: text,
  enforceNodeAllocatable: z.array(
    z.enum([
      'none',
      'pods',
      'system-reserved',
      'system-reserved-compressible',
      'kube-reserved',
      'kube-reserved-compressible',
    ]),
  ),
  reservedMemory: z.array(
    z.strictObject({
      numaNode: count,
      limits: z.record(
        text.regex(/^(?:memory|hugepages-.+)$/u, { error: 'must be memory or hugepages-SIZE' }),
        quantity,
      ),
    }),
  ),
  evictionHard: mapOf(EVICTION_SIGNALS, threshold),
  evictionSoft: mapOf(EVICTION_SIGNALS, threshold),
  evictionSoftGracePeriod: mapOf(EVICTION_SIGNALS, goDuration),
  evictionPressureTransitionPeriod: goDuration,
  evictionMaxPodGracePeriod: z.int32(),
  evictionMinimumReclaim: mapOf(EVICTION_SIGNALS, minimumReclaim),
  mergeDefaultEvictionSettings: flag,
  protectKernelDefaults: flag,
  kernelMemcgNotification: flag,
  failSwapOn: flag,
  memorySwap: z.strictObject({ swapBehavior: z.enum(['', 'NoSwap', 'LimitedSwap']).exactOptional() }),
  shutdownGracePeriod: goDuration,
  shutdownGracePeriodCriticalPods: goDuration,
  shutdownGracePeriodByPodPriority: z.array(
    z.strictObject({ priority: z.int32(), shutdownGracePeriodSeconds: z.int().min(0) }),
  ),
};

/** Strict, every field optional: what stands in one is what differs from the kubelet's present configuration. */
export const kubeletConfigurationSchema = z
  .strictObject({
    apiVersion: z.literal(KUBELET_API_VERSION),
    kind: z.literal('KubeletConfiguration'),
    ...serverFields,
    ...podFields,
    ...runtimeFields,
    ...resourceFields,
  })
  .partial();
export type KubeletConfiguration = z.infer<typeof kubeletConfigurationSchema>;
