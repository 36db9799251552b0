import { describe, expect, it } from 'vitest';
import {
  conditionsHold,
  deploymentsAvailable,
  lackOfOwner,
  nodesReady,
  queryVerdict,
} from '../../../machine-config/pool/gate-verdicts.js';
import { makeNode, NOW } from './make-node.js';

const since = (name: string, seconds: number) => makeNode(name, { readinessSince: NOW - seconds * 1000 });
const object = (name: string, fields: object = {}, generation?: number) => ({
  metadata: { name, namespace: 'shop', ...(generation === undefined ? {} : { generation }) },
  ...fields,
});

describe('nodesReady', () => {
  it('passes once every node is Ready for so long, not a moment before', () => {
    expect(nodesReady([since('a', 60), since('b', 90)], { for: '1m' }, NOW)).toMatchObject({ passed: true });
    expect(nodesReady([since('a', 59.999), since('b', 90)], { for: '1m' }, NOW)).toEqual({
      passed: false,
      why: 'a must be Ready for 1m (a: Ready since 2026-03-01T11:59:00Z)',
      until: NOW + 1,
    });
  });

  it('waits for the last of them, and for one that is not ready without saying until when', () => {
    expect(nodesReady([since('a', 10), since('b', 20)], { for: '1m' }, NOW).until).toBe(NOW + 50_000);
    const away = makeNode('c', { ready: false, notReadyBecause: 'Ready is Unknown', readinessSince: NOW - 3600_000 });
    const verdict = nodesReady([since('a', 10), away], { for: '1m' }, NOW);
    expect(verdict).toMatchObject({ passed: false, why: expect.stringContaining('a and c') as string });
    expect(verdict.until).toBeUndefined();
  });

  it('does not pass a node that does not say since when it is Ready, unless nobody asks', () => {
    expect(nodesReady([makeNode('a')], { for: '1s' }, NOW).passed).toBe(false);
    expect(nodesReady([makeNode('a')], { for: '0s' }, NOW).passed).toBe(true);
  });
});

describe('conditionsHold', () => {
  const withCondition = (name: string, status: string) =>
    object(name, { status: { conditions: [{ type: 'Synced', status }] } });

  it('passes when every object has the condition', () => {
    expect(conditionsHold([withCondition('a', 'True')], { type: 'Synced' }, 'Widget a').passed).toBe(true);
    expect(conditionsHold([withCondition('a', 'False')], { type: 'Synced', status: 'False' }, 'Widget').passed).toBe(
      true,
    );
  });

  it.each([
    ['there is none', [], 'there is no Widget with app=x'],
    ['one says otherwise', [withCondition('a', 'True'), withCondition('b', 'Unknown')], '(shop/b: Unknown)'],
    ['one says nothing of it', [object('a', { status: { conditions: [] } })], '(shop/a: no such condition)'],
    ['one has no status', [object('a')], '(shop/a: no such condition)'],
  ])('waits while %s', (_, objects, words) => {
    const verdict = conditionsHold(objects, { type: 'Synced' }, 'Widget with app=x');
    expect(verdict).toMatchObject({ passed: false, why: expect.stringContaining(words) as string });
  });
});

describe('deploymentsAvailable', () => {
  const deployment = (replicas: number | undefined, available: number | undefined, [generation, observed] = [2, 2]) =>
    object(
      'cart',
      {
        spec: replicas === undefined ? {} : { replicas },
        status: { observedGeneration: observed, ...(available === undefined ? {} : { availableReplicas: available }) },
      },
      generation,
    );

  it.each([
    [3, 3, true],
    [undefined, 1, true],
    [0, undefined, true],
    [3, 2, false],
    [undefined, undefined, false],
  ])('with %s replicas wanted and %s available: %s', (replicas, available, passed) => {
    expect(deploymentsAvailable([deployment(replicas, available)], 'Deployment').passed).toBe(passed);
  });

  it('does not believe a status from before the last change, and wants at least one', () => {
    expect(deploymentsAvailable([deployment(3, 3, [3, 2])], 'Deployment')).toMatchObject({ passed: false });
    expect(deploymentsAvailable([], 'Deployment with app=x').why).toBe('there is no Deployment with app=x');
  });
});

describe('lackOfOwner', () => {
  const job = (fields: object) => lackOfOwner('Job', object('import', fields));
  it('lets a Job be that is over, or that is not to run', () => {
    expect(job({ status: { conditions: [{ type: 'Complete', status: 'True' }] } })).toBeUndefined();
    expect(job({ status: { conditions: [{ type: 'Failed', status: 'True' }] } })).toBeUndefined();
    expect(job({ spec: { suspend: true } })).toBeUndefined();
  });
  it('waits until the pods of a running Job are Ready', () => {
    expect(job({ status: { active: 2, ready: 1 } })).toBe('Job shop/import has 1 of 2 pods Ready');
    expect(job({ status: { active: 2, ready: 2 } })).toBeUndefined();
    expect(job({})).toBe('Job shop/import has 0 of 1 pods Ready');
  });
  it('counts the replicas of all others', () => {
    const short = object('db', { spec: { replicas: 3 }, status: { availableReplicas: 2 } });
    expect(lackOfOwner('StatefulSet', short)).toBe('StatefulSet shop/db has 2 of 3 replicas available');
  });
});

describe('queryVerdict', () => {
  const vector = (...result: object[]) => ({ status: 'success', data: { resultType: 'vector', result } });
  const ALERT = { metric: { alertname: 'Down', job: 'api' }, value: [1, '1'] };

  it('passes nothing for Empty and something for NotEmpty', () => {
    expect(queryVerdict(vector(), 'Empty').passed).toBe(true);
    expect(queryVerdict(vector(ALERT), 'NotEmpty').passed).toBe(true);
    expect(queryVerdict(vector(), 'NotEmpty')).toMatchObject({
      passed: false,
      why: 'the query returns nothing and shall return something',
    });
    expect(queryVerdict(vector(ALERT), 'Empty').why).toBe(
      'the query returns 1 series such as {alertname="Down", job="api"} and shall return nothing',
    );
  });

  it.each([
    ['an error', { status: 'error', errorType: 'bad_data', error: 'parse error: unexpected end' }, 'parse error'],
    ['what is no Prometheus', { ok: true }, 'no Prometheus'],
    ['no JSON', undefined, 'no Prometheus'],
    ['warnings, since a source may be missing', { ...vector(), warnings: ['store x is down'] }, 'store x is down'],
    ['a scalar', { status: 'success', data: { resultType: 'scalar', result: [1, '0'] } }, 'returns scalar'],
    ['a vector that is none', { status: 'success', data: { resultType: 'vector' } }, 'returns vector and not a list'],
  ])('passes neither with %s', (_, body, words) => {
    for (const wanted of ['Empty', 'NotEmpty'] as const) {
      expect(queryVerdict(body, wanted)).toMatchObject({
        passed: false,
        why: expect.stringContaining(words) as string,
      });
    }
  });
});
