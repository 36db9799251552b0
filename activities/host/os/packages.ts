/** The packages that make up each extension of Red Hat's CoreOS. */
const EXTENSIONS: Readonly<Record<string, readonly string[]>> = {
  'two-node-ha': ['pacemaker', 'pcs', 'fence-agents-all'],
  ipsec: ['NetworkManager-libreswan', 'libreswan', 'openvswitch3.5-ipsec'],
  usbguard: ['usbguard'],
  kerberos: ['krb5-workstation', 'libkadm5'],
  'kernel-devel': ['kernel-devel', 'kernel-headers'],
  'sandboxed-containers': ['kata-containers'],
  sysstat: ['sysstat'],
};

/** What is taken out of the image to make room for another kernel. */
export const DEFAULT_KERNEL_PACKAGES = [
  'kernel',
  'kernel-core',
  'kernel-modules',
  'kernel-modules-core',
  'kernel-modules-extra',
];

const KERNELS: Readonly<Record<string, readonly string[]>> = {
  realtime: [
    'kernel-rt-core',
    'kernel-rt-modules',
    'kernel-rt-modules-core',
    'kernel-rt-modules-extra',
    'kernel-rt-kvm',
  ],
  '64k-pages': ['kernel-64k-core', 'kernel-64k-modules', 'kernel-64k-modules-core', 'kernel-64k-modules-extra'],
};

export function packagesOfExtensions(extensions: readonly string[]): string[] {
  return [...new Set(extensions.flatMap((extension) => EXTENSIONS[extension] ?? []))];
}

export function unknownExtensions(extensions: readonly string[]): string[] {
  return extensions.filter((extension) => !Object.hasOwn(EXTENSIONS, extension));
}

/** The extensions of which every package is there. */
export function extensionsOfPackages(packages: readonly string[]): string[] {
  return Object.entries(EXTENSIONS)
    .filter(([, needed]) => needed.every((name) => packages.includes(name)))
    .map(([extension]) => extension);
}

/** Empty for the default kernel. */
export function packagesOfKernel(kernelType: string): readonly string[] {
  return KERNELS[kernelType] ?? [];
}

export function kernelOfPackages(packages: readonly string[]): string {
  return Object.entries(KERNELS).find(([, [core = '']]) => packages.includes(core))?.[0] ?? 'default';
}
