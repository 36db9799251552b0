import { KINDS } from '../../activities/kubernetes/client.js';
import type { FakeCluster } from './fake-cluster.js';

/** The part of the API server that the fake leaves out: it accepts the names of every new CRD. */
export function establishCrds(cluster: FakeCluster): void {
  cluster.observe(KINDS.customResourceDefinition, (type, crd) => {
    if (type !== 'ADDED') return;
    const status = { conditions: [{ type: 'Established', status: 'True' }] };
    void cluster.patch(KINDS.customResourceDefinition, { name: crd.metadata.name }, { status }, 'status');
  });
}
