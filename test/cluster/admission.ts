import { beforeAll, describe, expect, test, vi } from 'vitest';
import { KINDS, type KubernetesClient } from '../../activities/kubernetes/client.js';
import { failedWith } from '../../activities/kubernetes/failures.js';
import type { NodeResource, PoolResource } from '../../activities/cluster/control-dependencies.js';
import { install } from '../../client/install.js';
import {
  apiFlavour,
  DRYDOCK_ANNOTATIONS,
  EMPTY_CONFIG_NAME,
  type FlavourName,
} from '../../machine-config/api/flavour.js';
import { WAITING_TAINT } from '../../machine-config/pool/facts.js';
import { DEFAULT_STARTUP_TAINT } from '../../machine-config/pool/startup-taint.js';
import type { RealCluster, RealControl } from '../support/real-cluster.js';
import { PATIENCE } from '../support/patience.js';

const A = DRYDOCK_ANNOTATIONS;
const ADMIN = 'drydock-lab-admin';

type Annotations = Record<string, string | null>;

/** What the admission policies of an installation let whom write, on the real API server, in one flavour. */
export function describeAdmission(
  cluster: () => RealCluster,
  control: () => RealControl,
  flavourName: FlavourName,
): void {
  const POOL = `guarded-${flavourName}`;
  const NODE = `${POOL}-1`;
  const TARGET = `rendered-${POOL}-${'a'.repeat(32)}`;
  const flavour = apiFlavour(flavourName);

  describe(`admission, in the flavour ${flavourName}`, () => {
    let worker: KubernetesClient;
    let node: KubernetesClient;
    let granted: string[];

    const onNode = (client: KubernetesClient, annotations: Annotations, more: object = {}) =>
      client.patch<NodeResource>(KINDS.node, { name: NODE }, { metadata: { annotations }, ...more });
    const onPool = (client: KubernetesClient, annotations: Annotations) =>
      client.patch(flavour.machineConfigPool, { name: POOL }, { metadata: { annotations } });
    const refusal = (...parts: readonly string[]) => ({
      message: expect.stringMatching(
        new RegExp(parts.map((part) => part.replace(/[.*+?^${}()|[\]\\]/gu, String.raw`\$&`)).join('.*'), 'u'),
      ) as string,
    });

    beforeAll(async () => {
      await install({ client: cluster().admin, flavour });
      await cluster().admin.create<PoolResource>(flavour.machineConfigPool, {
        metadata: { name: POOL },
        spec: { paused: true, machineConfigSelector: {}, nodeSelector: { matchLabels: { [POOL]: '' } } },
      });
      await cluster().kubernetes.createNodes([{ name: NODE, labels: { [POOL]: '' } }]);
      worker = control().dependencies.client;
      node = await cluster().asNode(NODE);
      const { currentConfig, state } = flavour.annotations;
      await onNode(node, { [A.worker]: '0.1.0', [currentConfig]: EMPTY_CONFIG_NAME, [state]: 'Done' });
      granted = [flavour.annotations.desiredConfig, A.forceGranted, A.noDrain, A.gatesPassed];
      // The API server acts on a new policy a moment later. What slipped through is no change when it is written again.
      let attempt = 0;
      await vi.waitFor(
        () =>
          expect(
            onNode(cluster().admin, { [flavour.annotations.desiredConfig]: `${TARGET}${(attempt += 1)}` }),
          ).rejects.toBeInstanceOf(Error),
        { ...PATIENCE, interval: 200 },
      );
    });

    test('grants are written by the control worker alone', async () => {
      for (const key of granted) {
        for (const [who, client] of [[ADMIN, cluster().admin] as const, [`system:node:${NODE}`, node] as const]) {
          await expect(onNode(client, { [key]: TARGET }), `${key} by ${who}`).rejects.toMatchObject(
            refusal(
              `Node ${NODE}: ${key} is written by the control worker of Drydock alone, not by ${who}`,
              'drydock node',
            ),
          );
        }
        await expect(onNode(worker, { [key]: TARGET }), key).resolves.toBeDefined();
      }
    });

    test('neither do they pass with a status', async () => {
      const patch = { metadata: { annotations: { [granted[0]!]: `${TARGET}b` } } };
      await expect(node.patch(KINDS.node, { name: NODE }, patch, 'status')).rejects.toMatchObject(
        refusal('written by'),
      );
      const status = { status: { nodeInfo: { bootID: 'another' } } };
      await expect(node.patch(KINDS.node, { name: NODE }, status, 'status')).resolves.toBeDefined();
    });

    test('a node takes back of its grant what is done, and keeps what it was granted', async () => {
      const { desiredConfig } = flavour.annotations;
      await onNode(worker, { [A.forceGranted]: 'boot', [A.noDrain]: TARGET, [desiredConfig]: TARGET });
      await expect(onNode(node, { [A.forceGranted]: null, [A.noDrain]: null })).resolves.toBeDefined();
      await expect(onNode(node, { [desiredConfig]: null })).rejects.toMatchObject(refusal(desiredConfig));
      await expect(onNode(node, { [A.gatesPassed]: null })).rejects.toMatchObject(refusal(A.gatesPassed));
    });

    test('what people say is said by people, and a node removes only what it has done', async () => {
      for (const key of [A.hold, A.release, A.retry]) {
        await expect(onNode(node, { [key]: 'x' }), key).rejects.toMatchObject(
          refusal(`Node ${NODE}: ${key} is written by people, not by the node itself`),
        );
        await expect(onNode(cluster().admin, { [key]: 'x' }), key).resolves.toBeDefined();
      }
      await expect(onNode(node, { [A.hold]: null })).rejects.toMatchObject(refusal(A.hold));
      await expect(onNode(node, { [A.release]: null, [A.retry]: null })).resolves.toBeDefined();
      await expect(onNode(cluster().admin, { [A.hold]: null })).resolves.toBeDefined();
    });

    test('a node goes on writing its own state and cordon', async () => {
      const mine = { [flavour.annotations.state]: 'Working', [A.cordonedFor]: TARGET };
      await expect(onNode(node, mine, { spec: { unschedulable: true } })).resolves.toBeDefined();
      const done = { [flavour.annotations.state]: 'Done', [A.cordonedFor]: null };
      await expect(onNode(node, done, { spec: { unschedulable: null } })).resolves.toBeDefined();
    });

    test('the control worker writes nothing of a Node but grants and its taint', async () => {
      // The controllers put taints on and take them off in their own time, such as that of a cordon; theirs stay.
      const startup = { key: DEFAULT_STARTUP_TAINT, effect: 'NoSchedule' };
      const ours = [WAITING_TAINT.key, startup.key];
      const taints = async (...more: object[]) => {
        const { metadata, spec } = await cluster().node(NODE);
        const theirs = (spec?.taints ?? []).filter(({ key }) => !ours.includes(key));
        return { resourceVersion: metadata.resourceVersion, spec: { taints: [...theirs, ...more] } };
      };
      // Read and written again where one of theirs came or went in between; any other refusal is one.
      const isAllowed = async (annotations: Annotations, ...more: object[]): Promise<void> => {
        const { resourceVersion, spec } = await taints(...more);
        try {
          await worker.patch(KINDS.node, { name: NODE }, { metadata: { resourceVersion, annotations }, spec });
        } catch (error) {
          if (!failedWith(error, 'Conflict')) throw error;
          await isAllowed(annotations, ...more);
        }
      };
      await isAllowed({}, WAITING_TAINT);
      await isAllowed({});
      // The taint that a node came with it takes off, and never puts on.
      await cluster().admin.patch(KINDS.node, { name: NODE }, { spec: (await taints(startup)).spec });
      await isAllowed({ [A.gatesPassed]: TARGET }, startup);
      await isAllowed({});
      const evil = { key: WAITING_TAINT.key, effect: 'NoExecute' };
      const refused: [what: string, annotations: Annotations, more: object][] = [
        ['taints of others', {}, { spec: (await taints(evil)).spec }],
        ['taints of others', {}, { spec: (await taints(startup)).spec }],
        ['taints of others', {}, { spec: (await taints({ key: 'other', effect: 'NoSchedule' })).spec }],
        ['spec.unschedulable', {}, { spec: { unschedulable: true } }],
        ['annotations of others', { [A.hold]: 'x' }, {}],
        ['annotations of others', { [A.worker]: null }, {}],
        ['annotations of others', { [flavour.annotations.currentConfig]: TARGET }, {}],
      ];
      for (const [what, annotations, more] of refused) {
        await expect(
          onNode(worker, annotations, more),
          JSON.stringify(annotations) + JSON.stringify(more),
        ).rejects.toMatchObject(refusal(`Node ${NODE}: the control worker of Drydock may not change ${what}`));
      }
      const labels = { metadata: { labels: { 'node-role.kubernetes.io/control-plane': '' } } };
      await expect(worker.patch(KINDS.node, { name: NODE }, labels)).rejects.toMatchObject(
        refusal('may not change labels'),
      );
      expect((await cluster().node(NODE)).spec?.unschedulable).not.toBe(true);
    });

    test('an approval is by whoever writes it', async () => {
      const approval = JSON.stringify({ config: TARGET, stages: ['canary'] });
      const { admin } = cluster();
      const wrong = refusal(
        `MachineConfigPool ${POOL}: ${A.approvedBy} must be ${ADMIN}`,
        `drydock rollout approve ${POOL}`,
      );
      await expect(onPool(admin, { [A.approval]: approval })).rejects.toMatchObject(wrong);
      await expect(onPool(admin, { [A.approval]: approval, [A.approvedBy]: 'somebody' })).rejects.toMatchObject(wrong);
      await expect(onPool(admin, { [A.approval]: approval, [A.approvedBy]: ADMIN })).resolves.toBeDefined();
      await expect(onPool(admin, { [A.approvedBy]: 'somebody' })).rejects.toMatchObject(wrong);
      await expect(onPool(worker, { [A.approval]: `${approval} ` })).rejects.toMatchObject(refusal(A.approvedBy));
      await expect(onPool(admin, { [A.resume]: '2026-01-01T00:00:00Z', [A.runNow]: TARGET })).resolves.toBeDefined();
      await expect(onPool(admin, { [A.approval]: null, [A.approvedBy]: null })).resolves.toBeDefined();
    });

    test('what the control worker remembers on a pool is its own', async () => {
      for (const key of [A.lastGrant, A.rolledBackFrom]) {
        await expect(onPool(cluster().admin, { [key]: 'x' }), key).rejects.toMatchObject(
          refusal(
            `MachineConfigPool ${POOL}: ${key} is written by the control worker of Drydock alone, not by ${ADMIN}`,
          ),
        );
        await expect(onPool(worker, { [key]: '{}' }), key).resolves.toBeDefined();
        await expect(onPool(worker, { [key]: null }), key).resolves.toBeDefined();
      }
    });
  });
}
