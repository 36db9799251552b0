import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { KINDS, type KubernetesObject } from '../../activities/kubernetes/client.js';
import { waitUntil } from '../../dev/processes/wait-until.js';
import { WORKER_UNIT, type RealNode } from '../../dev/real-nodes/real-node.js';
import { CONTROLLER_CONFIG_NAME } from '../../machine-config/api/controller-config.js';
import { apiFlavour } from '../../machine-config/api/flavour.js';
import { file } from '../support/fake-host.js';
import { RealPools } from '../support/real-pools.js';
import { describeRealNodes, useLab } from '../support/real-node.js';

/*
 * A trust bundle and a pull secret on a real machine, by the packaged node worker with the machine's own identity and a
 * control worker with the rights of an installation; the pool is paused all the time, with a config that waits.
 */

const NAME = 'certified';
const BUNDLE = '/etc/pki/trust/ca.pem';
const PULL_SECRET = '/var/lib/kubelet/config.json';
const WAITING = '/etc/waiting';
/** Between a change of a Secret and the file; most of it is the time of a busy machine. */
const SOON_MS = 10_000;
/** Also the time in which a node is let read what it may not read yet. */
const GRANTED_MS = 60_000;
const SECRET = { namespace: 'drydock', name: 'pull-secret' };
const CONFIG_MAP = { namespace: 'drydock', name: 'trust' };

describeRealNodes('certificates on a real machine', () => {
  const lab = useLab();
  const flavour = apiFlavour('openshift');
  const cordons: string[] = [];
  const watching = new AbortController();
  const secrets: string[] = [];
  let pools: RealPools;
  let node: RealNode;
  let before: { bootId: string; boots: number; current: string | undefined };
  const sh = (command: string) => node.succeed(['sh', '-ec', command]);
  const becomes = (path: string, text: string | undefined, timeoutMs = SOON_MS) =>
    waitUntil(async () => (await sh(`cat ${path} 2>/dev/null || echo nothing`)) === (text ?? 'nothing\n'), {
      what: `${path} to be as it should`,
      timeoutMs,
    });
  const nextSecret = () => {
    const text = `{"auths":{"registry.example":{"auth":"${randomUUID()}"}}}`;
    secrets.push(text, Buffer.from(text).toString('base64'));
    return text;
  };
  const dataOf = (text: string) => ({ '.dockerconfigjson': Buffer.from(text).toString('base64') });

  beforeAll(async () => {
    pools = await RealPools.start(lab(), [{ name: NAME }]);
    node = pools.machine(NAME);
    const { current } = await pools.untilUpdated(NAME, '');
    await pools.client.patch(flavour.machineConfigPool, { name: NAME }, { spec: { paused: true } });
    await pools.give(NAME, { storage: { files: [file(WAITING, 'x')] } });
    before = { bootId: await node.bootId(), boots: await node.boots(), current };
    pools.client.watch<KubernetesObject & { spec?: { unschedulable?: boolean } }>(
      KINDS.node,
      {
        onChange: (_, { metadata, spec }) => {
          if (metadata.name === NAME && spec?.unschedulable === true) cordons.push(metadata.resourceVersion ?? '');
        },
      },
      watching.signal,
    );
  }, 600_000);
  afterAll(async () => {
    watching.abort();
    await pools.stop();
  });

  test('are written once they are named', async () => {
    const text = nextSecret();
    await pools.client.create(KINDS.secret, {
      metadata: SECRET,
      type: 'kubernetes.io/dockerconfigjson',
      data: dataOf(text),
    } as KubernetesObject);
    await pools.client.create(KINDS.configMap, {
      metadata: CONFIG_MAP,
      data: { 'ca.pem': 'one\n' },
    } as KubernetesObject);
    await pools.client.create(flavour.controllerConfig, {
      metadata: { name: CONTROLLER_CONFIG_NAME },
      spec: {
        certificates: [
          { configMap: CONFIG_MAP, key: 'ca.pem', path: BUNDLE },
          { secret: SECRET, key: '.dockerconfigjson', path: PULL_SECRET },
        ],
      },
    } as KubernetesObject);
    await becomes(BUNDLE, 'one\n', GRANTED_MS);
    await becomes(PULL_SECRET, text, GRANTED_MS);
    expect(await sh(`stat -c '%a %u:%g %F' ${BUNDLE} ${PULL_SECRET}`)).toBe(
      '644 0:0 regular file\n600 0:0 regular file\n',
    );
  });

  test('follow within seconds', async () => {
    const text = nextSecret();
    await pools.client.patch(KINDS.secret, SECRET, { data: dataOf(text) });
    await becomes(PULL_SECRET, text);
    await pools.client.patch(KINDS.configMap, CONFIG_MAP, { data: { 'ca.pem': 'two\n' } });
    await becomes(BUNDLE, 'two\n');
  });

  test('come back when somebody at the machine changes them, and follow after the worker was away', async () => {
    await sh(`echo spoilt >${BUNDLE}`);
    await becomes(BUNDLE, 'two\n');
    await sh(`systemctl stop ${WORKER_UNIT}`);
    await pools.client.patch(KINDS.configMap, CONFIG_MAP, { data: { 'ca.pem': 'three\n' } });
    await sh(`systemctl start ${WORKER_UNIT}`);
    await becomes(BUNDLE, 'three\n', GRANTED_MS);
  });

  test('go when they are not named any more, and what was there comes back', async () => {
    const certificates = [{ configMap: CONFIG_MAP, key: 'ca.pem', path: '/etc/motd' }];
    const motd = await sh('cat /etc/motd 2>/dev/null || echo nothing');
    await pools.client.patch(flavour.controllerConfig, { name: CONTROLLER_CONFIG_NAME }, { spec: { certificates } });
    await becomes('/etc/motd', 'three\n');
    await becomes(BUNDLE, undefined);
    await becomes(PULL_SECRET, undefined);
    await pools.client.delete(flavour.controllerConfig, { name: CONTROLLER_CONFIG_NAME });
    await becomes('/etc/motd', motd);
    await sh('test ! -e /etc/pki/trust');
  });

  test('cost the node nothing: the same boot, no cordon, the same config, and no secret in the log', async () => {
    expect(await node.bootId()).toBe(before.bootId);
    expect(await node.boots()).toBe(before.boots);
    expect(cordons).toEqual([]);
    expect(await pools.facts(NAME)).toMatchObject({ state: 'Done', current: before.current });
    await sh(`test ! -e ${WAITING}`);
    expect(await pools.target(NAME)).not.toBe(before.current);
    const told = [await node.journal(WORKER_UNIT), JSON.stringify(await pools.client.list(KINDS.event))].join('\n');
    expect(told).toContain('CertificateRestored');
    for (const secret of secrets) expect(told).not.toContain(secret);
  });
});
