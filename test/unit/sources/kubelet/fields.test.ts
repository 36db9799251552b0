import { describe, expect, it } from 'vitest';
import { DROP_IN, fieldsIn, generate, kubeletConfig, refusalOf, WHOLE, written } from './kubelet-inputs.js';

const openshift = {
  nodeFlavour: 'openshift',
  machineConfigs: [written('01-worker-kubelet', 'worker', WHOLE, 'kind: KubeletConfiguration\n')],
} as const;

const GOOD: Record<string, object> = {
  'nothing at all': {},
  'its own type': { apiVersion: 'kubelet.config.k8s.io/v1beta1', kind: 'KubeletConfiguration', maxPods: 110 },
  numbers: {
    maxPods: 250,
    podsPerCore: 0,
    podPidsLimit: -1,
    kubeAPIQPS: 50,
    kubeAPIBurst: 100,
    nodeStatusMaxImages: -1,
  },
  durations: {
    syncFrequency: '1m0s',
    imageMinimumGCAge: '1.5h',
    runtimeRequestTimeout: '0',
    fileCheckFrequency: '500ms',
  },
  quantities: { systemReserved: { cpu: '500m', memory: '1Gi', pid: '1000', 'ephemeral-storage': '1e9' } },
  'log rotation': { containerLogMaxSize: '50Mi', containerLogMaxFiles: 5, containerLogMonitorInterval: '10s' },
  'soft eviction': {
    evictionSoft: { 'memory.available': '500Mi', 'nodefs.inodesFree': '5%' },
    evictionSoftGracePeriod: { 'memory.available': '1m30s', 'nodefs.inodesFree': '2m' },
    evictionHard: { 'memory.available': '0%', 'pid.available': '100%' },
    evictionMinimumReclaim: { 'memory.available': '0' },
  },
  TLS: { tlsMinVersion: 'VersionTLS12', tlsCipherSuites: ['TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256'] },
  'TLS 1.3 alone': { tlsMinVersion: 'VersionTLS13', tlsCipherSuites: ['TLS_AES_256_GCM_SHA384'] },
  'resource managers': {
    cpuManagerPolicy: 'static',
    reservedSystemCPUs: '0-3,8',
    topologyManagerPolicy: 'single-numa-node',
    memoryManagerPolicy: 'Static',
    reservedMemory: [{ numaNode: 0, limits: { memory: '1Gi', 'hugepages-2Mi': '64Mi' } }],
  },
  shutdown: { shutdownGracePeriod: '60s', shutdownGracePeriodCriticalPods: '10s' },
  'image pulls': { serializeImagePulls: false, maxParallelImagePulls: 5 },
  enforcement: { enforceNodeAllocatable: ['pods', 'system-reserved'], systemReservedCgroup: '/system.slice' },
  taints: { registerWithTaints: [{ key: 'node.example.com/new', effect: 'NoSchedule' }] },
  logging: {
    logging: { format: 'json', verbosity: 4, flushFrequency: '5s', vmodule: [{ filePattern: 'x', verbosity: 9 }] },
  },
  'fields of newer kubelets': { tlsCurvePreferences: [29], memoryReservationPolicy: 'TieredReservation' },
  'nulls, which are nothing': { maxPods: null, evictionSoft: null },
  'gates and swap, which nothing else sets with kubeadm': {
    featureGates: { CPUManagerPolicyAlphaOptions: true },
    failSwapOn: false,
    memorySwap: { swapBehavior: 'LimitedSwap' },
  },
  'no static pods on workers': { staticPodPath: '' },
};

/** Fields, and what is said of them; the path begins at spec.kubeletConfig. */
const BAD: readonly (readonly [object, RegExp])[] = [
  // Names
  [{ maxPod: 10 }, /^spec\.kubeletConfig\.maxPod: unknown key; did you mean "maxPods"\?$/],
  [{ MaxPods: 10 }, /^spec\.kubeletConfig\.MaxPods: unknown key; did you mean "maxPods"\?$/],
  [{ evictionHard: { 'memory.availabel': '1Gi' } }, /memory\.availabel.*did you mean "memory\.available"/],
  [{ systemReserved: { storage: '1Gi' } }, /systemReserved\.storage: unknown key/],
  [{ kind: 'KubeletConfig' }, /kind: expected "KubeletConfiguration"/],
  // Types
  [{ maxPods: '250' }, /maxPods: expected a number, found the string "250"/],
  [{ maxPods: 2.5 }, /maxPods: expected an integer, found 2\.5/],
  [{ maxPods: 2 ** 31 }, /maxPods: /],
  [{ maxPods: -1 }, /maxPods: /],
  [{ protectKernelDefaults: 'true' }, /protectKernelDefaults: expected true or false/],
  [{ allowedUnsafeSysctls: 'net.core.somaxconn' }, /allowedUnsafeSysctls: expected a list/],
  [{ authentication: { anonymous: true } }, /authentication\.anonymous: expected an object/],
  [{ featureGates: { A: 'true' } }, /featureGates\.A: expected true or false/],
  [{ oomScoreAdj: 1001 }, /oomScoreAdj: /],
  [{ port: 0 }, /port: /],
  [{ address: 'localhost' }, /address: must be an IP address/],
  [{ topologyManagerPolicy: 'numa' }, /topologyManagerPolicy: expected "none", "best-effort"/],
  [{ userNamespaces: { idsPerPod: 70_000 } }, /idsPerPod: must be a multiple of 65536/],
  [{ podLogsDir: 'var/log' }, /podLogsDir: must be an absolute path/],
  [{ runOnce: true }, /runOnce: /],
  // Durations
  [{ syncFrequency: 60 }, /syncFrequency: must be a duration such as "10s"|syncFrequency: expected a string/],
  [{ syncFrequency: '60' }, /syncFrequency: must be a duration/],
  [{ syncFrequency: '1d' }, /syncFrequency: must be a duration.*hours are the largest unit/],
  [{ syncFrequency: '-1s' }, /syncFrequency: must not be negative/],
  // Quantities
  [{ systemReserved: { memory: 1 } }, /systemReserved\.memory: /],
  [{ systemReserved: { memory: '1GB' } }, /systemReserved\.memory: must be a quantity/],
  [{ kubeReserved: { cpu: '-1' } }, /kubeReserved\.cpu: must not be negative/],
  [{ containerLogMaxSize: '10 Mi' }, /containerLogMaxSize: must be a quantity/],
  [{ qosReserved: { memory: '50' } }, /qosReserved\.memory: must be a whole percentage/],
  [{ reservedSystemCPUs: '3-0' }, /reservedSystemCPUs: must be a list of processors/],
  // TLS
  [{ tlsMinVersion: 'TLS12' }, /tlsMinVersion: expected .*"VersionTLS12"/],
  [
    { tlsCipherSuites: ['ECDHE-RSA-AES128-GCM-SHA256'] },
    /tlsCipherSuites\[0\]: is no cipher suite that the kubelet knows/,
  ],
  [{ tlsCipherSuites: ['TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384'] }, /tlsCipherSuites: must hold .*HTTP\/2/],
  // Eviction
  [{ evictionSoft: { 'memory.available': '1Gi' } }, /evictionSoft\["memory\.available"\]: needs a grace period/],
  [
    { evictionSoft: { 'memory.available': '1Gi' }, evictionSoftGracePeriod: { 'nodefs.available': '1m' } },
    /evictionSoft\["memory\.available"\]: needs a grace period/,
  ],
  [{ evictionSoftGracePeriod: { 'memory.available': '90' } }, /memory\.available.*: must be a duration/],
  [{ evictionHard: { 'memory.available': '101%' } }, /memory\.available.*: must be a positive quantity/],
  [{ evictionHard: { 'memory.available': '0' } }, /memory\.available.*: must be a positive quantity/],
  // Fields that do not go together
  [{ imageGCHighThresholdPercent: 70 }, /imageGCLowThresholdPercent: must be less/],
  [{ imageMaximumGCAge: '1m' }, /imageMaximumGCAge: must be longer than imageMinimumGCAge/],
  [{ maxParallelImagePulls: 5 }, /maxParallelImagePulls: needs serializeImagePulls: false/],
  [{ shutdownGracePeriodCriticalPods: '10s' }, /shutdownGracePeriodCriticalPods: is part of shutdownGracePeriod/],
  [{ shutdownGracePeriod: '500ms' }, /shutdownGracePeriod: must be zero or at least 1s/],
  [
    {
      shutdownGracePeriod: '10s',
      shutdownGracePeriodByPodPriority: [{ priority: 0, shutdownGracePeriodSeconds: 10 }],
    },
    /shutdownGracePeriodByPodPriority: does not go together/,
  ],
  [{ enforceNodeAllocatable: ['pods', 'pods'] }, /enforceNodeAllocatable: lists the same value twice/],
  [{ enforceNodeAllocatable: ['none', 'pods'] }, /enforceNodeAllocatable: must hold nothing besides none/],
  [{ enforceNodeAllocatable: ['system-reserved'] }, /enforceNodeAllocatable: needs systemReservedCgroup/],
  [{ enforceNodeAllocatable: ['kube-reserved'] }, /enforceNodeAllocatable: needs kubeReservedCgroup/],
  [
    { enforceNodeAllocatable: ['kube-reserved', 'kube-reserved-compressible'], kubeReservedCgroup: '/k' },
    /enforceNodeAllocatable: must not hold both/,
  ],
  [{ cgroupsPerQOS: false }, /cgroupsPerQOS: must be true/],
  [{ reservedSystemCPUs: '0', kubeReservedCgroup: '/k' }, /reservedSystemCPUs: does not go together/],
  [{ systemCgroups: '/system.slice' }, /systemCgroups: needs cgroupRoot/],
  [{ systemCgroups: '/a', cgroupRoot: '/', systemReservedCgroup: '/b' }, /systemReservedCgroup: must be the same/],
  [{ memoryManagerPolicy: 'Static' }, /memoryManagerPolicy: needs reservedMemory/],
  [{ reservedMemory: [{ numaNode: 0, limits: { memory: '0' } }] }, /reservedMemory: must reserve more than zero/],
  [{ reservedMemory: [{ numaNode: 0, limits: { cpu: '1' } }] }, /reservedMemory\[0\]\.limits/],
  [{ enableSystemLogQuery: true, enableSystemLogHandler: false }, /enableSystemLogQuery: needs/],
  [{ containerLogMonitorInterval: '1s' }, /containerLogMonitorInterval: must be at least 3s/],
  [{ cpuCFSQuotaPeriod: '2s' }, /cpuCFSQuotaPeriod: must be between/],
  [{ crashLoopBackOff: { maxContainerRestartPeriod: '10m' } }, /maxContainerRestartPeriod: must be between/],
  [{ preloadedImagesVerificationAllowlist: ['a'] }, /preloadedImagesVerificationAllowlist: needs/],
  // What is the cluster's
  [{ cgroupDriver: 'systemd' }, /cgroupDriver: may not be set here: kubeadm keeps it in the ConfigMap kubelet-config/],
  [{ clusterDNS: ['10.96.0.10'] }, /clusterDNS: may not be set here/],
  [{ clusterDomain: 'cluster.local' }, /clusterDomain: may not be set here/],
  [{ staticPodPath: '/etc/kubernetes/manifests' }, /staticPodPath: may only be set to ""/],
];

describe('the fields of a KubeletConfig', () => {
  it.each(Object.entries(GOOD))('accepts %s', (_name, fields) => {
    expect(refusalOf(fields)).toBeUndefined();
  });

  it.each(BAD)('refuses %j', (fields, message) => {
    const refusal = refusalOf(fields);
    expect(refusal).toMatch(message);
    expect(refusal).toMatch(/^spec\.kubeletConfig[.[]/);
    expect(refusal).not.toContain('\n');
  });

  it('names the first of several, and where the others are', () => {
    expect(refusalOf({ maxPods: 'x', syncFrequency: '1d' })).toMatch(
      /^spec\.kubeletConfig\.maxPods: .* \(and 1 more: spec\.kubeletConfig\.syncFrequency\)$/,
    );
  });

  it.each([
    [{ logLevel: 11 }, /^spec\.logLevel: /],
    [{ logLevel: -1 }, /^spec\.logLevel: /],
    [{ autoSizingReserved: true }, /^spec\.autoSizingReserved: needs the sizing service/],
    [{ tlsSecurityProfile: { type: 'Custom' } }, /^spec\.tlsSecurityProfile\.custom: is missing/],
    [
      { tlsSecurityProfile: { type: 'Custom', custom: { ciphers: ['ECDHE-RSA-AES128-GCM-SHA256', 'AES'] } } },
      /^spec\.tlsSecurityProfile\.custom\.ciphers\[1\]: is no cipher suite/,
    ],
  ] as const)('refuses spec %j', (spec, message) => {
    expect(refusalOf({}, spec as object)).toMatch(message);
  });

  it('refuses what is said twice', () => {
    expect(refusalOf({ tlsMinVersion: 'VersionTLS12' }, { tlsSecurityProfile: { type: 'Old' } })).toMatch(/leave one/);
    expect(refusalOf({ logging: { verbosity: 3 } }, { logLevel: 3 })).toMatch(/^spec\.logLevel: .*leave one/);
  });

  it.each([
    [{ featureGates: { A: true } }, /featureGates: may not be set here/],
    [{ failSwapOn: false }, /failSwapOn: may not be set here/],
    [{ memorySwap: { swapBehavior: 'NoSwap' } }, /memorySwap\.swapBehavior: may not be set here/],
    [{ cgroupDriver: 'systemd' }, /cgroupDriver: may not be set here/],
  ])('refuses %j on OpenShift nodes', (fields, message) => {
    expect(refusalOf(fields, {}, openshift)).toMatch(message);
  });

  it('accepts empty values of what may not be set', () => {
    expect(refusalOf({ featureGates: {}, clusterDNS: [], clusterDomain: '' }, {}, openshift)).toBeUndefined();
    expect(refusalOf({ memorySwap: { swapBehavior: '' } }, {}, openshift)).toBeUndefined();
  });

  it('refuses a reservation beside one that is worked out', () => {
    const refusal = refusalOf({ systemReserved: { memory: '1Gi' } }, { autoSizingReserved: true }, openshift);
    expect(refusal).toMatch(/^spec\.kubeletConfig\.systemReserved: does not go together with autoSizingReserved/);
  });

  it.each([
    ['Old', 'VersionTLS10', 21],
    ['Intermediate', 'VersionTLS12', 9],
    ['Modern', 'VersionTLS13', 3],
  ] as const)('writes out the TLS profile %s', (type, tlsMinVersion, suites) => {
    const [result] = generate({ kubeletConfigs: [kubeletConfig('tls', {}, { tlsSecurityProfile: { type } })] });
    const fields = fieldsIn(result?.configs[0], DROP_IN) as { tlsMinVersion: string; tlsCipherSuites: string[] };
    expect(fields.tlsMinVersion).toBe(tlsMinVersion);
    expect(fields.tlsCipherSuites).toHaveLength(suites);
  });

  it('translates the OpenSSL names of a custom TLS profile', () => {
    const custom = { ciphers: ['ECDHE-RSA-AES128-GCM-SHA256'], minTLSVersion: 'VersionTLS11' as const };
    const tlsSecurityProfile = { type: 'Custom' as const, custom };
    const [result] = generate({ kubeletConfigs: [kubeletConfig('tls', {}, { tlsSecurityProfile })] });
    expect(fieldsIn(result?.configs[0])).toMatchObject({
      tlsMinVersion: 'VersionTLS11',
      tlsCipherSuites: ['TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256'],
    });
  });
});
