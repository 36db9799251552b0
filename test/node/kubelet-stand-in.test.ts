import { beforeAll, expect, test } from 'vitest';
import { waitUntil } from '../../dev/processes/wait-until.js';
import { startRealNodes, type RealNode } from '../../dev/real-nodes/real-node.js';
import { call, getNode } from '../lab/kubernetes-call.js';
import { describeRealNodes, useLab } from '../support/real-node.js';
import { PATIENCE } from '../support/patience.js';

describeRealNodes('the stand-in for the kubelet', () => {
  const lab = useLab();
  let node: RealNode;
  const admin = () => lab().kubernetes.kubeconfigPath;

  beforeAll(async () => {
    const createdAt = new Date('2020-02-03T04:05:06Z');
    const spec = { name: 'real-1', labels: { zone: 'a' }, createdAt };
    [node] = (await startRealNodes(lab(), { worker: false, nodes: [spec] })) as [RealNode];
  });

  test('makes the Node Ready, with the boot ID and the address of its machine', async () => {
    const { metadata, status } = await getNode(admin(), 'real-1');
    expect(metadata).toMatchObject({ creationTimestamp: '2020-02-03T04:05:06Z', labels: { zone: 'a' } });
    expect(status).toMatchObject({
      nodeInfo: { bootID: await node.bootId(), osImage: expect.stringContaining('Debian') as string },
      addresses: [
        { type: 'InternalIP', address: node.address },
        { type: 'Hostname', address: 'real-1' },
      ],
    });
  });

  test('reports the new boot ID after a reboot', async () => {
    const before = (await getNode(admin(), 'real-1')).status.nodeInfo.bootID;
    await node.reboot();
    await node.waitUntilReady();
    expect((await getNode(admin(), 'real-1')).status.nodeInfo.bootID).not.toBe(before);
  });

  test('runs the Pods that are bound to it, and ends those that are deleted', async () => {
    const pods = '/api/v1/namespaces/default/pods';
    const spec = { nodeName: 'real-1', containers: [{ name: 'main', image: 'registry.example/shop:1' }] };
    const account = { metadata: { name: 'default' } };
    await call(admin(), 'POST', '/api/v1/namespaces/default/serviceaccounts', account);
    expect((await call(admin(), 'POST', pods, { metadata: { name: 'web' }, spec })).status).toBe(200);
    await waitUntil(
      async () => {
        const { body } = await call(admin(), 'GET', `${pods}/web`);
        const { status } = body as { status: { phase: string; conditions?: { type: string; status: string }[] } };
        return (
          status.phase === 'Running' && status.conditions?.some((one) => one.type === 'Ready' && one.status === 'True')
        );
      },
      { what: 'the Pod to run', timeoutMs: PATIENCE.timeout },
    );
    await call(admin(), 'DELETE', `${pods}/web`);
    await waitUntil(async () => (await call(admin(), 'GET', `${pods}/web`)).status === 404, {
      what: 'the Pod to be gone',
      timeoutMs: PATIENCE.timeout,
    });
  });

  test('answers health checks, and is NotReady in the cluster when it stops', async () => {
    const health = [
      'bash',
      '-c',
      'exec 3<>/dev/tcp/127.0.0.1/10248; printf "GET /healthz HTTP/1.0\\r\\n\\r\\n" >&3; cat <&3',
    ];
    expect(await node.succeed(health)).toMatch(/200 OK[^]*ok$/);
    await node.succeed(['systemctl', 'stop', 'kubelet.service']);
    await node.waitUntilReady(false);
    expect((await node.exec(health)).code).not.toBe(0);
    await node.succeed(['systemctl', 'start', 'kubelet.service']);
    await node.waitUntilReady();
  });

  test('is broken by a drop-in, and well without it', async () => {
    const folder = '/etc/systemd/system/kubelet.service.d';
    await node.succeed(['mkdir', folder]);
    await node.succeed(['tee', `${folder}/10-broken.conf`], { input: '[Service]\nEnvironment=FAIL=1\n' });
    await node.reboot();
    await node.waitUntilReady(false);
    expect(await node.journal('kubelet.service')).toContain('failed: FAIL=1 is set');
    await node.succeed(['rm', '-r', folder]);
    await node.succeed(['systemctl', 'daemon-reload']);
    await node.succeed(['systemctl', 'restart', 'kubelet.service']);
    await node.waitUntilReady();
  });

  test('is not played by kwok besides: the Node of a machine without power is NotReady', async () => {
    await node.powerLoss();
    await node.waitUntilReady(false);
    await node.powerOn();
    await node.waitUntilUp();
    await node.waitUntilReady();
  });
});
