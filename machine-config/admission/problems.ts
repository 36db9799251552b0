import type { Problem } from '../api/parse.js';
import { isRecord, oneLine } from '../ignition/findings.js';

/** `MachineConfigPool infra: spec.maxUnavailable: …`, the first of all problems and how many more there are, on one line. */
export function formatProblems(kind: string, object: unknown, problems: readonly Problem[]): string {
  const metadata = isRecord(object) ? object.metadata : undefined;
  const name = isRecord(metadata) && typeof metadata.name === 'string' ? metadata.name : '(without name)';
  const [first] = problems;
  const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : '';
  const parts = [`${kind} ${name}`, first?.path ?? '', first?.message ?? ''];
  return `${oneLine(parts.filter((part) => part !== '').join(': '))}${more}`;
}
