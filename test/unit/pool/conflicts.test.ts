import { describe, expect, it } from 'vitest';
import { conflictsOf } from '../../../machine-config/pool/conflicts.js';

const role = (name: string) => ({ [`node-role.kubernetes.io/${name}`]: '' });
const pools = ['worker', 'infra', 'gpu', 'master'].map((name) => ({
  name,
  nodeSelector: { matchLabels: role(name) },
}));
const node = (name: string, ...roles: string[]) => ({
  name,
  labels: Object.assign({}, ...roles.map(role)) as Record<string, string>,
});

describe('conflictsOf', () => {
  const nodes = [
    node('n2', 'worker', 'infra', 'gpu'),
    node('n1', 'infra', 'gpu'),
    node('n3', 'worker', 'infra'),
    node('n4', 'worker'),
    node('n5', 'master', 'infra'),
  ];

  it('finds the nodes that two custom pools select, for both of them', () => {
    const found = conflictsOf('infra', nodes, pools);
    expect(found.map((conflict) => conflict.node)).toEqual(['n1', 'n2']);
    expect(found[0]).toMatchObject({ pools: ['gpu', 'infra'] });
    expect(found[0]?.sentence).toContain('Node n1 is selected by 2 custom pools, gpu and infra');
    expect(conflictsOf('gpu', nodes, pools)).toEqual(found);
  });

  it('concerns neither the worker pool, which selects such a node too, nor one that is not there', () => {
    expect(conflictsOf('worker', nodes, pools)).toEqual([]);
    expect(conflictsOf('absent', nodes, pools)).toEqual([]);
  });
});
