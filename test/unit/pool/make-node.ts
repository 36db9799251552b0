import type { NodeFacts, PoolFacts } from '../../../machine-config/pool/facts.js';

export const OLD = 'rendered-worker-old';
export const NEW = 'rendered-worker-new';
export const NOW = Date.parse('2026-03-01T12:00:00Z');

/** A managed, ready node that runs OLD and was granted nothing else. `undefined` takes a fact away. */
export function makeNode(
  name: string,
  overrides: { [K in keyof NodeFacts]?: NodeFacts[K] | undefined } = {},
): NodeFacts {
  const facts = {
    name,
    uid: `uid-${name}`,
    createdAt: '2026-01-01T00:00:00Z',
    labels: {},
    deleting: false,
    unschedulable: false,
    ready: true,
    bootId: 'boot-1',
    worker: '1.0.0',
    current: OLD,
    desired: OLD,
    state: 'Done',
    ...overrides,
  };
  return Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined)) as unknown as NodeFacts;
}

export function makeNodes(...names: string[]): NodeFacts[] {
  return names.map((name) => makeNode(name));
}

export const updatedTo = (name: string, target: string): NodeFacts =>
  makeNode(name, { current: target, desired: target });

/** An update to `target` failed: it was granted it, does not run it and says why. */
export function failedOn(name: string, target: string, attempts: number, at: number): NodeFacts {
  return makeNode(name, {
    desired: target,
    state: 'Degraded',
    reason: 'unit a.service does not start',
    failure: { target, attempts, at: new Date(at).toISOString() },
  });
}

export function makePool(overrides: Partial<PoolFacts> = {}): PoolFacts {
  return { name: 'worker', uid: 'uid-pool', paused: false, deleting: false, target: NEW, ...overrides };
}
