import { describe, expect, it } from 'vitest';
import type { MachineConfigPoolStatus, PoolRollout } from '../../../machine-config/api/machine-config-pool.js';
import { statusEvents } from '../../../machine-config/pool/status-events.js';
import { NEW, OLD } from './make-node.js';

const running: PoolRollout = {
  target: NEW,
  from: OLD,
  startedAt: '2026-03-01T12:00:00Z',
  outcome: 'Running',
  updated: 0,
  failed: 0,
};
const withRollouts = (...rollouts: PoolRollout[]): MachineConfigPoolStatus => ({ rollouts });
const withCondition = (
  type: string,
  status: 'True' | 'False',
  reason = '',
  message = 'why',
): MachineConfigPoolStatus => ({
  conditions: [{ type, status, reason, message }],
});
const told = (before: MachineConfigPoolStatus | undefined, after: MachineConfigPoolStatus) =>
  statusEvents(before, after).map(({ type, reason, message }) => `${type} ${reason}: ${message}`);

describe('the Events of a status', () => {
  it('tell the begin and the end of a rollout, each once', () => {
    const done = { ...running, outcome: 'Completed' as const, updated: 6, finishedAt: '2026-03-01T14:05:00Z' };
    expect(told(undefined, withRollouts(running))).toEqual([
      `Normal RolloutStarted: Brings the nodes from ${OLD} to ${NEW}`,
    ]);
    expect(told(withRollouts(running), withRollouts({ ...running, updated: 3 }))).toEqual([]);
    expect(told(withRollouts(running), withRollouts(done))).toEqual([
      `Normal Completed: 6 nodes run ${NEW}, after 2 h 5 min`,
    ]);
    expect(told(withRollouts(done), withRollouts(done))).toEqual([]);
  });

  it('tell nothing of rollouts that were forgotten, and of one that was superseded only the next one', () => {
    const ended = { ...running, outcome: 'Superseded' as const, finishedAt: '2026-03-01T12:01:00Z' };
    const next = { ...running, target: 'rendered-worker-next', startedAt: '2026-03-01T12:01:00Z' };
    expect(told(withRollouts(running), withRollouts(ended, next))).toEqual([
      `Normal RolloutStarted: Brings the nodes from ${OLD} to rendered-worker-next`,
    ]);
    expect(told(withRollouts(ended, next), withRollouts(next))).toEqual([]);
  });

  it('tell a roll-back as a warning, with the config to which it goes', () => {
    const givenUp = { ...running, outcome: 'RolledBack' as const, finishedAt: '2026-03-01T12:01:00Z' };
    const { outcome, updated, failed } = running;
    const back = { target: OLD, startedAt: '2026-03-01T12:01:00Z', outcome, updated, failed };
    expect(told(withRollouts(running), withRollouts(givenUp, back))).toEqual([
      `Warning RolledBack: ${NEW} failed, and the pool goes back to ${OLD}`,
      `Normal RolloutStarted: Brings the nodes to ${OLD}`,
    ]);
  });

  it('tell each approval with who gave it', () => {
    const canary = { stage: 'canary', by: 'alice', at: '2026-03-01T12:01:00Z' };
    const rest = { stage: 'rest', by: 'bob', at: '2026-03-01T12:02:00Z' };
    const before = withRollouts({ ...running, approvals: [canary] });
    expect(told(before, withRollouts({ ...running, approvals: [canary, rest] }))).toEqual([
      `Normal Approved: Stage rest of ${NEW} was approved by bob`,
    ]);
  });

  it.each([
    ['Halted', 'Halted'],
    ['MembershipConflict', 'MembershipConflict'],
    ['RenderDegraded', 'RenderFailed'],
  ])('tell that %s became True, and not that it stays so', (type, reason) => {
    const yes = withCondition(type, 'True');
    expect(told(withCondition(type, 'False'), yes)).toEqual([`Warning ${reason}: why`]);
    expect(told(undefined, yes)).toEqual([`Warning ${reason}: why`]);
    expect(told(yes, withCondition(type, 'True', '', 'other words'))).toEqual([]);
    expect(told(yes, withCondition(type, 'False'))).toEqual([]);
  });

  it('tell at once that everything was stopped, and nothing else that is waited for', () => {
    const stopped = withCondition('Waiting', 'True', 'Stopped', 'alice: maintenance of the storage');
    expect(told(withCondition('Waiting', 'False', 'GoesOn'), stopped)).toEqual([
      'Warning Stopped: alice: maintenance of the storage',
    ]);
    expect(told(stopped, stopped)).toEqual([]);
    expect(told(stopped, withCondition('Waiting', 'True', 'WindowClosed'))).toEqual([]);
  });
});
