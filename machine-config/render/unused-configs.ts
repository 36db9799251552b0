import { poolInName } from './name.js';
import { compareText } from './select.js';

/** A rendered config as far as it must be known to decide whether it goes. */
export interface StoredConfig {
  readonly name: string;
  /** Epoch milliseconds. */
  readonly createdAt: number;
}

export interface UnusedConfigsInput {
  readonly pool: string;
  /** MachineConfigs that the pool owns. */
  readonly configs: readonly StoredConfig[];
  /** What any Node or pool names: see namesIn. */
  readonly named: ReadonlySet<string>;
  /** How many that nothing names are kept, the newest. */
  readonly keep: number;
  /** Younger ones stay whatever nobody says of them: a machine that boots with one is no Node yet. */
  readonly minAgeMs: number;
  /** Epoch milliseconds. */
  readonly now: number;
}

/**
 * The rendered configs of a pool that may be deleted, oldest first: nothing names them, they are old, and as many newer
 * ones are kept as is wanted. In doubt one stays: without its config a node is Degraded.
 */
export function unusedConfigs({ pool, configs, named, keep, minAgeMs, now }: UnusedConfigsInput): string[] {
  return configs
    .filter(({ name }) => poolInName(name) === pool && !named.has(name))
    .toSorted((one, other) => other.createdAt - one.createdAt || compareText(one.name, other.name))
    .slice(keep)
    .filter(({ createdAt }) => now - createdAt >= minAgeMs)
    .map(({ name }) => name)
    .reverse();
}

const RENDERED_NAME = /rendered-[a-z0-9.-]*?-[\da-f]{32}(?![\da-z-])/gu;

/**
 * Every name of a rendered config that stands anywhere in a value: in a field of today or of tomorrow, alone or inside of
 * a text such as an annotation in JSON.
 */
export function namesIn(value: unknown): Set<string> {
  const text = value === undefined ? '' : JSON.stringify(value);
  return new Set(text.match(RENDERED_NAME) ?? []);
}
