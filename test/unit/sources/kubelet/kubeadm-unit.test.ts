import { describe, expect, it } from 'vitest';
import type { MachineConfig } from '../../../../machine-config/api/machine-config.js';
import { fileIn } from '../../../../machine-config/sources/kubelet/present-files.js';
import { DROP_IN, generate, kubeletConfig } from './kubelet-inputs.js';

/** What kubeadm's package brings as /usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf, without its comments. */
const KUBEADM = `[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/sysconfig/kubelet
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
`;
const PACKAGE = '[Service]\nExecStart=/usr/bin/kubelet\nRestart=always\n';
const FLAGS = {
  '/var/lib/kubelet/kubeadm-flags.env':
    'KUBELET_KUBEADM_ARGS="--container-runtime-endpoint=unix:///run/containerd/containerd.sock"',
  '/etc/sysconfig/kubelet': 'KUBELET_EXTRA_ARGS=--node-ip=10.0.0.7',
};
/** Every file that kubeadm init, join and upgrade node write, or its package brings. */
const KUBEADM_WRITES = [
  '/etc/kubernetes/kubelet.conf',
  '/etc/kubernetes/bootstrap-kubelet.conf',
  '/var/lib/kubelet/config.yaml',
  '/var/lib/kubelet/instance-config.yaml',
  '/var/lib/kubelet/kubeadm-flags.env',
  '/usr/lib/systemd/system/kubelet.service',
  '/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf',
  '/etc/systemd/system/kubelet.service',
  '/etc/systemd/system/kubelet.service.d/10-kubeadm.conf',
];

const unquoted = (text: string): string => text.replace(/^"(.*)"$/u, '$1');

/**
 * The command line that systemd would start: drop-ins by name wherever they are, of variables the last one, those of
 * files over all others, an empty ExecStart takes the earlier ones back.
 */
function commandLine(
  service: string,
  dropIns: Readonly<Record<string, string>>,
  files: Readonly<Record<string, string>>,
): string {
  const texts = [
    service,
    ...Object.keys(dropIns)
      .toSorted()
      .map((name) => dropIns[name]!),
  ];
  const lines = texts.flatMap((text) => text.split('\n')).filter((line) => !/^\s*(?:[#;[]|$)/u.test(line));
  const environment = new Map<string, string>();
  const fromFiles = new Map<string, string>();
  let start: string[] = [];
  const assign = (target: Map<string, string>, text: string) => {
    const [, name, value] = /^(\w+)=(.*)$/su.exec(text)!;
    target.set(name!, unquoted(value!));
  };
  for (const line of lines) {
    const [, key, value] = /^(\w+)=(.*)$/u.exec(line)!;
    if (key === 'Environment') assign(environment, unquoted(value!));
    if (key === 'EnvironmentFile') {
      const text = files[value!.replace(/^-/u, '')];
      if (text !== undefined) assign(fromFiles, text);
    }
    if (key === 'ExecStart') start = value === '' ? [] : [...start, value!];
  }
  const variables = new Map([...environment, ...fromFiles]);
  expect(start).toHaveLength(1);
  return start[0]!.replaceAll(/\$(\w+)/gu, (_, name: string) => variables.get(name) ?? '');
}

function dropInOf(config: MachineConfig): { name: string; contents: string } {
  const { systemd } = config.spec!.config as {
    systemd: { units: { name: string; dropins: { name: string; contents: string }[] }[] };
  };
  expect(systemd.units.map(({ name }) => name)).toEqual(['kubelet.service']);
  return systemd.units[0]!.dropins[0]!;
}

describe('the kubelet unit on nodes of kubeadm', () => {
  const config = generate({ kubeletConfigs: [kubeletConfig('one', { maxPods: 9 })] })[0]!.configs[0]!;
  const ours = dropInOf(config);
  const before = commandLine(PACKAGE, { '10-kubeadm.conf': KUBEADM }, FLAGS);
  const after = commandLine(PACKAGE, { '10-kubeadm.conf': KUBEADM, [ours.name]: ours.contents }, FLAGS);

  it('gets the directory of the drop-in, and every flag that it had', () => {
    const added = after.split(' ').filter((flag) => !before.split(' ').includes(flag));
    expect(added).toEqual(['--config-dir=/etc/kubernetes/kubelet.conf.d']);
    for (const flag of before.split(' ')) expect(after.split(' ')).toContain(flag);
    expect(DROP_IN.startsWith('/etc/kubernetes/kubelet.conf.d/')).toBe(true);
    expect(fileIn(config, DROP_IN)?.text).toContain('KubeletConfiguration');
  });

  it('keeps what an administrator and kubeadm change later', () => {
    const files = { ...FLAGS, '/etc/sysconfig/kubelet': 'KUBELET_EXTRA_ARGS=--v=6' };
    const line = commandLine(PACKAGE, { '10-kubeadm.conf': KUBEADM, [ours.name]: ours.contents }, files);
    expect(line).toContain('--v=6');
    expect(line).not.toContain('--node-ip');
  });

  it('is in no file that kubeadm writes, so an upgrade of the node is no drift', () => {
    const { storage } = config.spec!.config as { storage: { files: { path: string }[] } };
    const written = [...storage.files.map((file) => file.path), `/etc/systemd/system/kubelet.service.d/${ours.name}`];
    expect(written.filter((file) => KUBEADM_WRITES.includes(file))).toEqual([]);
  });
});
