import { describe, expect, it } from 'vitest';
import {
  controlPlaneObstacle,
  isControlPlaneNode,
  type ControlPlanePod,
  type ControlPlaneState,
} from '../../../machine-config/pool/control-plane.js';
import type { NodeFacts } from '../../../machine-config/pool/facts.js';
import { makeNode } from './make-node.js';

const LABELS = { 'node-role.kubernetes.io/control-plane': '' };
const NAMES = ['cp-1', 'cp-2', 'cp-3'];

const member = (name: string, more: Partial<NodeFacts> = {}) => makeNode(name, { labels: LABELS, ...more });
const pod = (node: string, component: ControlPlanePod['component'], ready = true): ControlPlanePod => ({
  name: `kube-system/${component}-${node}`,
  node,
  component,
  ready,
});
const podsOf = (...nodes: string[]) => nodes.flatMap((node) => [pod(node, 'kube-apiserver'), pod(node, 'etcd')]);
const three = (more: Partial<ControlPlaneState> = {}): ControlPlaneState => ({
  nodes: NAMES.map((name) => member(name)),
  pods: podsOf(...NAMES),
  ...more,
});

describe('controlPlaneObstacle', () => {
  it('is none while all the others are well', () => {
    for (const name of NAMES) expect(controlPlaneObstacle(name, three())).toBeUndefined();
  });

  it('is a node that is not ready, for all but itself', () => {
    const away = member('cp-2', { ready: false, notReadyBecause: 'Ready is Unknown' });
    const state = three({ nodes: [member('cp-1'), away, member('cp-3')] });
    expect(controlPlaneObstacle('cp-1', state)).toMatch(/cp-1 .* waits .*cp-2 is not ready \(Ready is Unknown\)/);
    expect(controlPlaneObstacle('cp-2', state)).toBeUndefined();
  });

  it('is a node that is being deleted', () => {
    const state = three({ nodes: [member('cp-1'), member('cp-2'), member('cp-3', { deleting: true })] });
    expect(controlPlaneObstacle('cp-1', state)).toContain('cp-3 is being deleted');
  });

  it.each(['kube-apiserver', 'etcd'] as const)('is a %s that is not Ready, or is not there', (component) => {
    const others = podsOf(...NAMES).filter((each) => each.node !== 'cp-3' || each.component !== component);
    expect(controlPlaneObstacle('cp-1', three({ pods: [...others, pod('cp-3', component, false)] }))).toContain(
      `of cp-3 is not Ready (pod kube-system/${component}-cp-3)`,
    );
    expect(controlPlaneObstacle('cp-1', three({ pods: others }))).toContain(`no pod of component ${component} there`);
    expect(controlPlaneObstacle('cp-3', three({ pods: others }))).toBeUndefined();
  });

  it('asks for no pods where the control plane runs in another way', () => {
    expect(controlPlaneObstacle('cp-1', three({ pods: [] }))).toBeUndefined();
    const withoutEtcd = NAMES.map((name) => pod(name, 'kube-apiserver'));
    expect(controlPlaneObstacle('cp-1', three({ pods: withoutEtcd }))).toBeUndefined();
  });

  it('looks for etcd on the nodes that are marked for it, where some are', () => {
    const etcdNode = makeNode('etcd-1', { labels: { 'node-role.kubernetes.io/etcd': 'true' } });
    const nodes = [member('cp-1'), member('cp-2'), etcdNode];
    const apiServers = [pod('cp-1', 'kube-apiserver'), pod('cp-2', 'kube-apiserver')];
    const state = { nodes, pods: [...apiServers, pod('etcd-1', 'etcd')] };
    expect(controlPlaneObstacle('cp-1', state)).toBeUndefined();
    expect(controlPlaneObstacle('cp-1', { nodes, pods: [...apiServers, pod('etcd-1', 'etcd', false)] })).toContain(
      'the etcd of etcd-1 is not Ready',
    );
  });

  it('is an etcd that the API server finds unwell, but not for the only member', () => {
    const etcdProblem = '[-]etcd failed: no quorum';
    expect(controlPlaneObstacle('cp-1', three({ etcdProblem }))).toContain('etcd is not healthy ([-]etcd failed');
    expect(controlPlaneObstacle('cp-1', { nodes: [member('cp-1')], pods: [], etcdProblem })).toBeUndefined();
  });

  it('names the first in order, and how many more', () => {
    const nodes = ['cp-3', 'cp-2', 'cp-1'].map((name) =>
      member(name, { ready: false, notReadyBecause: 'Ready is False' }),
    );
    const sentence = controlPlaneObstacle('cp-3', three({ nodes }));
    expect(sentence).toMatch(/well: cp-1 is not ready \(Ready is False\) and 1 more: cp-2 is not ready/);
  });
});

describe('isControlPlaneNode', () => {
  it.each(['control-plane', 'master', 'etcd'])('goes by the role %s', (role) => {
    expect(isControlPlaneNode({ labels: { [`node-role.kubernetes.io/${role}`]: '' } })).toBe(true);
  });
  it('does not take workers', () => {
    expect(isControlPlaneNode({ labels: { 'node-role.kubernetes.io/worker': '' } })).toBe(false);
  });
});
