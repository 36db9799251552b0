import { afterEach, describe, expect, it, vi } from 'vitest';
import { DEFAULT_TUNING, type UpdateNodeResult } from '../../../workflows/contract/inputs.js';
import { Fleet } from '../../../workflows/fleet.js';

interface Server {
  isThere: boolean;
  readonly told: string[];
  end: (result: UpdateNodeResult) => void;
}

/** What the server does: whether updates can be told anything, and when their results come. */
const server = vi.hoisted((): Server => ({ isThere: true, told: [], end: () => undefined }));

vi.mock('@temporalio/workflow', async (original) => ({
  ...(await original<object>()),
  patched: () => true,
  setHandler: () => undefined,
  log: { debug: () => undefined },
  CancellationScope: { nonCancellable: (work: () => Promise<unknown>) => work() },
  condition: async (isSo: () => boolean) => {
    while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 1));
  },
  startChild: () => {
    const result = new Promise<UpdateNodeResult>((resolve) => (server.end = resolve));
    return Promise.resolve({ firstExecutionRunId: 'run-1', result: () => result });
  },
  getExternalWorkflowHandle: (workflowId: string) => ({
    signal: () => {
      if (!server.isThere) return Promise.reject(new Error('it has ended'));
      server.told.push(workflowId);
      return Promise.resolve();
    },
  }),
}));

afterEach(() => {
  server.isThere = true;
  server.told.length = 0;
});

async function fleetOfOne(): Promise<Fleet> {
  const fleet = new Fleet({ cluster: 'cluster-1', pool: 'worker', tuning: DEFAULT_TUNING });
  await fleet.start({ node: 'n1', nodeUid: 'uid-1', target: 'new', current: 'old' });
  return fleet;
}

describe('a fleet whose run ends for the next one', () => {
  it('asks those that it awaits for signals, and hands them over', async () => {
    const fleet = await fleetOfOne();
    await fleet.askForSignals();
    expect(server.told).toEqual(['node/n1']);
    expect(fleet.handOver().inFlight).toEqual({ n1: { runId: 'run-1', nodeUid: 'uid-1' } });
  });

  it('waits for the result of one that has ended already, which the next run would never get', async () => {
    const fleet = await fleetOfOne();
    server.isThere = false;
    let isReady = false;
    const ready = fleet.askForSignals().then(() => (isReady = true));
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(isReady).toBe(false);
    server.end({ outcome: 'updated', from: 'old', to: 'new', rebooted: true });
    await ready;
    expect(fleet.handOver().inFlight).toEqual({});
  });
});
