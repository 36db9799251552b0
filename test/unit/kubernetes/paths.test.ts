import { describe, expect, it } from 'vitest';
import { KINDS } from '../../../activities/kubernetes/client.js';
import { resourcePath } from '../../../activities/kubernetes/paths.js';
import { apiFlavour } from '../../../machine-config/api/flavour.js';

describe('resourcePath', () => {
  const { machineConfigPool } = apiFlavour('openshift');

  it('leads to an object, its collection and its subresource', () => {
    expect(resourcePath(KINDS.node, { name: 'worker-1', subresource: 'status' })).toBe('/api/v1/nodes/worker-1/status');
    expect(resourcePath(KINDS.node, {})).toBe('/api/v1/nodes');
    expect(resourcePath(KINDS.pod, { namespace: 'shop', name: 'a.b-1' })).toBe('/api/v1/namespaces/shop/pods/a.b-1');
    expect(resourcePath(machineConfigPool, { name: '../nodes/worker-1?x=#y' })).toBe(
      '/apis/machineconfiguration.openshift.io/v1/machineconfigpools/..%2Fnodes%2Fworker-1%3Fx%3D%23y',
    );
    expect(resourcePath(KINDS.node, { name: '...' })).toBe('/api/v1/nodes/...');
  });

  it.each(['', '.', '..', null, 7])('refuses %j for a name, a namespace and a subresource', (bad) => {
    const part = bad as string;
    const refused = expect.objectContaining({ type: 'Invalid', nonRetryable: true }) as Error;
    for (const path of [{ name: part }, { name: 'n', subresource: part }]) {
      expect(() => resourcePath(KINDS.node, path)).toThrow(refused);
    }
    expect(() => resourcePath(KINDS.pod, { namespace: part, name: 'n' })).toThrow(refused);
    expect(() => resourcePath(KINDS.node, { name: part })).toThrow(/^Node: .* is no name of an object/);
  });
});
