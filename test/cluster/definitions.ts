import { afterAll, describe, expect, test } from 'vitest';
import type { KubernetesObject } from '../../activities/kubernetes/client.js';
import type { PoolResource } from '../../activities/cluster/control-dependencies.js';
import { apiFlavour, type ApiFlavour } from '../../machine-config/api/flavour.js';
import type { RealCluster } from '../support/real-cluster.js';

type AnyObject = KubernetesObject & { spec: object };

/** Both flavours are installed; afterwards only openshift is, so that short names such as mcp are nobody else's. */
export function describeDefinitions(cluster: () => RealCluster): void {
  describe('definitions', () => {
    afterAll(async () => {
      await cluster().kubectl('delete', '-f', 'deploy/crds/alauda');
    });
    describe.each(['openshift', 'alauda'] as const)('the API of flavour %s', (name) => {
      const flavour: ApiFlavour = apiFlavour(name);
      const { machineConfig, machineConfigPool, machineConfiguration } = flavour;
      const pool = (spec: object): AnyObject => ({ metadata: { name: 'tried' }, spec });
      const policy = (nodeDisruptionPolicy: object) => ({ spec: { nodeDisruptionPolicy } });
      const changePolicy = (nodeDisruptionPolicy: object) =>
        cluster().admin.patch(machineConfiguration, { name: 'cluster' }, policy(nodeDisruptionPolicy));

      test('has one MachineConfiguration, and its name is cluster', async () => {
        const other: AnyObject = { metadata: { name: 'second' }, spec: { managementState: 'Managed' } };
        await expect(cluster().admin.create(machineConfiguration, other)).rejects.toMatchObject({
          type: 'Invalid',
          message: expect.stringContaining('its name is "cluster"') as string,
        });
      });

      test.each([
        [
          'Reboot beside another action',
          { files: [{ path: '/etc/a', actions: [{ type: 'Reboot' }, { type: 'Drain' }] }] },
          'Reboot can only be the one action',
        ],
        [
          'None beside another action',
          { sshkey: { actions: [{ type: 'None' }, { type: 'DaemonReload' }] } },
          'None can only be the one action',
        ],
        [
          'a Restart that does not say of what',
          { files: [{ path: '/etc/a', actions: [{ type: 'Restart' }] }] },
          'restart is needed with type Restart',
        ],
        [
          'a reload with another type',
          { files: [{ path: '/etc/a', actions: [{ type: 'Drain', reload: { serviceName: 'crio.service' } }] }] },
          'reload is needed with type Reload',
        ],
        [
          'a service that is no unit',
          { files: [{ path: '/etc/a', actions: [{ type: 'Restart', restart: { serviceName: 'crio' } }] }] },
          'serviceName',
        ],
        [
          'an action that does not exist',
          { sshkey: { actions: [{ type: 'Explode' }] } },
          'Unsupported value: "Explode"',
        ],
        [
          'the action Special, which is not for people to ask for',
          { sshkey: { actions: [{ type: 'Special' }] } },
          'Unsupported value: "Special"',
        ],
        [
          'two entries for one path',
          {
            files: [
              { path: '/etc/a', actions: [{ type: 'None' }] },
              { path: '/etc/a', actions: [{ type: 'Reboot' }] },
            ],
          },
          'Duplicate value',
        ],
      ])('refuses a disruption policy with %s', async (_, nodeDisruptionPolicy, message) => {
        await expect(changePolicy(nodeDisruptionPolicy)).rejects.toMatchObject({
          type: 'Invalid',
          message: expect.stringContaining(message) as string,
        });
      });

      test('accepts a disruption policy as people write it', async () => {
        const wanted = {
          files: [
            { path: '/etc/chrony.conf', actions: [{ type: 'Restart', restart: { serviceName: 'chronyd.service' } }] },
          ],
          units: [{ name: 'audit.service', actions: [{ type: 'Drain' }, { type: 'DaemonReload' }] }],
          sshkey: { actions: [{ type: 'None' }] },
        };
        expect(await changePolicy(wanted)).toMatchObject(policy(wanted));
        await cluster().admin.patch(
          machineConfiguration,
          { name: 'cluster' },
          { spec: { nodeDisruptionPolicy: null } },
        );
      });

      test.each([[2], ['30%']])('keeps maxUnavailable %j as it was written', async (maxUnavailable) => {
        const { admin } = cluster();
        await admin.create(machineConfigPool, pool({ maxUnavailable }));
        const stored = await admin.get<PoolResource>(machineConfigPool, { name: 'tried' });
        await admin.delete(machineConfigPool, { name: 'tried' });
        expect(stored.spec.maxUnavailable).toBe(maxUnavailable);
      });

      test.each([
        ['a maxUnavailable that is neither', pool({ maxUnavailable: true }), 'spec.maxUnavailable'],
        ['a paused that is no boolean', pool({ paused: 'yes' }), 'spec.paused'],
        ['an unknown selector operator', pool({ nodeSelector: { matchExpressions: 'all' } }), 'matchExpressions'],
      ])('refuses a pool with %s', async (_, object, field) => {
        await expect(cluster().admin.create(machineConfigPool, object)).rejects.toMatchObject({
          type: 'Invalid',
          message: expect.stringContaining(field) as string,
        });
      });

      test('refuses a MachineConfig whose kernel arguments are no list, and keeps any Ignition', async () => {
        const { admin } = cluster();
        const config = { ignition: { version: '3.4.0' }, storage: { files: [{ path: '/a', mode: 420, odd: [1] }] } };
        const object: AnyObject = { metadata: { name: 'tried' }, spec: { config } };
        expect(await admin.create(machineConfig, object)).toMatchObject({ spec: { config } });
        await admin.delete(machineConfig, object.metadata);
        const wrong: AnyObject = { metadata: { name: 'tried' }, spec: { kernelArguments: 'quiet' } };
        await expect(admin.create(machineConfig, wrong)).rejects.toMatchObject({
          type: 'Invalid',
          message: expect.stringContaining('spec.kernelArguments') as string,
        });
      });

      test('a write of the spec leaves the status, and a write of the status leaves the spec', async () => {
        const { admin } = cluster();
        await admin.create(machineConfigPool, { ...pool({ paused: true }), status: { machineCount: 7 } } as AnyObject);
        const at = { name: 'tried' };
        expect((await admin.get<PoolResource>(machineConfigPool, at)).status).toBeUndefined();
        const both = { spec: { paused: false }, status: { machineCount: 3 } };
        await admin.patch(machineConfigPool, at, both, 'status');
        expect(await admin.get(machineConfigPool, at)).toMatchObject({
          metadata: { generation: 1 },
          spec: { paused: true },
          status: { machineCount: 3 },
        });
        await admin.patch(machineConfigPool, at, { spec: { paused: false }, status: { machineCount: 9 } });
        expect(await admin.get(machineConfigPool, at)).toMatchObject({
          metadata: { generation: 2 },
          spec: { paused: false },
          status: { machineCount: 3 },
        });
        await admin.delete(machineConfigPool, at);
      });
    });
  });
}
