import type { Gate } from '../../machine-config/api/rollout-policy.js';
import type { NodeFacts } from '../../machine-config/pool/facts.js';
import { nodesReady, waits, type GateVerdict } from '../../machine-config/pool/gate-verdicts.js';
import type { GateAnswer, GateAnswers, GateQuestion } from '../../machine-config/pool/policy/gates.js';
import type { ControlDependencies } from './control-dependencies.js';
import { ObjectGates } from './gate-objects.js';
import { podsRescheduled } from './gate-rescheduled.js';
import { Prometheus } from './prometheus.js';

/** A source that is slower than that is as good as down: the turn is not to wait for it. */
const TIMEOUT_MILLISECONDS = 4_000;
/** One answer serves all turns of this time, so that a rollout that is busy does not hammer the source. */
const REMEMBERED_MILLISECONDS = 8_000;
/** Nobody asks about so many at once; what was answered first is forgotten first. */
const MOST_REMEMBERED = 500;

export interface GatesOptions {
  readonly prometheus?: Prometheus;
  /** Longest wait for one answer. */
  readonly timeoutMilliseconds?: number;
}

interface Remembered {
  readonly at: number;
  readonly answer: Promise<GateVerdict>;
}

/**
 * Asks the gates of rollouts. Each is asked by itself, all at the same time, each for a few seconds at most; one whose
 * source is down, slow or answers with an error is not passed, with the reason. Never fails.
 */
export class Gates {
  readonly #dependencies: Pick<ControlDependencies, 'client' | 'now'>;
  readonly #objects: ObjectGates;
  readonly #prometheus: Prometheus;
  readonly #timeoutMilliseconds: number;
  readonly #remembered = new Map<string, Remembered>();

  constructor(dependencies: Pick<ControlDependencies, 'client' | 'now'>, options: GatesOptions = {}) {
    this.#dependencies = dependencies;
    this.#objects = new ObjectGates(dependencies.client);
    this.#timeoutMilliseconds = options.timeoutMilliseconds ?? TIMEOUT_MILLISECONDS;
    this.#prometheus = options.prometheus ?? new Prometheus(this.#timeoutMilliseconds);
  }

  /** `members`: the pool's nodes, of which the questions name some. */
  async answer(questions: readonly GateQuestion[], members: readonly NodeFacts[]): Promise<GateAnswers> {
    if (questions.length === 0) return {};
    const facts = new Map(members.map((node) => [node.name, node]));
    const answers = await Promise.all(
      questions.map(async ({ id, gate, nodes }): Promise<[string, GateAnswer]> => {
        const about = nodes.flatMap((name) => facts.get(name) ?? []);
        const { passed, why, until } = await this.#ask(gate, about);
        return [id, { passed, sentence: why, ...(until === undefined ? {} : { until }) }];
      }),
    );
    return Object.fromEntries(answers);
  }

  async #ask(gate: Gate, nodes: readonly NodeFacts[]): Promise<GateVerdict> {
    if (gate.nodeReady !== undefined) return nodesReady(nodes, gate.nodeReady, this.#dependencies.now());
    const owners = gate.podsRescheduled && nodes.map(({ evictedOwners }) => evictedOwners);
    // Gates of several pools that ask for the same are one question.
    const key = JSON.stringify([{ ...gate, name: '' }, owners]);
    const now = this.#dependencies.now();
    const known = this.#remembered.get(key);
    if (known !== undefined && now - known.at < REMEMBERED_MILLISECONDS) return known.answer;
    const answer = this.#inTime(this.#askSource(gate, nodes));
    this.#remember(key, { at: now, answer });
    return answer;
  }

  #askSource(gate: Gate, nodes: readonly NodeFacts[]): Promise<GateVerdict> {
    if (gate.condition !== undefined) return this.#objects.condition(gate.condition);
    if (gate.available !== undefined) return this.#objects.available(gate.available);
    if (gate.prometheus !== undefined) return this.#prometheus.ask(gate.prometheus);
    if (gate.podsRescheduled !== undefined) return podsRescheduled(this.#dependencies.client, nodes);
    return Promise.resolve(waits('it asks for nothing that this version knows'));
  }

  async #inTime(asked: Promise<GateVerdict>): Promise<GateVerdict> {
    let timer: NodeJS.Timeout | undefined;
    const seconds = this.#timeoutMilliseconds / 1000;
    const late = new Promise<GateVerdict>((resolve) => {
      timer = setTimeout(() => resolve(waits(`no answer within ${seconds} s`)), this.#timeoutMilliseconds);
    });
    try {
      return await Promise.race([asked, late]);
    } catch (error) {
      return waits(error instanceof Error ? error.message : String(error));
    } finally {
      clearTimeout(timer);
    }
  }

  #remember(key: string, remembered: Remembered): void {
    // The oldest come first in a Map.
    this.#remembered.delete(key);
    this.#remembered.set(key, remembered);
    const [oldest] = this.#remembered.keys();
    if (this.#remembered.size > MOST_REMEMBERED && oldest !== undefined) this.#remembered.delete(oldest);
  }
}
