import { describe, expect, it } from 'vitest';
import { EMPTY_CONFIG_NAME } from '../../../machine-config/api/flavour.js';
import {
  currentConfig,
  isDegraded,
  isDrifted,
  isManaged,
  isUnavailable,
  isUpdated,
  needsUpdate,
} from '../../../machine-config/pool/availability.js';
import type { NodeFacts } from '../../../machine-config/pool/facts.js';
import { failedOn, makeNode, NEW, NOW, OLD, updatedTo } from './make-node.js';

const unmanaged = { worker: undefined, current: undefined, desired: undefined, state: undefined };

describe('isUnavailable', () => {
  const cases: [string, NodeFacts, boolean][] = [
    ['an idle node on an old config', makeNode('n'), false],
    ['an updated node', updatedTo('n', NEW), false],
    ['a node that was granted the target and has not noticed yet', makeNode('n', { desired: NEW }), true],
    ['a node that was granted an older target', makeNode('n', { desired: 'rendered-worker-between' }), true],
    ['a node that lost its currentConfig in an update', makeNode('n', { current: undefined, desired: NEW }), true],
    ['a node at work', makeNode('n', { state: 'Working' }), true],
    ['a node that applies', makeNode('n', { applying: NEW }), true],
    ['a node whose mark of applying is of the config it runs', makeNode('n', { applying: OLD }), false],
    ['a node that is not ready', makeNode('n', { ready: false }), true],
    ['a node that others cordoned', makeNode('n', { unschedulable: true }), true],
    ['an updated node with our cordon left', { ...updatedTo('n', NEW), unschedulable: true, cordonedFor: NEW }, true],
    ['a node that is being deleted', makeNode('n', { deleting: true }), true],
    ['a node that failed on the target', failedOn('n', NEW, 1, NOW), true],
    ['a node that failed on the target and was set back', { ...failedOn('n', NEW, 1, NOW), desired: OLD }, true],
    ['a node set back that failed on an older target', { ...failedOn('n', 'rendered-x', 1, NOW), desired: OLD }, false],
    ['a drifted node', makeNode('n', { state: 'Degraded' }), true],
    ['an unmanaged node', makeNode('n', unmanaged), false],
    [
      'an unmanaged node that is not ready and cordoned',
      makeNode('n', { ...unmanaged, ready: false, unschedulable: true }),
      false,
    ],
    ['a granted node whose worker mark was taken off', makeNode('n', { worker: undefined, desired: NEW }), true],
  ];
  it.each(cases)('judges %s', (_, node, expected) => {
    expect(isUnavailable(node, NEW)).toBe(expected);
  });
});

describe('isUpdated', () => {
  it('needs Done, the target as current, and no other grant', () => {
    expect(isUpdated(updatedTo('n', NEW), NEW)).toBe(true);
    expect(isUpdated(makeNode('n', { current: NEW, desired: undefined }), NEW)).toBe(true);
    expect(isUpdated(makeNode('n'), NEW)).toBe(false);
    expect(isUpdated(makeNode('n', { current: NEW, desired: OLD }), NEW)).toBe(false);
    expect(isUpdated({ ...updatedTo('n', NEW), state: 'Degraded' }, NEW)).toBe(false);
    expect(isUpdated(makeNode('n', { current: NEW, desired: NEW, worker: undefined }), NEW)).toBe(false);
    expect(isUpdated(updatedTo('n', NEW), undefined)).toBe(false);
  });

  it('does not end the need of an update while our cordon is left', () => {
    expect(needsUpdate(updatedTo('n', NEW), NEW)).toBe(false);
    expect(needsUpdate({ ...updatedTo('n', NEW), unschedulable: true, cordonedFor: NEW }, NEW)).toBe(true);
    expect(needsUpdate({ ...updatedTo('n', NEW), unschedulable: true }, NEW)).toBe(false);
  });
});

describe('isDrifted and isDegraded', () => {
  it('tell a disk that was changed from an update that failed', () => {
    const drifted = makeNode('n', { state: 'Degraded' });
    const failed = failedOn('n', NEW, 1, NOW);
    expect([isDegraded(drifted), isDrifted(drifted)]).toEqual([true, true]);
    expect([isDegraded(failed), isDrifted(failed)]).toEqual([true, false]);
    expect(isDrifted({ ...failed, desired: OLD })).toBe(false);
  });

  it('count Unreconcilable as degraded and never an unmanaged node', () => {
    expect(isDegraded(makeNode('n', { state: 'Unreconcilable', desired: NEW }))).toBe(true);
    expect(isDegraded(makeNode('n', { state: 'Degraded', worker: undefined }))).toBe(false);
  });
});

describe('isManaged and currentConfig', () => {
  it('follow the registration of the node worker and the config it reports', () => {
    expect([isManaged(makeNode('n')), isManaged(makeNode('n', unmanaged))]).toEqual([true, false]);
    expect([currentConfig(makeNode('n')), currentConfig(makeNode('n', unmanaged))]).toEqual([OLD, EMPTY_CONFIG_NAME]);
  });
});
