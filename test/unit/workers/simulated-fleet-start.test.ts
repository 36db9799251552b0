import { expect, it } from 'vitest';
import { playAll, type Play } from '../../../workers/simulated-fleet-start.js';

/** Machines that come up and end when the test says so. */
function machines() {
  const begun: string[] = [];
  const says = new Map<string, { up: () => void; end: () => void; fail: (error: Error) => void }>();
  const play: Play<string> = (node, onUp) =>
    new Promise((resolve, reject) => {
      begun.push(node);
      says.set(node, { up: onUp, end: resolve, fail: reject });
    });
  const of = (node: string) => {
    const machine = says.get(node);
    if (machine === undefined) throw new Error(`${node} has not begun`);
    return machine;
  };
  return { begun, play, of };
}

/** Everything that is ready to run has run. */
const settled = () => new Promise((resolve) => setImmediate(resolve));
const NODES = ['a', 'b', 'c', 'd'];

it('starts a few at a time, and the next one when one is up and still running', async () => {
  const { begun, play, of } = machines();
  const ended = playAll(NODES, play, { startsAtOnce: 2, signal: new AbortController().signal });
  await settled();
  expect(begun).toEqual(['a', 'b']);
  of('b').up();
  await settled();
  expect(begun).toEqual(['a', 'b', 'c']);
  of('a').up();
  of('c').up();
  await settled();
  expect(begun).toEqual(NODES);
  for (const node of NODES) of(node).end();
  await expect(ended).resolves.toBeUndefined();
});

it('starts all at once where nothing else is said', async () => {
  const { begun, play, of } = machines();
  const ended = playAll(NODES, play, { signal: new AbortController().signal });
  await settled();
  expect(begun).toEqual(NODES);
  for (const node of NODES) of(node).end();
  await ended;
});

it('waits for no machine that ends before it is up, and ends only when all have ended', async () => {
  const { begun, play, of } = machines();
  let isOver = false;
  const ended = playAll(NODES, play, { startsAtOnce: 1, signal: new AbortController().signal }).then(() => {
    isOver = true;
  });
  for (const [at, node] of NODES.entries()) {
    await settled();
    expect(begun).toEqual(NODES.slice(0, at + 1));
    if (node !== 'a') of(node).end();
    else of(node).up();
  }
  await settled();
  expect(isOver).toBe(false);
  of('a').end();
  await ended;
});

it('tells of a machine that failed, and starts the others all the same', async () => {
  const { begun, play, of } = machines();
  const ended = playAll(NODES, play, { startsAtOnce: 1, signal: new AbortController().signal });
  const failure = expect(ended).rejects.toThrow('no power');
  for (const node of NODES) {
    await settled();
    if (node === 'b') of(node).fail(new Error('no power'));
    else of(node).up();
  }
  await failure;
  expect(begun).toEqual(NODES);
});

it('starts nothing more once it is stopped', async () => {
  const { begun, play, of } = machines();
  const stopping = new AbortController();
  const ended = playAll(NODES, play, { startsAtOnce: 1, signal: stopping.signal });
  await settled();
  stopping.abort();
  of('a').end();
  await ended;
  expect(begun).toEqual(['a']);
});
