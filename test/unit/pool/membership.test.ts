import { describe, expect, it } from 'vitest';
import { membersOf, poolOf, type PoolSelector } from '../../../machine-config/pool/membership.js';

const role = (name: string) => `node-role.kubernetes.io/${name}`;
const pool = (name: string): PoolSelector => ({ name, nodeSelector: { matchLabels: { [role(name)]: '' } } });
const pools = [pool('worker'), pool('gpu'), pool('master'), pool('infra')];
const node = (name: string, roles: string[], more: Record<string, string> = {}) => ({
  name,
  labels: { ...Object.fromEntries(roles.map((one) => [role(one), ''])), ...more },
});

describe('poolOf', () => {
  it.each([
    ['a worker', ['worker'], 'worker'],
    ['a worker with a custom role', ['worker', 'infra'], 'infra'],
    ['a node with a custom role only', ['infra'], 'infra'],
    ['a master', ['master'], 'master'],
    ['a master that is a worker too', ['master', 'worker'], 'master'],
  ])('puts %s where it belongs, without an alert', (_, roles, expected) => {
    expect(poolOf(node('n', roles), pools)).toEqual({ kind: 'pool', pool: expected });
  });

  it('keeps a master with a custom role in master and says which pool is ignored', () => {
    const membership = poolOf(node('n2', ['master', 'infra', 'worker']), pools);
    expect(membership).toMatchObject({ kind: 'pool', pool: 'master' });
    expect(membership).toHaveProperty('alert', expect.stringMatching(/n2.*infra/));
  });

  it.each([[['worker', 'infra', 'gpu']], [['master', 'infra', 'gpu']], [['gpu', 'infra']]])(
    'holds a node that two custom pools select and names both: %j',
    (roles) => {
      const membership = poolOf(node('n1', roles), pools);
      expect(membership).toMatchObject({ kind: 'conflict', pools: ['gpu', 'infra'] });
      expect(membership).toHaveProperty('sentence', expect.stringMatching(/n1.*gpu and infra.*label/));
    },
  );

  it('counts arbiter as a custom pool', () => {
    expect(poolOf(node('n', ['arbiter', 'infra']), [...pools, pool('arbiter')])).toMatchObject({ kind: 'conflict' });
  });

  it.each([
    ['a Windows node', { 'kubernetes.io/os': 'windows' }],
    ['a virtual-kubelet node', { type: 'virtual-kubelet' }],
    ['a Fargate node', { 'eks.amazonaws.com/compute-type': 'fargate' }],
  ])('leaves %s in no pool', (_, labels) => {
    expect(poolOf(node('n6', ['worker', 'infra'], labels), pools)).toEqual({ kind: 'none' });
  });

  it('leaves a node that nothing selects in no pool, and lets an empty selector select nothing', () => {
    const labelled = node('n', ['worker']);
    expect(poolOf(labelled, [])).toEqual({ kind: 'none' });
    expect(poolOf(labelled, [{ name: 'all', nodeSelector: {} }, { name: 'none' }])).toEqual({ kind: 'none' });
  });
});

describe('membersOf', () => {
  it('counts every node in exactly one pool and a conflicting node in none', () => {
    const nodes = [node('a', ['worker']), node('b', ['worker', 'infra']), node('c', ['infra', 'gpu'])];
    const names = (name: string) => membersOf(name, nodes, pools).map((member) => member.name);
    expect({ worker: names('worker'), infra: names('infra'), gpu: names('gpu') }).toEqual({
      worker: ['a'],
      infra: ['b'],
      gpu: [],
    });
  });
});
