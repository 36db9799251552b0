import { describe, expect, it } from 'vitest';
import type { Histories } from '../../../dev/bench/rollout/histories.js';
import { parseRolloutOptions } from '../../../dev/bench/rollout/options.js';
import { parseCpuSeconds } from '../../../dev/bench/rollout/process-use.js';
import { describeRollout, figures, type Measured } from '../../../dev/bench/rollout/report.js';
import { RequestCounter } from '../../../dev/bench/rollout/requests.js';

describe('the options of the rollout benchmark', () => {
  const parse = (text: string) => parseRolloutOptions(text.split(' '));

  it('are read as they are written', () => {
    expect(parse('--nodes 200 --max-unavailable 10% --step 30s --json')).toEqual({
      nodes: 200,
      maxUnavailable: '10%',
      stepSeconds: 30,
      pods: 0,
      floor: true,
      json: true,
      keep: undefined,
    });
    expect(parse('--nodes 5 --max-unavailable 2 --step 500ms --pods 3 --no-floor')).toMatchObject({
      maxUnavailable: 2,
      stepSeconds: 0.5,
      pods: 3,
      floor: false,
    });
  });

  it.each([
    ['--nodes 0', /--nodes 0: write a whole number/],
    ['--nodes many', /--nodes many: write a whole number/],
    ['--max-unavailable 0', /--max-unavailable 0: write a whole number/],
    ['--max-unavailable 101%', /write a percentage from 1% to 100%/],
    ['--step 30', /--step 30: write a time such as 0s/],
  ])('%s is refused in one line', (text, message) => {
    expect(() => parse(text)).toThrow(message);
  });
});

describe('the counter of API requests', () => {
  const event = (more: object) => ({
    stage: 'ResponseComplete',
    verb: 'get',
    userAgent: 'drydock',
    user: { username: 'system:node:bench-1' },
    requestReceivedTimestamp: '2026-03-01T12:00:05.000000Z',
    objectRef: { resource: 'nodes' },
    responseStatus: { code: 200 },
    ...more,
  });
  const noon = Date.parse('2026-03-01T12:00:00Z');
  const count = (...events: object[]) => {
    const counter = new RequestCounter(noon, noon + 10_000);
    for (const one of events) counter.add(event(one));
    return counter.counts();
  };

  it('counts what Drydock asks for, by who and what', () => {
    const counts = count({}, {}, { verb: 'patch', user: { username: 'drydock-control' } });
    expect(counts.requests).toBe(3);
    expect([...counts.byKind]).toEqual([
      ['node worker: get nodes', 2],
      ['control worker: patch nodes', 1],
    ]);
  });

  it('counts nothing of others, of other times, of watches and of answers that have only begun', () => {
    const others = [
      { userAgent: 'drydock-lab-kubelet' },
      { userAgent: undefined },
      { requestReceivedTimestamp: '2026-03-01T11:59:59Z' },
      { requestReceivedTimestamp: '2026-03-01T12:00:11Z' },
      { verb: 'watch' },
      { stage: 'ResponseStarted' },
    ];
    expect(count(...others)).toEqual({
      requests: 0,
      evictionCalls: 0,
      evicted: 0,
      machineConfigNodes: 0,
      byKind: new Map(),
    });
  });

  it('counts evictions and MachineConfigNodes apart, and refused evictions as calls alone', () => {
    const eviction = { verb: 'create', objectRef: { resource: 'pods', subresource: 'eviction' } };
    const counts = count(
      { ...eviction, responseStatus: { code: 201 } },
      { ...eviction, responseStatus: { code: 429 } },
      { verb: 'update', objectRef: { resource: 'machineconfignodes', subresource: 'status' } },
    );
    expect(counts).toMatchObject({ requests: 0, evictionCalls: 2, evicted: 1, machineConfigNodes: 1 });
  });
});

it('reads the CPU time of a process whose name has spaces and brackets', () => {
  const stat = '42 (node (a b) x) S 1 42 42 0 -1 4194560 100 0 0 0 250 50 7 7 20 0 11 0 100 0 0';
  expect(parseCpuSeconds(stat)).toBe(3);
  expect(() => parseCpuSeconds('')).toThrow('proc(5)');
});

describe('the report of a rollout', () => {
  const histories: Histories = {
    makespan: 345,
    startedAt: 0,
    endedAt: 345_000,
    eventsPerUpdate: 66,
    eventsPerNode: 78.25,
    largestRunEvents: 3210,
    largestRunSize: 2_400_000,
    rolloutRuns: 1,
    updates: 200,
  };
  const measured: Measured = {
    options: parseRolloutOptions(['--nodes', '200', '--step', '30s', '--pods', '2']),
    product: {
      histories,
      requests: { requests: 2900, evictionCalls: 450, evicted: 440, machineConfigNodes: 800, byKind: new Map() },
      control: { cpuSeconds: 20, peakResident: 300 },
      fleet: { cpuSeconds: 60, peakResident: 900 },
      lab: new Map([['Temporal', { cpuSeconds: 100, peakResident: 400 }]]),
    },
    floor: { ...histories, makespan: 320 },
  };

  it('has exactly the figures that are asked for', () => {
    expect(figures(measured)).toEqual({
      nodes: 200,
      slots: 20,
      step: 30,
      makespan: 345,
      ideal: 300,
      ratio: 1.15,
      floorRatio: 1.078,
      eventsPerNode: 78.3,
      requestsPerNode: 14.5,
      evictionsPerPod: 1.1,
      cpuSecondsPerNode: 0.4,
      rssPerNode: 1.5,
      largestRunEvents: 3210,
    });
  });

  it('says null where there is nothing to compare with', () => {
    const options = parseRolloutOptions(['--nodes', '200', '--step', '0s']);
    expect(figures({ ...measured, options, floor: undefined })).toMatchObject({
      ideal: 0,
      ratio: null,
      floorRatio: null,
      evictionsPerPod: null,
    });
  });

  it('tells people the same', () => {
    const text = describeRollout(measured);
    expect(text).toMatch(/makespan +345 s; ideal 300 s, ratio 1.15/);
    expect(text).toMatch(/floor +320 s with nothing to do, ratio 1.078/);
    expect(text).toMatch(/largest run +3210 events, 2.4 MB/);
    expect(text).toMatch(/beside it Temporal: 0.5 s a node, 400 MB at its most/);
  });
});
