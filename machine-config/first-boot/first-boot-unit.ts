import type { IgnitionUnit } from '../ignition/config.js';
import { FIRST_BOOT_STATE, FIRST_BOOT_UNIT, NODE_ENVIRONMENT_FILE, NODE_PACKAGE_FILE } from './paths.js';

const UNPACKED = `${FIRST_BOOT_STATE}/package`;
/** Names of the units that run a kubelet, in the distributions that have one. */
const KUBELETS = 'kubelet.service k3s.service k3s-agent.service rke2-server.service rke2-agent.service';

/**
 * Installs the node worker from the package that Ignition fetched, and brings the operating system to the image, the
 * kernel and the arguments of the config, before a kubelet starts: that takes one reboot where any of it differs. It
 * needs no network, and is over when the file of its condition is gone.
 */
export const firstBootUnit: IgnitionUnit = {
  name: FIRST_BOOT_UNIT,
  enabled: true,
  contents: `[Unit]
Description=Drydock: what a machine's first boot needs before its kubelet starts
ConditionPathExists=${NODE_ENVIRONMENT_FILE}
Before=${KUBELETS}
StartLimitIntervalSec=0

[Service]
Type=oneshot
RemainAfterExit=yes
EnvironmentFile=${NODE_ENVIRONMENT_FILE}
ExecStart=/bin/mkdir -p ${UNPACKED}
ExecStart=/bin/tar --extract --gzip --file=${NODE_PACKAGE_FILE} --directory=${UNPACKED} --strip-components=1
ExecStart=/bin/sh ${UNPACKED}/first-boot.sh
SyslogIdentifier=drydock-first-boot
# An image may be several gigabytes, over a slow line.
TimeoutStartSec=infinity
Restart=on-failure
RestartSec=15

[Install]
WantedBy=multi-user.target
`,
};
