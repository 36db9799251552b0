import { describe, expect, it } from 'vitest';
import {
  compareVersions,
  formatGrantRecord,
  neededVersion,
  parseGrantRecord,
  recordGrant,
  undecided,
  type NodesView,
  type PendingGrant,
} from '../../../machine-config/pool/grant-record.js';
import { makeNode, NEW, NOW, OLD } from './make-node.js';

const MINUTE = 60_000;
const at = new Date(NOW - 1000).toISOString();
const pending = (node: string, more: Partial<PendingGrant> = {}): PendingGrant => ({
  node,
  at,
  target: NEW,
  on: '10',
  ...more,
});
/** Nodes by name and version; `version` undefined: read live. */
const view = (nodes: Record<string, string>, version?: string): NodesView => ({
  ...(version === undefined ? {} : { version }),
  nodes: new Map(
    Object.entries(nodes).map(([name, resourceVersion]) => [name, { resourceVersion, facts: makeNode(name) }]),
  ),
});

describe('compareVersions', () => {
  it('compares whole numbers of any length', () => {
    expect(compareVersions('9', '10')).toBeLessThan(0);
    expect(compareVersions('99999999999999999999', '100000000000000000000')).toBeLessThan(0);
    expect(compareVersions('42', '42')).toBe(0);
    expect(compareVersions('43', '42')).toBeGreaterThan(0);
  });

  it.each(['', 'x', '010', '-1', '1.5', '0'])('says nothing of %j', (version) => {
    expect(compareVersions(version, '1')).toBeUndefined();
    expect(compareVersions('1', version)).toBeUndefined();
  });
});

describe('the record of grants on a pool', () => {
  it('is read as it was written', () => {
    const record = { seen: '12', pending: [pending('a'), pending('b', { force: 'boot-1' })] };
    expect(parseGrantRecord(formatGrantRecord(record))).toEqual(record);
  });

  it('shows a control worker of before version 0.2 the last grant where it looks for it', () => {
    const text = formatGrantRecord({ seen: '12', pending: [pending('a'), pending('b')] });
    expect(JSON.parse(text)).toMatchObject({ node: 'b', at, target: NEW });
  });

  it('of before version 0.2 is one grant, and needs a live look', () => {
    const record = parseGrantRecord(JSON.stringify({ node: 'a', at, target: NEW }));
    expect(record).toEqual({ pending: [{ node: 'a', at, target: NEW }] });
    expect(neededVersion(record)).toBeUndefined();
  });

  it.each([undefined, '', 'x', '[]', '{}', '{"pending":[{"node":1}],"seen":1}'])('%j says nothing', (text) => {
    expect(parseGrantRecord(text)).toEqual({ pending: [] });
    expect(neededVersion(parseGrantRecord(text))).toBeUndefined();
  });

  it('asks for a view that has come as far as the grants and what was forgotten', () => {
    expect(neededVersion({ seen: '12', pending: [] })).toBe('12');
    expect(neededVersion({ seen: '9', pending: [pending('a', { on: '10' }), pending('b', { on: '8' })] })).toBe('10');
    expect(neededVersion({ seen: 'x', pending: [] })).toBeUndefined();
  });
});

describe('a recorded grant', () => {
  const counts = (grant: PendingGrant, seen: NodesView) =>
    undecided({ seen: '1', pending: [grant] }, seen, NOW).length > 0;

  it('counts while the view shows the Node in the version on which it was to be written', () => {
    expect(counts(pending('a'), view({ a: '10' }, '20'))).toBe(true);
    expect(counts(pending('a'), view({ a: '10' }))).toBe(true);
  });

  it('is over when the Node has changed since, or is gone', () => {
    expect(counts(pending('a'), view({ a: '11' }, '20'))).toBe(false);
    expect(counts(pending('a'), view({ b: '10' }, '20'))).toBe(false);
  });

  it('is over when it is older than any attempt to write it can last', () => {
    const old = new Date(NOW - 10 * MINUTE).toISOString();
    expect(counts(pending('a', { at: old }), view({ a: '10' }))).toBe(false);
    expect(counts(pending('a', { at: 'x' }), view({ a: '10' }))).toBe(false);
  });

  it('of before version 0.2 counts until the node has got there', () => {
    const before: PendingGrant = { node: 'a', at, target: NEW };
    expect(counts(before, view({ a: '11' }))).toBe(true);
    expect(counts({ ...before, target: OLD }, view({ a: '11' }))).toBe(false);
    expect(counts({ ...before, force: 'boot-1' }, view({ a: '11' }))).toBe(false);
    expect(counts(before, view({}))).toBe(false);
  });
});

describe('recordGrant', () => {
  const next = pending('n', { on: '30' });

  it('keeps what the view does not show, and forgets what it shows at the version that showed it', () => {
    const record = { seen: '5', pending: [pending('a'), pending('b')] };
    expect(recordGrant(record, view({ a: '10', b: '17', n: '30' }, '99'), next, NOW)).toEqual({
      seen: '17',
      pending: [pending('a'), next],
    });
  });

  it('takes the version of the view for a Node that is gone, and leaves it to a later view where there is none', () => {
    const record = { seen: '5', pending: [pending('a')] };
    expect(recordGrant(record, view({ n: '30' }, '99'), next, NOW)).toEqual({ seen: '99', pending: [next] });
    expect(recordGrant(record, view({ n: '30' }), next, NOW)).toEqual({ seen: '5', pending: [pending('a'), next] });
  });

  it('begins with the newest of all Nodes where nothing is known of earlier grants', () => {
    expect(recordGrant({ pending: [] }, view({ a: '9', b: '40', n: '30' }), next, NOW)).toEqual({
      seen: '40',
      pending: [next],
    });
  });

  it('replaces an earlier grant of the same node', () => {
    const record = { seen: '5', pending: [pending('n')] };
    expect(recordGrant(record, view({ n: '30' }), next, NOW)).toEqual({ seen: '5', pending: [next] });
  });

  it('never says that a view is good enough where versions cannot be compared', () => {
    const record = recordGrant({ pending: [] }, view({ a: 'x', n: '30' }), next, NOW);
    expect(neededVersion(record)).toBeUndefined();
  });
});
