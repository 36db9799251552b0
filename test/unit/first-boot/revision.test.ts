import { describe, expect, test } from 'vitest';
import { DRYDOCK_ANNOTATIONS } from '../../../machine-config/api/flavour.js';
import { revisionForNewNode } from '../../../machine-config/first-boot/revision.js';

interface Case {
  wanted?: string;
  reached?: string;
  updated?: number;
  generation?: number;
  observed?: number;
  rolledBackFrom?: string;
}

function pool({ wanted, reached, updated, generation, observed, rolledBackFrom }: Case) {
  const status = {
    ...(reached === undefined ? {} : { configuration: { name: reached } }),
    ...(updated === undefined ? {} : { updatedMachineCount: updated }),
    ...(observed === undefined ? {} : { observedGeneration: observed }),
  };
  return {
    metadata: {
      name: 'worker',
      ...(generation === undefined ? {} : { generation }),
      ...(rolledBackFrom === undefined
        ? {}
        : { annotations: { [DRYDOCK_ANNOTATIONS.rolledBackFrom]: rolledBackFrom } }),
    },
    spec: wanted === undefined ? {} : { configuration: { name: wanted } },
    ...(Object.keys(status).length === 0 ? {} : { status }),
  };
}

describe('the config of a new node', () => {
  test.each([
    ['all nodes run it', { wanted: 'b', reached: 'b', updated: 10 }, 'b'],
    ['a rollout that no node has finished', { wanted: 'b', reached: 'a', updated: 0 }, 'a'],
    ['a rollout that one node has finished', { wanted: 'b', reached: 'a', updated: 1 }, 'b'],
    ['the first config of an empty pool', { wanted: 'a' }, 'a'],
    ['the first config, which no node has reached', { wanted: 'a', updated: 0 }, 'a'],
    [
      'a count that is of the target before',
      { wanted: 'c', reached: 'b', updated: 10, generation: 7, observed: 6 },
      'b',
    ],
    ['a count that is of now', { wanted: 'c', reached: 'b', updated: 1, generation: 7, observed: 7 }, 'c'],
    ['a target that was given up', { wanted: 'b', reached: 'a', updated: 3, rolledBackFrom: 'b' }, 'a'],
    ['a target after one that was given up', { wanted: 'c', reached: 'a', updated: 3, rolledBackFrom: 'b' }, 'c'],
    ['a pool that wants nothing any more', { reached: 'a', updated: 1 }, 'a'],
  ] satisfies [string, Case, string][])('%s', (_, facts, name) => {
    expect(revisionForNewNode(pool(facts))).toEqual({ outcome: 'config', name });
  });

  test('there is none before the pool is rendered', () => {
    expect(revisionForNewNode(pool({}))).toMatchObject({ outcome: 'none' });
    expect(revisionForNewNode(pool({ wanted: '', reached: '' }))).toMatchObject({
      reason: 'pool worker has no rendered config yet; see its condition RenderDegraded',
    });
  });
});
