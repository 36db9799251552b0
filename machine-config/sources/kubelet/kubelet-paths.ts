import type { NodeFlavour } from '../../api/controller-config.js';

/** Where generated settings of the kubelet go. */
export const KUBELET_PATHS = {
  /** OpenShift: the whole configuration. With kubeadm this is the kubelet's kubeconfig, and never ours. */
  openshiftConfig: '/etc/kubernetes/kubelet.conf',
  openshiftSizing: '/etc/node-sizing-enabled.env',
  openshiftLogging: '/etc/systemd/system/kubelet.service.d/20-logging.conf',
  /** kubeadm: a directory of drop-ins over the configuration that kubeadm writes. */
  dropInDirectory: '/etc/kubernetes/kubelet.conf.d',
  dropIn: '/etc/kubernetes/kubelet.conf.d/90-drydock.conf',
} as const;

/** The file that KubeletConfigs are merged into. */
export const configPath = (flavour: NodeFlavour): string =>
  flavour === 'openshift' ? KUBELET_PATHS.openshiftConfig : KUBELET_PATHS.dropIn;

/**
 * A drop-in of kubelet.service that adds the directory. kubeadm's own drop-in, 10-kubeadm.conf, starts the kubelet with
 * four variables. Of these only KUBELET_CONFIG_ARGS is set here, again with what kubeadm gives it: the flags in
 * /var/lib/kubelet/kubeadm-flags.env and what an administrator put into KUBELET_EXTRA_ARGS stay, and so does ExecStart.
 * Drop-ins are read by name whatever directory they are in, so this one comes after kubeadm's.
 */
export const CONFIG_DIR_UNIT = {
  name: 'kubelet.service',
  dropins: [
    {
      name: '90-drydock-config-dir.conf',
      contents: [
        "# Adds a directory to the configuration that kubeadm's 10-kubeadm.conf names; everything else there stays.",
        '[Service]',
        `Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml --config-dir=${KUBELET_PATHS.dropInDirectory}"`,
        '',
      ].join('\n'),
    },
  ],
};
