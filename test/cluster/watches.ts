import { beforeAll, describe, expect, test, vi } from 'vitest';
import { KINDS } from '../../activities/kubernetes/client.js';
import { WatchCache } from '../../activities/kubernetes/watch-cache.js';
import type { NodeResource, PoolResource } from '../../activities/cluster/control-dependencies.js';
import type { RealCluster } from '../support/real-cluster.js';
import { PATIENCE } from '../support/patience.js';

const POOL = 'watched';

/** Runs last: the API server goes down. */
export function describeWatches(cluster: () => RealCluster): void {
  describe('the watches of a control worker', () => {
    let pools: WatchCache<PoolResource>;
    let nodes: WatchCache<NodeResource>;
    const errors: unknown[] = [];
    const changes: string[] = [];
    const waitFor = (condition: () => void) => vi.waitFor(condition, { ...PATIENCE, interval: 50 });

    beforeAll(async () => {
      const { admin, flavour } = cluster();
      const signal = cluster().openWatches();
      const onError = (error: unknown) => errors.push(error);
      pools = new WatchCache<PoolResource>(admin, flavour.machineConfigPool, { signal, onError });
      nodes = new WatchCache<NodeResource>(admin, KINDS.node, { signal, onError });
      await Promise.all([pools.synced(), nodes.synced()]);
      pools.onChange(({ type, object, before }) => {
        if (object.metadata.name === POOL) changes.push(`${type} ${before?.spec.paused ?? '-'}→${object.spec.paused}`);
      });
    });

    test('show what there was, and then each change with what was before it', async () => {
      const { admin, flavour } = cluster();
      const [livePools, liveNodes] = [await admin.list(flavour.machineConfigPool), await admin.list(KINDS.node)];
      expect(pools.list()).toHaveLength(livePools.length);
      expect(nodes.list()).toHaveLength(liveNodes.length);
      await cluster().createPool(POOL, { paused: false });
      await waitFor(() => expect(changes).toHaveLength(1));
      await admin.patch(flavour.machineConfigPool, { name: POOL }, { spec: { paused: true } });
      await waitFor(() => expect(changes).toHaveLength(2));
      await admin.delete(flavour.machineConfigPool, { name: POOL });
      await waitFor(() => expect(changes).toHaveLength(3));
      expect(changes).toEqual(['ADDED -→false', 'MODIFIED false→true', 'DELETED true→true']);
      expect(pools.get(POOL)).toBeUndefined();
      expect(errors).toEqual([]);
    });

    test('go on after the API server was killed and came back, and see what happened meanwhile', async () => {
      const { admin, flavour, kubernetes } = cluster();
      const { apiServer } = kubernetes.processes;
      await cluster().createPool(POOL, { paused: false });
      await waitFor(() => expect(pools.get(POOL)?.spec.paused).toBe(false));
      const known = nodes.list().map(({ metadata }) => metadata.name);
      const gone: string[] = [];
      nodes.onChange(({ type, object }) => {
        if (type === 'DELETED') gone.push(object.metadata.name);
      });
      changes.length = 0;

      await apiServer!.kill();
      await waitFor(() => expect(errors.length).toBeGreaterThan(0));
      expect(pools.get(POOL)?.spec.paused).toBe(false);
      expect(nodes.list()).toHaveLength(known.length);
      await apiServer!.restart();
      await kubernetes.waitUntilReady();
      // Very likely before the watches look again: then only listing anew can show it.
      await admin.patch(flavour.machineConfigPool, { name: POOL }, { spec: { paused: true } });
      await admin.delete(KINDS.node, { name: 'plain-2' });

      await waitFor(() => expect(pools.get(POOL)?.spec.paused).toBe(true));
      await waitFor(() => expect(nodes.get('plain-2')).toBeUndefined());
      expect(changes).toEqual(['MODIFIED false→true']);
      expect(gone).toEqual(['plain-2']);
      await admin.patch(flavour.machineConfigPool, { name: POOL }, { spec: { paused: false } });
      await waitFor(() => expect(pools.get(POOL)?.spec.paused).toBe(false));
    });
  });
}
