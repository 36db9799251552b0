import { parseArgs } from 'node:util';

/** What `npm run bench -- rollout` is asked to measure. */
export interface RolloutBenchOptions {
  readonly nodes: number;
  /** As spec.maxUnavailable of a pool. */
  readonly maxUnavailable: number | string;
  /** How long a node is away in its update: what even a perfect engine has to wait for. */
  readonly stepSeconds: number;
  /** Pods on each node, which its drain evicts. */
  readonly pods: number;
  /** Whether the same workflows are measured with nothing to do, beside it. */
  readonly floor: boolean;
  readonly json: boolean;
  /** The lab's folder is kept, with the logs of all processes. */
  readonly keep: string | undefined;
}

export const ROLLOUT_USAGE =
  'npm run bench -- rollout --nodes N --max-unavailable 10%|N --step 30s [--pods N] [--no-floor] [--keep FOLDER] [--json]';

const LARGEST_FLEET = 20_000;

function whole(name: string, text: string, least: number): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= least && value <= LARGEST_FLEET) return value;
  throw new Error(`--${name} ${text}: write a whole number from ${least} to ${LARGEST_FLEET}; usage: ${ROLLOUT_USAGE}`);
}

function seconds(text: string): number {
  const [, number, unit] = /^(\d+(?:\.\d+)?)(ms|s|m)$/.exec(text) ?? [];
  if (number === undefined) {
    throw new Error(`--step ${text}: write a time such as 0s, 500ms, 30s or 2m; usage: ${ROLLOUT_USAGE}`);
  }
  return Number(number) * { ms: 0.001, s: 1, m: 60 }[unit as 'ms' | 's' | 'm'];
}

function share(text: string): number | string {
  if (/^[1-9]\d{0,2}%$/.test(text) && Number(text.slice(0, -1)) <= 100) return text;
  if (text.endsWith('%')) {
    throw new Error(`--max-unavailable ${text}: write a percentage from 1% to 100%; usage: ${ROLLOUT_USAGE}`);
  }
  return whole('max-unavailable', text, 1);
}

/** @throws what is wrong, in one line. */
export function parseRolloutOptions(args: readonly string[]): RolloutBenchOptions {
  const { values } = parseArgs({
    args: [...args],
    allowNegative: true,
    options: {
      nodes: { type: 'string', default: '20' },
      'max-unavailable': { type: 'string', default: '10%' },
      step: { type: 'string', default: '5s' },
      pods: { type: 'string', default: '0' },
      floor: { type: 'boolean', default: true },
      keep: { type: 'string' },
      json: { type: 'boolean', default: false },
    },
  });
  return {
    nodes: whole('nodes', values.nodes, 1),
    maxUnavailable: share(values['max-unavailable']),
    stepSeconds: seconds(values.step),
    pods: whole('pods', values.pods, 0),
    floor: values.floor,
    json: values.json,
    keep: values.keep,
  };
}
