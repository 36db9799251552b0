import type { Violation } from './observer/observer.js';
import type { ChaosResult } from './run.js';

const MOST_VIOLATIONS = 20;

/** The result, for people. */
export function describeResult(result: ChaosResult): string[] {
  const { seen, violations, unconverged, plant } = result;
  const shown = violations.slice(0, MOST_VIOLATIONS);
  const more = violations.length - shown.length;
  return [
    '',
    `seed ${result.seed}, ${result.nodes} nodes, ${result.seconds} s${plant === null ? '' : `, planted: ${plant}`}`,
    `faults: ${counted(result.faults)}`,
    `calls through the proxy: ${counted(result.calls)}`,
    `seen: ${counted({ ...seen })}`,
    `ended by themselves and started again: ${counted(result.endedByThemselves)}`,
    ...shown.flatMap(describeViolation),
    ...(more > 0 ? [`and ${more} more violations`] : []),
    `${violations.length} violations; ${convergence(plant, unconverged)}`,
  ];
}

function convergence(plant: string | null, unconverged: string | null): string {
  if (plant !== null) return 'convergence was not waited for';
  return unconverged ?? 'converged';
}

function describeViolation({ promise, sentence, revision, at, history }: Violation): string[] {
  const when = `${new Date(at).toISOString()}, revision ${revision}`;
  return ['', `BROKEN: ${promise}`, `  ${sentence} (${when})`, ...history.map((line) => `    ${line}`), ''];
}

function counted(counts: Readonly<Record<string, number>>): string {
  const words = Object.entries(counts).map(([what, count]) => `${what} ${count}`);
  return words.length === 0 ? 'none' : words.join(', ');
}
