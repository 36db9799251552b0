import { describe, expect, it } from 'vitest';
import { generatedName, suffixesOf } from '../../../machine-config/sources/naming.js';
import { flavour, kubeletConfig, poolNamed } from './kubelet/kubelet-inputs.js';

const pools = ['infra', 'worker'].map(poolNamed);
const suffixes = (objects: Parameters<typeof suffixesOf>[0]) => Object.fromEntries(suffixesOf(objects, pools, flavour));

describe('names of generated configs', () => {
  it('sort in the order in which they win', () => {
    const name = (suffix: string) => generatedName({ priority: '99', pool: 'worker', what: 'kubelet', suffix });
    const names = ['', '1', '2', '9'].map(name);
    expect(names[0]).toBe('99-worker-generated-kubelet');
    expect(names.toSorted()).toEqual(names);
  });
});

describe('suffixes', () => {
  it('follow the age', () => {
    const old = kubeletConfig('z', {}, { created: '2026-01-01T00:00:00Z' });
    const young = kubeletConfig('a', {}, { created: '2026-01-02T00:00:00Z' });
    expect(suffixes([young, old])).toEqual({ z: '', a: '1' });
  });

  it('stay where an annotation holds them, and are not used again', () => {
    expect(suffixes([kubeletConfig('a', {}, { suffix: '4' }), kubeletConfig('b', {})])).toEqual({ a: '4', b: '5' });
    expect(suffixes([kubeletConfig('a', {}, { suffix: '9' }), kubeletConfig('b', {})])).toEqual({
      a: '9',
      b: undefined,
    });
  });

  it('are counted by pool', () => {
    const objects = [kubeletConfig('a', {}), kubeletConfig('b', {}, { pool: 'infra' }), kubeletConfig('c', {})];
    expect(suffixes(objects)).toEqual({ a: '', b: '', c: '1' });
  });

  it('that nobody could have written count as none', () => {
    expect(suffixes([kubeletConfig('a', {}, { suffix: '10' })])).toEqual({ a: '' });
  });
});
