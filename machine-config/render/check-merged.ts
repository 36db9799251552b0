import type { IgnitionConfig } from '../ignition/config.js';
import { Findings, formatPath, isList, isRecord, valueAt, type FieldPath, type Finding } from '../ignition/findings.js';
import { validateConfig } from '../ignition/validate.js';
import type { ManagedPath } from '../ignition/validate-paths.js';
import type { RenderFinding, Source } from './source.js';
import type { SpecContent } from './spec.js';

/**
 * What is wrong with the merged config although each input is right by itself: a file below another one's file or link, a file at
 * the path of a unit, an extension that the merged kernel type excludes. Blamed on the input that was merged last.
 */
export function checkMerged(
  content: SpecContent,
  sources: readonly Source[],
): { problems: RenderFinding[]; warnings: RenderFinding[] } {
  const problems = kernelProblems(content, sources);
  const { config } = content;
  if (config === undefined || sources.length === 1) return { problems, warnings: [] };
  const findings = new Findings({ config }, ['spec']);
  validateConfig(config, findings, (entry) => originOf(config, entry, sources));
  return {
    problems: [...problems, ...findings.problems.map((finding) => blame(finding, config, sources))],
    warnings: [],
  };
}

function kernelProblems({ extensions, kernelType }: SpecContent, sources: readonly Source[]): RenderFinding[] {
  if (!extensions.includes('kernel-devel') || kernelType === 'default') return [];
  const asking = sources.findLast(({ content }) => content.extensions.includes('kernel-devel'));
  const setting = sources.findLast(({ content }) => content.kernelType === kernelType);
  return [
    {
      ...(asking === undefined ? {} : { machineConfig: asking.name }),
      path: 'spec.extensions',
      message: `kernel-devel exists for the default kernel only, and MachineConfig ${setting?.name ?? ''} sets ${kernelType}; leave out one of the two`,
    },
  ];
}

function originOf(config: IgnitionConfig, entry: ManagedPath, sources: readonly Source[]): string {
  const found = findEntry(entry.at, config, sources);
  return found === undefined ? 'in the rendered config' : `in MachineConfig ${found.source.name}`;
}

function blame(finding: Finding, config: IgnitionConfig, sources: readonly Source[]): RenderFinding {
  const found = findEntry(finding.at, config, sources);
  if (found === undefined) return { path: finding.path, message: `${finding.message} (after merging)` };
  const path = formatPath(['spec', ...finding.at.slice(0, 3), found.index, ...finding.at.slice(4)]);
  return { machineConfig: found.source.name, path, message: finding.message };
}

/** The last input that has the list entry which a path of the merged config goes through, and where it has it. */
function findEntry(
  at: FieldPath,
  config: IgnitionConfig,
  sources: readonly Source[],
): { source: Source; index: number } | undefined {
  const list = at.slice(0, 3);
  const wanted = identity(valueAt({ config }, at.slice(0, 4)));
  if (wanted === undefined) return undefined;
  for (const source of sources.toReversed()) {
    const entries = valueAt({ config: source.content.config }, list);
    const index = isList(entries) ? entries.findIndex((entry) => identity(entry) === wanted) : -1;
    if (index >= 0) return { source, index };
  }
  return undefined;
}

function identity(entry: unknown): string | undefined {
  if (!isRecord(entry)) return undefined;
  const key = entry.path ?? entry.name ?? entry.device;
  return typeof key === 'string' ? key : undefined;
}
