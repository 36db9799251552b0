import type { ControllerConfig } from '../../api/controller-config.js';
import { containerRuntimeOf, nodeFlavourOf } from '../../api/controller-config.js';
import type { ApiFlavour } from '../../api/flavour.js';
import type { MachineConfigPool } from '../../api/machine-config-pool.js';
import type { MachineConfig } from '../../api/machine-config.js';
import type { IgnitionFile, IgnitionUnit } from '../../ignition/config.js';
import { isRecord } from '../../ignition/findings.js';
import { readSpec } from '../../render/spec.js';
import { generatedConfig } from '../generated-config.js';
import type { SourceProblem, SourceResult } from '../source.js';
import { standalonePools } from '../standalone-pools.js';
import { renderTemplate } from './engine.js';
import { readLayout, VALUES_FILE, type Layout, type Template, type TemplateFiles } from './layout.js';
import { readFileTemplate, readUnitTemplate, readYaml } from './read-template.js';

export interface TemplateInputs {
  readonly flavour: ApiFlavour;
  readonly controllerConfig: ControllerConfig;
  /** What `spec.templates` names, or why it cannot be read; undefined where it names nothing. */
  readonly templates: TemplateFiles | SourceProblem | undefined;
  readonly pools: readonly MachineConfigPool[];
  /** Names of the MachineConfigs that the ControllerConfig owns. */
  readonly owned: ReadonlySet<string>;
}

/**
 * The configs `00-<role>` and `01-<role>-<name>` out of templates. Depends on nothing but the inputs: another version of
 * Drydock makes the same of them, since the built-in templates are chosen by their version and no version of them
 * changes.
 */
export function generateFromTemplates(inputs: TemplateInputs): FromTemplates {
  try {
    return configsFrom(inputs);
  } catch (error) {
    if (error instanceof TemplateError) return { configs: [], warnings: [], problem: error.problem };
    throw error;
  }
}

type FromTemplates = Pick<SourceResult, 'configs' | 'warnings' | 'problem'>;

class TemplateError extends Error {
  override readonly name = 'TemplateError';
  readonly problem: SourceProblem;

  constructor(reason: string, message: string) {
    super(message);
    this.problem = { reason, message };
  }
}

function configsFrom(inputs: TemplateInputs): FromTemplates {
  const { flavour, templates, pools, controllerConfig } = inputs;
  if (templates === undefined) return { configs: emptied(inputs), warnings: [] };
  if (isProblem(templates)) return { configs: [], warnings: [], problem: templates };
  const layout = readLayout(templates);
  if (isProblem(layout)) return { configs: [], warnings: [], problem: layout };
  const values = valuesOf(controllerConfig, templates);
  const configs = rolesOf(layout, pools, flavour).flatMap(({ role, withCommon }) =>
    [...layout.configsOf(role, { withCommon })].map(([name, parts]) =>
      configFrom(parts, { name, role, flavour, values: { ...values, role } }),
    ),
  );
  return { configs, warnings: unusedRoles(layout, pools) };
}

function isProblem(value: TemplateFiles | Layout | SourceProblem): value is SourceProblem {
  return 'message' in value;
}

/** The `00-` of a role stays, without contents: a pool that selects no config at all could not be rendered. */
function emptied({ flavour, pools, owned }: TemplateInputs): MachineConfig[] {
  return pools
    .map(({ metadata }) => metadata.name)
    .filter((role) => owned.has(`00-${role}`))
    .sort()
    .map((role) => generatedConfig(flavour, { name: `00-${role}`, pool: role }));
}

/** A pool that gets the configs of another one gets the common templates from there. */
function rolesOf(
  layout: Layout,
  pools: readonly MachineConfigPool[],
  flavour: ApiFlavour,
): { role: string; withCommon: boolean }[] {
  const standalone = new Set(standalonePools(pools, flavour).map(({ metadata }) => metadata.name));
  const own = layout.roles.filter((role) => pools.some(({ metadata }) => metadata.name === role));
  return [...new Set([...standalone, ...own])].sort().map((role) => ({ role, withCommon: standalone.has(role) }));
}

function unusedRoles(layout: Layout, pools: readonly MachineConfigPool[]): string[] {
  return layout.roles
    .filter((role) => pools.every(({ metadata }) => metadata.name !== role))
    .map((role) => `the templates of ${role} are not used, since there is no pool ${role}`);
}

/** Of the ControllerConfig itself a template has no use, and may not make a node's disk depend on it. */
const OWN_FIELDS = ['templates', 'templateValues', 'keepRenderedConfigs', 'certificates'];

function valuesOf(controllerConfig: ControllerConfig, files: TemplateFiles): Record<string, unknown> {
  const { spec } = controllerConfig;
  const config = Object.fromEntries(Object.entries(spec).filter(([key]) => !OWN_FIELDS.includes(key)));
  return {
    config: {
      ...config,
      nodeFlavour: nodeFlavourOf(controllerConfig),
      containerRuntime: containerRuntimeOf(controllerConfig),
    },
    values: { ...defaultValues(files), ...spec.templateValues },
  };
}

function defaultValues(files: TemplateFiles): Readonly<Record<string, unknown>> {
  const text = files.get(VALUES_FILE);
  if (text === undefined) return {};
  const values = inTemplate(VALUES_FILE, () => readYaml(text)) ?? {};
  if (isRecord(values)) return values;
  throw new TemplateError('InvalidTemplate', `template ${VALUES_FILE}: must be an object of values by their names`);
}

interface Target {
  readonly name: string;
  readonly role: string;
  readonly flavour: ApiFlavour;
  readonly values: Readonly<Record<string, unknown>>;
}

function configFrom(templates: readonly Template[], { name, role, flavour, values }: Target): MachineConfig {
  const files: IgnitionFile[] = [];
  const units: IgnitionUnit[] = [];
  for (const template of templates) {
    const text = filledIn(template, values);
    // A template that leaves everything out for this role.
    if (text.trim() === '') continue;
    inTemplate(template.path, () => {
      if (template.kind === 'files') files.push(readFileTemplate(text));
      else units.push(readUnitTemplate(text));
    });
  }
  const config = generatedConfig(flavour, { name, pool: role, files, units });
  const [problem, ...more] = readSpec(config.spec).problems;
  if (problem === undefined) return config;
  const others = more.length === 0 ? '' : ` (and ${more.length} more)`;
  throw new TemplateError('InvalidTemplate', `templates of ${name}: ${problem.path}: ${problem.message}${others}`);
}

function filledIn({ path, text }: Template, values: Readonly<Record<string, unknown>>): string {
  const rendered = renderTemplate(text, values);
  if (rendered.ok) return rendered.text;
  throw new TemplateError('InvalidTemplate', `template ${path}: ${rendered.error}`);
}

function inTemplate<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new TemplateError('InvalidTemplate', `template ${path}: ${message}`);
  }
}
