import { durationOr } from '../api/duration.js';
import { isRecord } from '../ignition/findings.js';
import type { NodeFacts } from './facts.js';
import { clip, countOf, nameSome, timeOf } from './sentences.js';

/*
 * What is read from the answers of the sources of gates. Only a clear yes passes a gate: what is missing, empty or
 * cannot be read means wait, with the reason.
 */

/** Whether a gate is passed, and what it says: the reason why not, or what it saw. */
export interface GateVerdict {
  readonly passed: boolean;
  /** Without the name of the gate, to be read after it. */
  readonly why: string;
  /** Epoch milliseconds at which it passes if nothing changes. */
  readonly until?: number;
}

const passes = (why: string): GateVerdict => ({ passed: true, why });
export const waits = (why: string, until?: number): GateVerdict => ({
  passed: false,
  why: clip(why, 400),
  ...(until === undefined ? {} : { until }),
});

interface Unready {
  readonly name: string;
  readonly why: string;
  readonly until?: number;
}

function unready({ name, ...node }: NodeFacts, milliseconds: number, now: number): Unready | undefined {
  if (!node.ready) return { name, why: node.notReadyBecause ?? 'not ready' };
  if (milliseconds === 0) return undefined;
  if (node.readinessSince === undefined) return { name, why: 'it does not say since when it is Ready' };
  const until = node.readinessSince + milliseconds;
  return until <= now ? undefined : { name, why: `Ready since ${timeOf(node.readinessSince)}`, until };
}

/** Every node is Ready, and has been for so long. `now` in epoch milliseconds. */
export function nodesReady(
  nodes: readonly NodeFacts[],
  { for: time }: { readonly for: string },
  now: number,
): GateVerdict {
  const waiting = nodes.flatMap((node) => unready(node, durationOr(time, 0), now) ?? []);
  const [first] = waiting;
  if (first === undefined) return passes(`${countOf(nodes.length, 'node')} Ready for ${time}`);
  const known = waiting.flatMap(({ until }) => until ?? []);
  const last = known.length === waiting.length ? Math.max(...known) : undefined;
  const names = nameSome(waiting.map(({ name }) => name));
  return waits(`${names} must be Ready for ${time} (${first.name}: ${first.why})`, last);
}

/** The part of any object that is looked at. */
interface Judged {
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly generation?: number };
}

const nameOf = ({ metadata: { namespace, name } }: Judged) => (namespace === undefined ? name : `${namespace}/${name}`);

const field = (object: unknown, key: string): unknown => (isRecord(object) ? object[key] : undefined);

const count = (object: unknown, key: string, otherwise: number): number => {
  const value = field(object, key);
  return typeof value === 'number' ? value : otherwise;
};

/** Every object, at least one, has the condition with the status. `what` names the objects for people. */
export function conditionsHold(
  objects: readonly Judged[],
  condition: { readonly type: string; readonly status?: string | undefined },
  what: string,
): GateVerdict {
  const { type, status: wanted = 'True' } = condition;
  if (objects.length === 0) return waits(`there is no ${what}`);
  const missing = objects.filter((object) => statusOf(object, type) !== wanted);
  const [first] = missing;
  if (first === undefined) return passes(`${type} is ${wanted}`);
  const is = statusOf(first, type);
  return waits(
    `${type} of ${what} must be ${wanted}, which it is not of ${nameSome(missing.map(nameOf), 3)} ` +
      `(${nameOf(first)}: ${is ?? 'no such condition'})`,
  );
}

function statusOf(object: Judged, type: string): string | undefined {
  const conditions = field(field(object, 'status'), 'conditions');
  const found: unknown = Array.isArray(conditions)
    ? conditions.find((each) => field(each, 'type') === type)
    : undefined;
  const status = field(found, 'status');
  return typeof status === 'string' ? status : undefined;
}

/** All Deployments, at least one, have every replica available. */
export function deploymentsAvailable(objects: readonly Judged[], what: string): GateVerdict {
  if (objects.length === 0) return waits(`there is no ${what}`);
  const lacking = objects.flatMap((object) => lackOf(object) ?? []);
  return lacking.length === 0 ? passes('every replica is available') : waits(nameSome(lacking, 3));
}

/** Why an object with replicas lacks some; undefined: it has all that it shall have. */
function lackOf(object: Judged): string | undefined {
  const status = field(object, 'status');
  const { generation } = object.metadata;
  if (generation !== undefined && count(status, 'observedGeneration', 0) < generation) {
    return `${nameOf(object)} has not been looked at since it was changed`;
  }
  const wanted = count(field(object, 'spec'), 'replicas', 1);
  const available = count(status, 'availableReplicas', 0);
  return available >= wanted ? undefined : `${nameOf(object)} has ${available} of ${wanted} replicas available`;
}

/** Whether what owns evicted pods runs as it should by now; undefined: it does. Of a kind that is not known nothing is asked. */
export function lackOfOwner(kind: string, object: Judged): string | undefined {
  const lack = kind === 'Job' ? lackOfJob(object) : lackOf(object);
  return lack === undefined ? undefined : `${kind} ${lack}`;
}

function lackOfJob(object: Judged): string | undefined {
  if (field(field(object, 'spec'), 'suspend') === true) return undefined;
  if (['Complete', 'Failed', 'Suspended'].some((type) => statusOf(object, type) === 'True')) return undefined;
  const status = field(object, 'status');
  const active = count(status, 'active', 0);
  const ready = count(status, 'ready', 0);
  return active > 0 && ready >= active
    ? undefined
    : `${nameOf(object)} has ${ready} of ${Math.max(active, 1)} pods Ready`;
}

/** What Prometheus answered to an instant query, read as the gate asks. */
export function queryVerdict(body: unknown, wanted: 'Empty' | 'NotEmpty'): GateVerdict {
  const status = field(body, 'status');
  if (status !== 'success') {
    const error = field(body, 'error');
    if (status === 'error')
      return waits(`the query failed: ${typeof error === 'string' ? clip(error, 200) : 'no reason given'}`);
    return waits('what answered is no Prometheus: it gave no status');
  }
  const warnings = field(body, 'warnings');
  if (Array.isArray(warnings) && warnings.length > 0) {
    // A source behind it may be down: what it has not seen, it does not tell.
    return waits(`the answer may be incomplete: ${clip(String(warnings[0]), 200)}`);
  }
  const data = field(body, 'data');
  const result = field(data, 'result');
  if (field(data, 'resultType') !== 'vector' || !Array.isArray(result)) {
    return waits(
      `the query returns ${String(field(data, 'resultType'))} and not a list of series: compare it to something`,
    );
  }
  const found = result.length === 0 ? 'nothing' : `${result.length} series${example(result[0])}`;
  const isPassed = (result.length === 0) === (wanted === 'Empty');
  return isPassed
    ? passes(`the query returns ${found}`)
    : waits(`the query returns ${found} and shall return ${WANTED[wanted]}`);
}

const WANTED = { Empty: 'nothing', NotEmpty: 'something' } as const;

/** ` such as {alertname="Down", job="api"}`, so that people see what is the matter. */
function example(series: unknown): string {
  const metric = field(series, 'metric');
  if (!isRecord(metric)) return '';
  const labels = Object.entries(metric).map(([name, value]) => `${name}="${String(value)}"`);
  return ` such as {${clip(labels.join(', '), 160)}}`;
}
