import { beforeAll, describe, expect, test, vi } from 'vitest';
import type { KubernetesObject } from '../../activities/kubernetes/client.js';
import { renderPool } from '../../machine-config/render/render-pool.js';
import type { RealCluster } from '../support/real-cluster.js';
import { PATIENCE } from '../support/patience.js';

/** What the policy on MachineConfigs refuses, without any control worker, in the words of the render. */
export function describeAdmissionOfConfigs(cluster: () => RealCluster): void {
  describe('admission of MachineConfigs by CEL', () => {
    const config = (name: string, sections: object) => ({
      metadata: { name, labels: {} },
      spec: { config: { ignition: { version: '3.4.0' }, ...sections } },
    });
    const withFiles = (name: string, ...files: object[]) => config(name, { storage: { files } });
    const good = { path: '/etc/a', contents: { source: 'data:,a' }, mode: 420 };
    const create = (object: KubernetesObject) => cluster().admin.create(cluster().flavour.machineConfig, object);

    beforeAll(async () => {
      // The API server acts on a new policy a moment later.
      await vi.waitFor(
        () =>
          expect(create(withFiles('95-cel-probe', { ...good, mode: 4095 }))).rejects.toMatchObject({
            message: expect.stringContaining('denied request') as string,
          }),
        { ...PATIENCE, interval: 200 },
      );
    });

    test.each([
      ['a mode past 0777', withFiles('95-cel-a', good, { ...good, path: '/etc/b', mode: 4095 })],
      ['a mode that was written in octal', withFiles('95-cel-b', { ...good, mode: 755 })],
      ['a longer mode that was written in octal', withFiles('95-cel-c', { ...good, mode: 0o1750 + 24 })],
      ['remote content', withFiles('95-cel-d', { ...good, contents: { source: 'https://a.example/b' } })],
      ['a user that nodes do not set', config('95-cel-e', { passwd: { users: [{ name: 'core' }, { name: 'root' }] } })],
    ])('%s is refused with the reason of the render', async (_, object) => {
      const rendered = renderPool({ pool: 'x', machineConfigs: [object], flavour: cluster().flavour });
      if (rendered.outcome !== 'refused') throw new Error('the render takes it');
      await expect(create(object)).rejects.toMatchObject({
        message: expect.stringContaining(rendered.reason) as string,
      });
    });

    test('what is right, has nothing, or is of another form than it should be, is left to the render', async () => {
      const objects = [
        withFiles('95-cel-right', good, { ...good, path: '/etc/b', contents: { source: 'data:;base64,YQ==' } }),
        config('95-cel-empty', {}),
        { metadata: { name: '95-cel-none' }, spec: {} },
        config('95-cel-shape', { storage: { files: { path: 4 } } }),
        config('95-cel-null', { storage: null, passwd: { users: null } }),
      ];
      for (const object of objects) {
        await expect(create(object), object.metadata.name).resolves.toBeDefined();
        await cluster().admin.delete(cluster().flavour.machineConfig, { name: object.metadata.name });
      }
    });
  });
}
