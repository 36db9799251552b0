import { describe, expect, it } from 'vitest';
import type { MachineConfigResource, PoolResource } from '../../../activities/cluster/control-dependencies.js';
import {
  concernsSource,
  machineConfigConcernsSources,
  poolConcernsSources,
} from '../../../activities/cluster/source-hints.js';
import type { SourceResource } from '../../../activities/cluster/source.js';

const modified = <T>(before: T, object: T) => ({ type: 'MODIFIED', before, object }) as const;
const added = <T>(object: T) => ({ type: 'ADDED', before: undefined, object }) as const;
const deleted = <T>(object: T) => ({ type: 'DELETED', before: object, object }) as const;

describe('what has sources generated anew', () => {
  it('is a source whose spec changes, not its status', () => {
    const source = { metadata: { name: 'one', resourceVersion: '1' }, spec: { logLevel: 1 } } as SourceResource;
    const told = {
      ...source,
      metadata: { ...source.metadata, resourceVersion: '2' },
      status: { observedGeneration: 1 },
    };
    const other = { ...source, spec: { logLevel: 2 } };
    const going = { ...source, metadata: { ...source.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } };
    expect(
      [added(source), deleted(source), modified(source, other), modified(source, going)].map(concernsSource),
    ).toEqual([true, true, true, true]);
    expect(concernsSource(modified(source, told))).toBe(false);
  });

  it('is a pool that is chosen or chooses otherwise, not one that moves on', () => {
    const pool: PoolResource = { metadata: { name: 'worker' }, spec: {} };
    const labelled = { ...pool, metadata: { name: 'worker', labels: { a: 'b' } } };
    const selecting = { ...pool, spec: { machineConfigSelector: { matchLabels: { a: 'b' } } } };
    expect([added(pool), modified(pool, labelled), modified(pool, selecting)].map(poolConcernsSources)).toEqual([
      true,
      true,
      true,
    ]);
    const targeted = {
      ...pool,
      spec: { configuration: { name: 'rendered' }, paused: true },
      status: { machineCount: 1 },
    };
    expect(poolConcernsSources(modified(pool, targeted))).toBe(false);
  });

  it('is a MachineConfig that people or sources wrote, not a rendered one', () => {
    const config: MachineConfigResource = { metadata: { name: '50-a' }, spec: { fips: false } };
    const owner = (kind: string) => ({ apiVersion: 'v1', kind, name: 'x', uid: 'u' });
    const rendered = { ...config, metadata: { name: 'rendered-a', ownerReferences: [owner('MachineConfigPool')] } };
    const generated = { ...config, metadata: { name: '99-a', ownerReferences: [owner('KubeletConfig')] } };
    expect([added(config), deleted(generated)].map(machineConfigConcernsSources)).toEqual([true, true]);
    expect([added(rendered), modified(config, { ...config })].map(machineConfigConcernsSources)).toEqual([
      false,
      false,
    ]);
  });
});
