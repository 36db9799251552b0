import type { NodeFacts } from '../../machine-config/pool/facts.js';

/** Now, or a moment after the last failure of these nodes: their clocks may be ahead of ours. */
export function timeAfterFailures(now: Date, nodes: readonly NodeFacts[]): string {
  const failures = nodes.flatMap(({ failure }) => (failure === undefined ? [] : [Date.parse(failure.at)]));
  const known = failures.filter((time) => !Number.isNaN(time)).map((time) => time + 1);
  return new Date(Math.max(now.getTime(), ...known)).toISOString();
}
