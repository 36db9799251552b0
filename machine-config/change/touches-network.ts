/** Folders and files that decide how a host reaches the network, or how its kubelet runs. */
const NETWORK_OR_KUBELET = [
  '/etc/NetworkManager',
  '/etc/nmstate',
  '/etc/netplan',
  '/etc/network',
  '/etc/systemd/network',
  '/etc/systemd/resolved.conf',
  '/etc/systemd/resolved.conf.d',
  '/etc/sysconfig/network-scripts',
  '/etc/resolv.conf',
  '/etc/hosts',
  '/etc/hostname',
  '/etc/nsswitch.conf',
  '/etc/nftables.conf',
  '/etc/nftables',
  '/etc/iptables',
  '/etc/sysconfig/iptables',
  '/etc/sysconfig/nftables.conf',
  '/etc/firewalld',
  '/etc/ufw',
  '/etc/sysctl.conf',
  '/etc/sysctl.d',
  '/etc/modprobe.d',
  '/etc/modules-load.d',
  '/etc/udev',
  '/etc/cni',
  '/etc/openvswitch',
  '/etc/pki/ca-trust',
  '/etc/ssl',
  '/etc/containerd',
  '/etc/crio',
  '/etc/containers',
  '/etc/kubernetes',
  '/etc/rancher',
  '/etc/default/kubelet',
  '/etc/sysconfig/kubelet',
  '/var/lib/kubelet',
  '/var/lib/rancher',
];

export interface TouchedByUpdate {
  readonly paths: readonly string[];
  /** By name; also those of which only a drop-in or the enablement changes. */
  readonly units: readonly string[];
  /** Kernel arguments, kernel, extensions or the image change. */
  readonly operatingSystem: boolean;
}

/**
 * Whether an update may cut its node off. A unit may do anything, and so may another kernel: both count. Files count by
 * where they are, so that a message of the day is never blamed for an API server that is away.
 */
export function touchesNetworkOrKubelet({ paths, units, operatingSystem }: TouchedByUpdate): boolean {
  if (operatingSystem || units.length > 0) return true;
  return paths.some((path) => NETWORK_OR_KUBELET.some((place) => path === place || path.startsWith(`${place}/`)));
}
