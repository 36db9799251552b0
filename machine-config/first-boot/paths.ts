/** What a first boot finds on its disk; written by Ignition, read by `first-boot.sh` and the node worker. */
export const FIRST_BOOT_FOLDER = '/etc/drydock/first-boot';
/** JSON: the annotations that the Node shall have, as the config that this machine was booted with says. */
export const NODE_ANNOTATIONS_FILE = `${FIRST_BOOT_FOLDER}/node-annotations.json`;
/** JSON: the whole rendered MachineConfig, with what Ignition does not know. */
export const MACHINE_CONFIG_FILE = `${FIRST_BOOT_FOLDER}/machine-config.json`;
/** Settings of the node worker; moved to /etc/drydock/node.env when the first boot is at its end. */
export const NODE_ENVIRONMENT_FILE = `${FIRST_BOOT_FOLDER}/node.env`;
/** What is not kept. */
export const FIRST_BOOT_STATE = '/var/lib/drydock/first-boot';
/** The package of the node worker, as it was fetched. */
export const NODE_PACKAGE_FILE = `${FIRST_BOOT_STATE}/drydock-node.tar.gz`;
export const FIRST_BOOT_UNIT = 'drydock-first-boot.service';

/** Where a kubelet looks for what it bootstraps with, by what installed it. */
export const KUBELET_LAYOUTS = {
  kubeadm: { kubeconfig: '/etc/kubernetes/bootstrap-kubelet.conf', clientCa: '/etc/kubernetes/pki/ca.crt' },
  openshift: { kubeconfig: '/etc/kubernetes/kubeconfig', clientCa: '/etc/kubernetes/kubelet-ca.crt' },
} as const;
export type KubeletLayout = keyof typeof KUBELET_LAYOUTS;
