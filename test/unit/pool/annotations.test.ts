import { describe, expect, it } from 'vitest';
import { DRYDOCK_ANNOTATIONS } from '../../../machine-config/api/flavour.js';
import { approvalIn, rolloutFacts } from '../../../machine-config/pool/annotations.js';

describe('rolloutFacts', () => {
  it('reads what people and workers wrote', () => {
    expect(
      rolloutFacts({
        [DRYDOCK_ANNOTATIONS.hold]: 'disk is being replaced',
        [DRYDOCK_ANNOTATIONS.heldCordon]: 'true',
        [DRYDOCK_ANNOTATIONS.retry]: '2026-03-01T10:00:00Z',
        [DRYDOCK_ANNOTATIONS.lastUpdate]: '{"target":"r-1","at":"2026-03-01T10:00:00Z","seconds":{"drain":12,"x":"y"}}',
        [DRYDOCK_ANNOTATIONS.drainBlocked]: '{"sentence":"waits","pods":["a/b",7],"budgets":"none"}',
        [DRYDOCK_ANNOTATIONS.evictedOwners]: '["shop/ReplicaSet/cart"]',
      }),
    ).toEqual({
      hold: 'disk is being replaced',
      heldCordon: true,
      retryAt: Date.UTC(2026, 2, 1, 10),
      lastUpdate: { target: 'r-1', at: Date.UTC(2026, 2, 1, 10), seconds: { drain: 12 } },
      drainBlocked: { sentence: 'waits', pods: ['a/b'], budgets: [] },
      evictedOwners: ['shop/ReplicaSet/cart'],
    });
  });

  it('takes what it cannot read as absent', () => {
    expect(
      rolloutFacts({
        [DRYDOCK_ANNOTATIONS.heldCordon]: 'yes',
        [DRYDOCK_ANNOTATIONS.retry]: 'tomorrow',
        [DRYDOCK_ANNOTATIONS.lastUpdate]: '{"target":"r-1"}',
        [DRYDOCK_ANNOTATIONS.drainBlocked]: '[]',
        [DRYDOCK_ANNOTATIONS.evictedOwners]: '{',
      }),
    ).toEqual({});
  });
});

describe('approvalIn', () => {
  it('reads the stages that are approved for a config, and who did it', () => {
    expect(
      approvalIn({
        [DRYDOCK_ANNOTATIONS.approval]: '{"config":"rendered-worker-1","stages":["canary"]}',
        [DRYDOCK_ANNOTATIONS.approvedBy]: 'alice',
      }),
    ).toEqual({ config: 'rendered-worker-1', stages: ['canary'], by: 'alice' });
  });

  it.each([undefined, 'yes', '{"stages":["canary"]}'])('takes %j as no approval', (text) => {
    expect(approvalIn(text === undefined ? {} : { [DRYDOCK_ANNOTATIONS.approval]: text })).toBeUndefined();
  });
});
