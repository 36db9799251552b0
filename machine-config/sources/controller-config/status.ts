import type { ControllerConfig, ControllerConfigCondition } from '../../api/controller-config.js';
import type { SourceProblem, SourceResult } from '../source.js';

type Status = NonNullable<ControllerConfig['status']>;

/**
 * The status of the ControllerConfig: whether its templates are rendered (`TemplateControllerCompleted`), or why not
 * (`TemplateControllerFailing`), and the same of image mirrors (`ImageMirrorsFailing`) and of files that follow Secrets and ConfigMaps
 * (`CertificatesFailing`). What else the status holds
 * stays, and a time changes only with its status.
 */
export function controllerConfigStatus(
  previous: Status | undefined,
  { source, problem, parts, warnings }: Pick<SourceResult, 'source' | 'problem' | 'parts' | 'warnings'>,
  now: string,
): Status {
  const problemOf = (part: string) => problem ?? parts?.[part] ?? undefined;
  const templates = problemOf('templates');
  const done = warnings.length === 0 ? '' : warnings.join('; ');
  const generation = `generation ${source.generation}`;
  const own = [
    condition('TemplateControllerRunning', undefined, ''),
    condition('TemplateControllerCompleted', templates === undefined ? 'Rendered' : undefined, done || generation),
    failing('TemplateControllerFailing', templates),
    failing('ImageMirrorsFailing', problemOf('imageMirrors')),
    failing('CertificatesFailing', problemOf('certificates')),
  ].map((each) => ({ ...each, lastTransitionTime: sinceWhen(previous, each) ?? now }));
  const others = (previous?.conditions ?? []).filter(({ type }) => own.every((each) => each.type !== type));
  return { ...previous, observedGeneration: source.generation, conditions: [...own, ...others] };
}

type Undated = Omit<ControllerConfigCondition, 'lastTransitionTime'>;

/** True with a reason, false without one. */
function condition(type: string, reason: string | undefined, message: string): Undated {
  return reason === undefined
    ? { type, status: 'False', reason: 'AsExpected', message: '' }
    : { type, status: 'True', reason, message };
}

function failing(type: string, problem: SourceProblem | undefined): Undated {
  return condition(type, problem?.reason, problem?.message ?? '');
}

function sinceWhen(previous: Status | undefined, { type, status }: Undated): string | null | undefined {
  const before = previous?.conditions?.find((each) => each.type === type);
  return before?.status === status ? before.lastTransitionTime : undefined;
}
