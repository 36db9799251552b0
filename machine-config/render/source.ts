import type { ApiFlavour } from '../api/flavour.js';
import { objectName } from '../api/structural.js';
import { Findings, isRecord, quote, type Finding } from '../ignition/findings.js';
import { checkUsers, refuseProtected, warnOfFirstBootOnly } from './protected.js';
import { nameOf, type MachineConfigObject } from './select.js';
import { bytesOf } from './size.js';
import { readSpec, type SpecContent } from './spec.js';

/** One thing to say about one MachineConfig, or about the rendered config (then `machineConfig` is absent). */
export interface RenderFinding {
  readonly machineConfig?: string;
  /** `spec.config.storage.files[0].mode`; empty for the object as a whole. */
  readonly path: string;
  /** One line: what is wrong, why, what to write instead. Never shows contents, keys or hashes. */
  readonly message: string;
}

/** One MachineConfig, read and checked by itself. */
export interface Source {
  readonly name: string;
  /** Version of the controller that generated it; empty for those that people write. */
  readonly generatedBy: string;
  readonly content: SpecContent;
  readonly bytes: number;
  readonly problems: readonly RenderFinding[];
  readonly warnings: readonly RenderFinding[];
}

/** Reads one MachineConfig and checks what can be known without the others. Never throws. */
export function readSource(object: MachineConfigObject, flavour: ApiFlavour): Source {
  const given = nameOf(object);
  const nameProblem = objectName.safeParse(given).error?.issues[0]?.message;
  const name = nameProblem === undefined ? given : given === '' ? '(without name)' : quote(given);
  const content = readSpec(object.spec);
  const findings = new Findings({ config: content.config }, ['spec']);
  if (content.config !== undefined) {
    checkUsers(content.config, flavour.sshUser, findings);
    refuseProtected(content.config, findings);
    warnOfFirstBootOnly(content.config, findings);
  }
  const problems = [...content.problems, ...findings.problems].map((finding) => toRenderFinding(name, finding));
  const warnings = [...content.warnings, ...findings.warnings].map((finding) => toRenderFinding(name, finding));
  if (nameProblem !== undefined) {
    problems.unshift({ machineConfig: name, path: 'metadata.name', message: nameProblem });
  }
  if (object.spec === undefined || object.spec === null) {
    warnings.push({
      machineConfig: name,
      path: 'spec',
      message: 'is missing, so this MachineConfig contributes nothing',
    });
  }
  const prefix = /^\d{3,}/.exec(name)?.[0];
  if (prefix !== undefined && prefix < '99') {
    const message = `names are compared as text, so ${prefix} comes before 99; use two digits`;
    warnings.push({ machineConfig: name, path: 'metadata.name', message });
  }
  return { name, generatedBy: generatedBy(object, flavour), content, bytes: sizeOf(object), problems, warnings };
}

export function toRenderFinding(machineConfig: string | undefined, { path, message }: Finding): RenderFinding {
  return { ...(machineConfig === undefined ? {} : { machineConfig }), path, message };
}

function generatedBy({ metadata }: MachineConfigObject, flavour: ApiFlavour): string {
  const annotations: unknown = isRecord(metadata) ? metadata.annotations : undefined;
  const version: unknown = isRecord(annotations) ? annotations[flavour.generatedByAnnotation] : undefined;
  return typeof version === 'string' ? version : '';
}

/** A spec too deep to be written as text was refused already; its size does not matter. */
function sizeOf({ spec }: MachineConfigObject): number {
  try {
    return bytesOf(spec);
  } catch {
    return 0;
  }
}
