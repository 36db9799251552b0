import type { ControllerConfig } from '../../api/controller-config.js';
import type { ApiFlavour } from '../../api/flavour.js';
import type { ImageDigestMirrorSet, ImageTagMirrorSet } from '../../api/image-mirrors.js';
import type { MachineConfig } from '../../api/machine-config.js';
import type { MachineConfigPool } from '../../api/machine-config-pool.js';
import { parseControllerConfig } from '../../api/parse.js';
import { certificateProblems } from '../../certificates/files.js';
import { generateImageMirrors, isRegistriesConfig } from '../image-mirrors/generate.js';
import type { SourceProblem, SourceResult } from '../source.js';
import { generateFromTemplates } from '../templates/generate.js';
import type { TemplateFiles } from '../templates/layout.js';

const KIND = 'ControllerConfig';

export interface ControllerConfigInputs {
  readonly flavour: ApiFlavour;
  readonly controllerConfig: ControllerConfig;
  /** What `spec.templates` names, or why it cannot be read; undefined where it names nothing. */
  readonly templates: TemplateFiles | SourceProblem | undefined;
  /** Why nodes cannot be let read what `spec.certificates` names. */
  readonly mayNotGrant?: SourceProblem;
  readonly digestMirrorSets: readonly ImageDigestMirrorSet[];
  readonly tagMirrorSets: readonly ImageTagMirrorSet[];
  readonly pools: readonly MachineConfigPool[];
  /** All that there are, those generated before included. */
  readonly machineConfigs: readonly MachineConfig[];
}

/**
 * All that the ControllerConfig owns: the configs from templates and those of image mirrors, which have no one object of
 * their own. What cannot be generated of the one stays as it was, and does not hold up the other.
 */
export function generateForControllerConfig(inputs: ControllerConfigInputs): SourceResult {
  const { controllerConfig, machineConfigs } = inputs;
  const { name, uid = '', generation = 0, deletionTimestamp } = controllerConfig.metadata;
  const source = { kind: KIND, name, uid, generation };
  if (deletionTimestamp !== undefined) return { source, configs: [], warnings: [] };
  const parsed = parseControllerConfig(controllerConfig);
  if (!parsed.ok) {
    const [first] = parsed.problems;
    const problem = { reason: 'InvalidField', message: `${first?.path ?? ''}: ${first?.message ?? ''}` };
    return { source, configs: [], problem, warnings: [] };
  }
  const owned = machineConfigs.filter(({ metadata }) =>
    metadata.ownerReferences?.some((owner) => owner.kind === KIND && owner.uid === uid),
  );
  const names = new Set(owned.map(({ metadata }) => metadata.name));
  const templates = generateFromTemplates({ ...inputs, owned: names });
  const mirrors = generateImageMirrors(inputs);
  const keep = (isOfPart: (name: string) => boolean) =>
    owned.filter(({ metadata }) => isOfPart(metadata.name)).map(asGenerated);
  const noMirrors = 'message' in mirrors;
  return {
    source,
    configs: [
      ...(templates.problem === undefined ? templates.configs : keep((each) => !isRegistriesConfig(each))),
      ...(noMirrors ? keep(isRegistriesConfig) : mirrors),
    ],
    warnings: templates.warnings,
    parts: {
      templates: templates.problem ?? null,
      imageMirrors: noMirrors ? mirrors : null,
      certificates: whyNotFollowed(inputs),
    },
  };
}

/** Nodes look at the entries themselves; here it is said where somebody looks who has written them. */
function whyNotFollowed({ controllerConfig, mayNotGrant }: ControllerConfigInputs): SourceProblem | null {
  const [first, ...more] = certificateProblems(controllerConfig.spec.certificates ?? []);
  if (first === undefined) return mayNotGrant ?? null;
  const others = more.length === 0 ? '' : `, and ${more.length} more`;
  return { reason: 'InvalidCertificate', message: `spec.certificates: ${first}${others}` };
}

/** What is there, to be left as it is. */
function asGenerated({ metadata, spec }: MachineConfig): MachineConfig {
  const { name, labels = {}, annotations = {} } = metadata;
  return { metadata: { name, labels, annotations }, ...(spec === undefined ? {} : { spec }) };
}
