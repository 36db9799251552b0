import { isRecord } from '../ignition/findings.js';
import { DRYDOCK_ANNOTATIONS } from '../api/flavour.js';
import type { Approval, DrainBlocked, LastUpdate, NodeFacts } from './facts.js';

/*
 * What Drydock and people write into annotations about a rollout. Anything that cannot be read is as if it were absent:
 * an annotation is written by hand at times, and a typing error must not stop a controller.
 */

/** The annotations by name, without those that are empty. */
export type Annotations = Partial<Record<string, string>>;

/** The object in a JSON text; undefined: there is none. */
export function jsonObject(text: string | undefined): Readonly<Record<string, unknown>> | undefined {
  const value = json(text);
  return isRecord(value) ? value : undefined;
}

function json(text: string | undefined): unknown {
  // Most annotations are absent on most of thousands of nodes, and an exception is a hundred times as slow.
  if (text === undefined || text === '') return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function strings(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : [];
}

/** Epoch milliseconds of an ISO 8601 time; undefined: it is none. */
export function timeIn(text: string | undefined): number | undefined {
  const time = Date.parse(text ?? '');
  return Number.isNaN(time) ? undefined : time;
}

function drainBlocked(text: string | undefined): DrainBlocked | undefined {
  const { sentence, pods, budgets } = jsonObject(text) ?? {};
  return typeof sentence === 'string' ? { sentence, pods: strings(pods), budgets: strings(budgets) } : undefined;
}

function lastUpdate(text: string | undefined): LastUpdate | undefined {
  const { target, at, seconds } = jsonObject(text) ?? {};
  const time = typeof at === 'string' ? timeIn(at) : undefined;
  if (typeof target !== 'string' || time === undefined) return undefined;
  const steps = Object.entries(isRecord(seconds) ? seconds : {}).filter(
    (entry): entry is [string, number] => typeof entry[1] === 'number',
  );
  return { target, at: time, seconds: Object.fromEntries(steps) };
}

/** Which stages are approved, from the annotations of a MachineConfigPool. */
export function approvalIn(annotations: Annotations): Approval | undefined {
  const { config, stages } = jsonObject(annotations[DRYDOCK_ANNOTATIONS.approval]) ?? {};
  if (typeof config !== 'string') return undefined;
  const by = annotations[DRYDOCK_ANNOTATIONS.approvedBy];
  return { config, stages: strings(stages), ...(by === undefined ? {} : { by }) };
}

type RolloutFacts = Pick<
  NodeFacts,
  | 'hold'
  | 'heldCordon'
  | 'release'
  | 'retryAt'
  | 'drainSince'
  | 'drainBlocked'
  | 'lastUpdate'
  | 'evictedOwners'
  | 'gatesPassed'
  | 'noDrain'
>;

/** What the annotations of a Node say about its place in a rollout. */
export function rolloutFacts(annotations: Annotations): RolloutFacts {
  const read = (key: keyof typeof DRYDOCK_ANNOTATIONS) => annotations[DRYDOCK_ANNOTATIONS[key]];
  const owners = strings(json(read('evictedOwners')));
  const facts = {
    hold: read('hold'),
    heldCordon: read('heldCordon') === 'true' ? true : undefined,
    release: read('release'),
    retryAt: timeIn(read('retry')),
    drainSince: timeIn(read('drainSince')),
    drainBlocked: drainBlocked(read('drainBlocked')),
    lastUpdate: lastUpdate(read('lastUpdate')),
    evictedOwners: owners.length === 0 ? undefined : owners,
    gatesPassed: read('gatesPassed'),
    noDrain: read('noDrain'),
  };
  return Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined));
}
