import { compareText } from '../../render/select.js';
import type { SourceProblem } from '../source.js';

/** Template files by their path below the folder of templates, `worker/01-worker-kubelet/files/kubelet.yaml`. */
export type TemplateFiles = ReadonlyMap<string, string>;

/** What each role is given on top of its own; not a role. */
const COMMON = 'common';
/** Values that hold where the ControllerConfig has no others. */
export const VALUES_FILE = 'values.yaml';
const KINDS = ['files', 'units'] as const;
export type TemplateKind = (typeof KINDS)[number];

/** One template of a MachineConfig. */
export interface Template {
  readonly path: string;
  readonly kind: TemplateKind;
  readonly text: string;
}

export interface Layout {
  /** Names of the roles that have a folder of their own. */
  readonly roles: readonly string[];
  /** The templates of a role by MachineConfig, both in order. */
  configsOf(role: string, options: { readonly withCommon: boolean }): ReadonlyMap<string, readonly Template[]>;
}

interface Placed extends Template {
  /** `common` or a role. */
  readonly folder: string;
  /** In a role the name of the MachineConfig, in `common` what comes after the role in it; empty: `00-<role>`. */
  readonly part: string;
  readonly file: string;
}

/**
 * Sorts templates into MachineConfigs: `<role>/<00-role or 01-role-name>/{files,units}/…` into the config of that name,
 * `common/{files,units}/…` into the `00-` of every role and `common/<name>/{files,units}/…` into its `01-<role>-<name>`.
 * A role's file replaces the common one of its name; an empty one takes it away.
 */
export function readLayout(files: TemplateFiles): Layout | SourceProblem {
  const placed: Placed[] = [];
  for (const [path, text] of [...files].sort(([one], [other]) => compareText(one, other))) {
    if (path === VALUES_FILE || path.endsWith('.md')) continue;
    const place = placeOf(path);
    if ('message' in place) return place;
    placed.push({ ...place, path, text });
  }
  const roles = [...new Set(placed.map(({ folder }) => folder))].filter((folder) => folder !== COMMON);
  return { roles, configsOf: (role, { withCommon }) => configsOf(placed, role, withCommon) };
}

function placeOf(path: string): Omit<Placed, 'path' | 'text'> | SourceProblem {
  const steps = path.split('/');
  const [folder = '', second = ''] = steps;
  const kindAt = folder === COMMON && steps.length === 3 ? 1 : 2;
  const kind = KINDS.find((name) => name === steps[kindAt]);
  const file = steps[kindAt + 1] ?? '';
  const part = kindAt === 1 ? '' : second;
  if (kind === undefined || steps.length !== kindAt + 2 || !/^[^.].*\.ya?ml$/u.test(file)) {
    return misplaced(path, 'is no place of a template; write <role>/<config>/files/NAME.yaml or …/units/NAME.yaml');
  }
  if (folder !== COMMON && part !== `00-${folder}` && !part.startsWith(`01-${folder}-`)) {
    return misplaced(path, `is no config of the role ${folder}; name it 00-${folder} or 01-${folder}-NAME`);
  }
  return { folder, part, kind, file };
}

function misplaced(path: string, why: string): SourceProblem {
  return { reason: 'UnknownTemplate', message: `template ${path}: ${why}` };
}

function configsOf(placed: readonly Placed[], role: string, withCommon: boolean): Map<string, Template[]> {
  const configs = new Map<string, Map<string, Placed>>();
  const configName = ({ folder, part }: Placed): string =>
    folder === role ? part : part === '' ? `00-${role}` : `01-${role}-${part}`;
  const layers = [
    ...(withCommon ? placed.filter(({ folder }) => folder === COMMON) : []),
    ...placed.filter(({ folder }) => folder === role),
  ];
  for (const template of layers) {
    const name = configName(template);
    const templates = configs.get(name) ?? new Map<string, Placed>();
    configs.set(name, templates.set(`${template.kind}/${template.file}`, template));
  }
  const inOrder = <T>(map: ReadonlyMap<string, T>) => [...map].sort(([one], [other]) => compareText(one, other));
  return new Map(
    inOrder(configs).map(([name, templates]) => [
      name,
      inOrder(templates)
        .map(([, template]) => template)
        .filter(({ text }) => text !== ''),
    ]),
  );
}

/** A ConfigMap's keys have no slashes: `__` stands for one. */
export function templateFilesOf(data: Readonly<Record<string, string>>): TemplateFiles {
  return new Map(Object.entries(data).map(([key, text]) => [key.replaceAll('__', '/'), text]));
}
