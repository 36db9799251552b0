import { describe, expect, it } from 'vitest';
import { productionClosure, type LockedPackages } from '../../../dev/package/dependencies.js';

const locked = (packages: LockedPackages): LockedPackages => packages;

describe('the packages that a program needs', () => {
  it('are those that it imports and what these need, found from the inside to the outside', () => {
    const packages = locked({
      'node_modules/a': { dependencies: { b: '1', c: '1' } },
      'node_modules/a/node_modules/b': { dependencies: { c: '1' } },
      'node_modules/b': {},
      'node_modules/c': {},
      'node_modules/unrelated': {},
    });
    expect(productionClosure(packages, ['a'])).toEqual([
      'node_modules/a',
      'node_modules/a/node_modules/b',
      'node_modules/c',
    ]);
  });

  it('are neither type declarations, nor what only bundles workflows', () => {
    const packages = locked({
      'node_modules/@temporalio/worker': {
        dependencies: { '@swc/core': '1', webpack: '1', '@types/x': '1', long: '1' },
      },
      'node_modules/@swc/core': { dependencies: { deep: '1' } },
      'node_modules/@types/x': {},
      'node_modules/webpack': { dependencies: { acorn: '1' } },
      'node_modules/acorn': {},
      'node_modules/deep': {},
      'node_modules/long': {},
    });
    expect(productionClosure(packages, ['@temporalio/worker'])).toEqual([
      'node_modules/@temporalio/worker',
      'node_modules/long',
      'node_modules/webpack',
    ]);
  });

  it('include peers, and optional ones only where they are there', () => {
    const packages = locked({
      'node_modules/a': {
        optionalDependencies: { absent: '1', native: '1' },
        peerDependencies: { peer: '1', maybe: '1' },
        peerDependenciesMeta: { maybe: { optional: true } },
      },
      'node_modules/peer': {},
      'node_modules/maybe': {},
      'node_modules/native': { os: ['linux'] },
    });
    expect(productionClosure(packages, ['a'])).toEqual(['node_modules/a', 'node_modules/peer']);
  });

  it('must all be there, and none made for the building machine alone', () => {
    expect(() => productionClosure({ 'node_modules/a': { dependencies: { b: '1' } } }, ['a'])).toThrow(
      /has no b, which/,
    );
    expect(() => productionClosure({ 'node_modules/a': { cpu: ['x64'] } }, ['a'])).toThrow(/made for one platform/);
  });
});
