import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { KINDS, type KubernetesObject } from '../../activities/kubernetes/client.js';
import { apiFlavour } from '../../machine-config/api/flavour.js';
import type { RealNode } from '../../dev/real-nodes/real-node.js';
import { RealPools } from '../support/real-pools.js';
import { describeRealNodes, useLab } from '../support/real-node.js';

/*
 * A KubeletConfig on a real machine that looks as kubeadm leaves it: its unit drop-in, its files of flags and its
 * configuration are kubeadm's own, the program that they start is the lab's stand-in.
 */

const NAME = 'limited';
const flavour = apiFlavour('openshift');
const CONFIG = 'limits';
const DROP_IN = 'etc/kubernetes/kubelet.conf.d/90-drydock.conf';
const KUBECONFIG = 'etc/kubernetes/kubelet.conf';
const CONFIG_DIR = '--config-dir=/etc/kubernetes/kubelet.conf.d';

const KUBEADM_UNIT = `[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
`;
const flagsFile = (image: string) => `KUBELET_KUBEADM_ARGS="--pod-infra-container-image=${image}"\n`;
const configuration = (maxPods: number) =>
  `apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nmaxPods: ${maxPods}\n`;

describeRealNodes('a KubeletConfig on a machine of kubeadm', () => {
  const lab = useLab();
  let pools: RealPools;
  let node: RealNode;
  let kubeconfig: string;

  const put = (path: string, text: string) =>
    node.succeed(['sh', '-ec', `mkdir -p "$(dirname ${path})"; cat >${path}`], { input: text });
  const onDisk = (path: string) => readFile(join(node.root, path), 'utf8').catch(() => undefined);
  /** As it runs now. */
  const commandLine = async () => {
    const command = 'tr "\\0" " " </proc/$(systemctl show -P MainPID kubelet.service)/cmdline';
    return (await node.succeed(['sh', '-ec', command])).trim().split(' ');
  };
  const reason = async () => {
    const { metadata } = await pools.client.get<KubernetesObject>(KINDS.node, { name: NAME });
    return metadata.annotations?.[flavour.annotations.reason] ?? '';
  };
  /** What kubeadm writes on an upgrade of the node, and the package with it. */
  const kubeadmWrites = async (image: string, maxPods: number) => {
    await put('/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf', `# ${image}\n${KUBEADM_UNIT}`);
    await put('/var/lib/kubelet/kubeadm-flags.env', flagsFile(image));
    await put('/var/lib/kubelet/config.yaml', configuration(maxPods));
    await node.succeed(['systemctl', 'daemon-reload']);
    await node.succeed(['systemctl', 'restart', 'kubelet.service']);
    await node.waitUntilReady();
  };

  beforeAll(async () => {
    pools = await RealPools.start(lab(), [{ name: NAME }]);
    node = pools.machine(NAME);
    await pools.update(NAME, {});
    await put('/etc/default/kubelet', 'KUBELET_EXTRA_ARGS=--node-labels=a=b\n');
    await kubeadmWrites('pause:3.9', 110);
    kubeconfig = (await onDisk(KUBECONFIG))!;
    const labels = { 'test.drydock.dev/pool': NAME };
    await pools.client.patch(flavour.machineConfigPool, { name: NAME }, { metadata: { labels } });
  }, 600_000);
  afterAll(() => pools.stop());

  it('is rolled out, and the kubelet gets its directory beside every flag that it had', async () => {
    const before = await commandLine();
    expect(before).toEqual(expect.arrayContaining(['--config=/var/lib/kubelet/config.yaml', '--node-labels=a=b']));
    const { current = '' } = await pools.facts(NAME);
    await pools.client.create(flavour.kubeletConfig, {
      metadata: { name: CONFIG },
      spec: {
        machineConfigPoolSelector: { matchLabels: { 'test.drydock.dev/pool': NAME } },
        kubeletConfig: { maxPods: 42 },
      },
    } as KubernetesObject);
    await pools.untilUpdated(NAME, current);
    expect(JSON.parse((await onDisk(DROP_IN))!)).toMatchObject({ kind: 'KubeletConfiguration', maxPods: 42 });
    const after = await commandLine();
    expect(after.filter((flag) => !before.includes(flag))).toEqual([CONFIG_DIR]);
    expect(before.filter((flag) => !after.includes(flag))).toEqual([]);
  });

  it('is not in the way of an upgrade by kubeadm, which is no drift', async () => {
    await kubeadmWrites('pause:3.10', 120);
    expect(await commandLine()).toEqual(expect.arrayContaining([CONFIG_DIR, '--pod-infra-container-image=pause:3.10']));
    // What the worker finds when it looks: our own file, spoilt on purpose, and nothing of kubeadm's.
    const ours = (await onDisk(DROP_IN))!;
    await put(`/${DROP_IN}`, 'spoilt\n');
    await pools.until(NAME, 'to have drifted', ({ state }) => state === 'Degraded');
    expect(await reason()).toMatch(/says: \/etc\/kubernetes\/kubelet\.conf\.d\/90-drydock\.conf: [^/]*$/);
    await put(`/${DROP_IN}`, ours);
    await pools.until(NAME, 'to be as it was', ({ state }) => state === 'Done');
  });

  it('goes from the machine with the object, and the kubeconfig was never touched', async () => {
    const { current = '' } = await pools.facts(NAME);
    await pools.client.delete(flavour.kubeletConfig, { name: CONFIG });
    await pools.untilUpdated(NAME, current);
    expect(await onDisk(DROP_IN)).toBeUndefined();
    const line = await commandLine();
    expect(line).not.toContain(CONFIG_DIR);
    expect(line).toEqual(expect.arrayContaining(['--config=/var/lib/kubelet/config.yaml', '--node-labels=a=b']));
    expect(await onDisk(KUBECONFIG)).toBe(kubeconfig);
  });
});
