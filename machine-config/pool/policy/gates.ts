import type { Gate } from '../../api/rollout-policy.js';
import type { NodeFacts, PoolFacts } from '../facts.js';
import { clip, nameSome } from '../sentences.js';
import { awaitsGates } from './after-node.js';
import { outlook, type Outlook, type OutlookFacts } from './outlook.js';
import { policyOf, updatedAt } from './rollout-facts.js';
import type { Closed } from './verdict.js';

/** A gate that decides about a start now, and has to be asked. */
export interface GateQuestion {
  /** Of this question in its pool, to give the answer by. */
  readonly id: string;
  readonly gate: Gate;
  readonly place: 'stage' | 'betweenNodes' | 'afterNode';
  /** The stage that it stands before. */
  readonly stage?: string;
  /** Names of the nodes that it is about: those that the rollout has updated, or the ones that wait for it. */
  readonly nodes: readonly string[];
}

export interface GateAnswer {
  readonly passed: boolean;
  /** What it found, or why it could not be asked; to be read after the name of the gate. */
  readonly sentence: string;
  /** Epoch milliseconds at which it is worth asking again, if that can be told. */
  readonly until?: number;
}

/** By the id of the question; one without an answer is not passed. */
export type GateAnswers = Readonly<Record<string, GateAnswer>>;

/** How often a gate is asked that is not passed, where it does not say itself when that may be worth it. */
const ASK_AGAIN_MILLISECONDS = 30_000;
const NOT_ASKED_MILLISECONDS = 1_000;

function names(nodes: readonly NodeFacts[]): string[] {
  return nodes.map(({ name }) => name).sort();
}

/** About each node by itself; all others ask about the cluster. */
function isAboutNodes(gate: Gate): boolean {
  return gate.nodeReady !== undefined || gate.podsRescheduled !== undefined;
}

/** The nodes that keep their slots until the gates after a node have been passed. */
function waitingNodes({ rollout }: Outlook): NodeFacts[] {
  return rollout.members.filter((node) => awaitsGates(node, rollout.pool));
}

function afterNode(view: Outlook): GateQuestion[] {
  const waiting = names(waitingNodes(view));
  if (waiting.length === 0) return [];
  return (policyOf(view.rollout.pool).gates?.afterNode ?? []).flatMap((gate): GateQuestion[] => {
    const id = `afterNode/${gate.name}`;
    if (!isAboutNodes(gate)) return [{ id, gate, place: 'afterNode', nodes: waiting }];
    return waiting.map((node) => ({ id: `${id}/${node}`, gate, place: 'afterNode', nodes: [node] }));
  });
}

/** Those before the stage and before each node; only where a node would start if they were passed. */
function beforeStart({ rollout, stage, choice }: Outlook): GateQuestion[] {
  if (!choice.starts.some(({ begins }) => begins)) return [];
  const { pool } = rollout;
  const nodes = names(rollout.members.filter((node) => updatedAt(node, pool) !== undefined));
  const before = stage === undefined || stage.begun ? [] : (stage.stage.gates ?? []);
  const ofStage = before.map((gate): GateQuestion => {
    const name = stage?.stage.name ?? '';
    return { id: `stage/${name}/${gate.name}`, gate, place: 'stage', stage: name, nodes };
  });
  const between = policyOf(pool).gates?.betweenNodes ?? [];
  return [
    ...ofStage,
    ...between.map((gate): GateQuestion => ({ id: `betweenNodes/${gate.name}`, gate, place: 'betweenNodes', nodes })),
  ];
}

function hasGates(pool: PoolFacts): boolean {
  const { gates, stages = [] } = policyOf(pool);
  return gates !== undefined || stages.some((stage) => stage.gates !== undefined);
}

/**
 * The gates that decide about a start now. None while nothing would start anyway: a pool that is stopped or out of its
 * window asks nobody.
 */
export function gatesInQuestion(facts: OutlookFacts): GateQuestion[] {
  const { pool, members } = facts;
  const { target } = pool;
  if (target === undefined || pool.deleting || !hasGates(pool)) return [];
  const waiting = new Set(members.filter((node) => awaitsGates(node, pool)).map(({ name }) => name));
  const view = outlook(facts, target, waiting);
  if (view.stop !== undefined || pool.paused) return [];
  return [...afterNode(view), ...beforeStart(view)];
}

function answerTo({ id }: GateQuestion, answers: GateAnswers, now: number): GateAnswer {
  const found = Object.hasOwn(answers, id) ? answers[id] : undefined;
  return found ?? { passed: false, sentence: 'it has not been asked yet', until: now + NOT_ASKED_MILLISECONDS };
}

/** The nodes that keep their slots no longer: all gates after a node are passed for them. */
export function passedNodes(questions: readonly GateQuestion[], answers: GateAnswers): Set<string> {
  const after = questions.filter(({ place }) => place === 'afterNode');
  const failed = new Set(after.filter((one) => !answerTo(one, answers, 0).passed).flatMap(({ nodes }) => nodes));
  return new Set(after.flatMap(({ nodes }) => nodes).filter((node) => !failed.has(node)));
}

function describe({ gate, place, stage, nodes }: GateQuestion, pool: string, answer: GateAnswer): string {
  const where = {
    stage: `before stage ${stage ?? ''}`,
    betweenNodes: 'before the next node',
    afterNode: `after ${nameSome(nodes)}`,
  }[place];
  return `Gate ${gate.name} of pool ${pool} ${where} is not passed: ${clip(answer.sentence, 400)}`;
}

/** Why the gates of these places keep updates from starting, in one sentence; undefined: all that are asked are passed. */
export function closedGates(
  questions: readonly GateQuestion[],
  answers: GateAnswers,
  { pool, now }: { readonly pool: string; readonly now: number },
): Closed | undefined {
  const failed = questions
    .map((question) => ({ question, answer: answerTo(question, answers, now) }))
    .filter(({ answer }) => !answer.passed);
  const [first, ...others] = failed;
  if (first === undefined) return undefined;
  const more =
    others.length === 0 ? '' : `; ${others.length} more ${others.length === 1 ? 'gate' : 'gates'} not passed`;
  const times = failed.map(({ answer }) => answer.until ?? now + ASK_AGAIN_MILLISECONDS);
  return {
    code: 'GateClosed',
    sentence: `${describe(first.question, pool, first.answer)}${more}`,
    until: times.reduce((a, b) => Math.min(a, b)),
  };
}
