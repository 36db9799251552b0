import { apiFlavour, FLAVOUR_NAMES, type ApiFlavour, type FlavourName } from '../machine-config/api/flavour.js';
import { labelSelectorSchema, type LabelSelector } from '../machine-config/api/label-selector.js';
import { apiVersionOf } from '../machine-config/api/flavour.js';
import type { MachineConfig } from '../machine-config/api/machine-config.js';
import { isRecord, quote, stepsOfPath } from '../machine-config/ignition/findings.js';
import { formatRenderFinding, renderPool } from '../machine-config/render/render-pool.js';
import { selectMachineConfigs, type MachineConfigObject, type SelectingPool } from '../machine-config/render/select.js';
import type { RenderFinding } from '../machine-config/render/source.js';
import { readManifests, writeManifest, type Manifest } from './manifest-files.js';

export interface OfflineRenderInput {
  /** Files and folders, as given on the command line. */
  readonly files: readonly string[];
  /** Render what this pool selects. Absent: all MachineConfigs in the files, as if one pool `all` selected them. */
  readonly pool?: string;
  /** Absent: that of the first MachineConfig or pool in the files. */
  readonly flavour?: FlavourName;
  /** For Butane files: where their local files are (default: beside them), and the role of those that name none. */
  readonly filesDir?: string;
  readonly role?: string;
}

export type OfflineRenderResult =
  | {
      readonly outcome: 'rendered';
      readonly config: MachineConfig;
      /** The rendered config as one YAML document. */
      readonly yaml: string;
      readonly sources: readonly string[];
      readonly warnings: readonly string[];
    }
  | {
      readonly outcome: 'refused';
      /** One line: file, place in it, cause, what to do, and how many more problems there are. */
      readonly reason: string;
      /** All problems, one line each. */
      readonly problems: readonly string[];
      readonly warnings: readonly string[];
    };

/** Name of the pool where none is asked for. */
const POOL_OF_ALL = 'all';
const BUILT_IN_POOLS = ['master', 'worker', 'arbiter'];

/** An object of the files that this command knows, with the place it came from. */
interface Found {
  readonly object: MachineConfigObject & SelectingPool;
  readonly name: string;
  readonly manifest: Manifest;
}

interface Sorted {
  readonly machineConfigs: Found[];
  readonly pools: Found[];
  /** `KubeletConfig sizing-master (a.yaml)` */
  readonly others: string[];
  readonly problems: string[];
  readonly warnings: string[];
}

/**
 * Renders a pool from files, without a cluster. Reads and returns, prints nothing, never throws for what stands in
 * the files.
 */
export async function offlineRender(input: OfflineRenderInput): Promise<OfflineRenderResult> {
  const butane = { flavour: apiFlavour(input.flavour ?? 'openshift'), filesDir: input.filesDir, role: input.role };
  const { manifests, errors, warnings: said = [] } = await readManifests(input.files, butane);
  const flavour = apiFlavour(input.flavour ?? detectFlavour(manifests));
  const sorted = sortManifests(manifests, flavour);
  sorted.warnings.push(...said);
  const problems = [...errors, ...sorted.problems];
  if (problems.length > 0) return refused(problems, sorted.warnings);
  if (sorted.machineConfigs.length === 0) return refused([describeNothing(input.files, sorted)], sorted.warnings);

  const selected = selectFor(input.pool, sorted, flavour);
  if (selected.length === 0) {
    const pool = input.pool ?? POOL_OF_ALL;
    const message = `${input.files.join(', ')}: the pool ${pool} selects none of the ${sorted.machineConfigs.length} MachineConfigs; check their label ${flavour.roleLabel}`;
    return refused([message], sorted.warnings);
  }
  const machineConfigs = selected.map(({ object }) => object);
  const result = renderPool({ pool: input.pool ?? POOL_OF_ALL, machineConfigs, flavour });
  const warnings = [...sorted.warnings, ...result.warnings.map((finding) => withPlace(finding, selected, input.files))];
  if (result.outcome === 'refused') {
    return refused(
      result.problems.map((finding) => withPlace(finding, selected, input.files)),
      warnings,
    );
  }
  return {
    outcome: 'rendered',
    config: result.config,
    yaml: writeManifest(result.config),
    sources: result.sources,
    warnings,
  };
}

function refused(problems: readonly string[], warnings: readonly string[]): OfflineRenderResult {
  const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : '';
  return { outcome: 'refused', reason: `${problems[0] ?? ''}${more}`, problems, warnings };
}

function groupOf(value: unknown): string {
  const apiVersion = isRecord(value) ? value.apiVersion : undefined;
  return typeof apiVersion === 'string' ? (apiVersion.split('/')[0] ?? '') : '';
}

function detectFlavour(manifests: readonly Manifest[]): FlavourName {
  const groups = new Set(manifests.map(({ value }) => groupOf(value)));
  return FLAVOUR_NAMES.find((name) => groups.has(apiFlavour(name).group)) ?? 'openshift';
}

function sortManifests(manifests: readonly Manifest[], flavour: ApiFlavour): Sorted {
  const sorted: Sorted = { machineConfigs: [], pools: [], others: [], problems: [], warnings: [] };
  for (const manifest of manifests) {
    const problem = sortManifest(manifest, flavour, sorted);
    if (problem === undefined) continue;
    const line = manifest.lineOf([]);
    sorted.problems.push(`${manifest.place}${line === undefined ? '' : ` (line ${line})`}: ${problem}`);
  }
  const names = sorted.machineConfigs.map(({ name }) => name);
  sorted.machineConfigs.forEach(({ name, manifest }, index) => {
    if (names.indexOf(name) === index) return;
    sorted.warnings.push(`${manifest.place}: a second MachineConfig ${name}; in a cluster it would replace the first`);
  });
  return sorted;
}

/** Puts an object where it belongs; returns why it cannot be, as a clause. */
function sortManifest(manifest: Manifest, flavour: ApiFlavour, sorted: Sorted): string | undefined {
  const { value, place } = manifest;
  if (!isRecord(value)) return 'is not a Kubernetes object; write apiVersion, kind, metadata and spec';
  const { kind } = value;
  if (typeof kind !== 'string' || kind === '') return describeForeign(value);
  if (kind === 'Template')
    return 'is a Template and not yet a MachineConfig; process it first (oc process -f) and render the result';
  const name = nameOf(value);
  if (kind !== 'MachineConfig' && kind !== 'MachineConfigPool') {
    sorted.others.push(`${kind} ${name ?? '(without name)'}`);
    sorted.warnings.push(`${place}: ${kind} ${name ?? '(without name)'} is no MachineConfig and is left out`);
    return undefined;
  }
  const wrong = wrongApiVersion(value.apiVersion, kind, flavour) ?? wrongMetadata(value.metadata, kind);
  if (wrong !== undefined) return wrong;
  const found: Found = { object: value, name: name ?? '', manifest };
  if (kind === 'MachineConfig') {
    sorted.machineConfigs.push(found);
    return undefined;
  }
  sorted.pools.push(found);
  return selectorOf(value) === 'invalid'
    ? `MachineConfigPool ${found.name}: spec.machineConfigSelector is no label selector; write matchLabels or matchExpressions`
    : undefined;
}

function describeForeign(value: Readonly<Record<string, unknown>>): string {
  if (typeof value.variant === 'string') {
    return `is Butane (variant: ${value.variant.slice(0, 30)}) among other objects; put it into a file of its own`;
  }
  if (isRecord(value.ignition)) {
    return 'is an Ignition config and no MachineConfig; put it under spec.config of a MachineConfig';
  }
  return 'has no kind; write apiVersion, kind: MachineConfig, metadata and spec';
}

function nameOf({ metadata }: Readonly<Record<string, unknown>>): string | undefined {
  return isRecord(metadata) && typeof metadata.name === 'string' && metadata.name !== '' ? metadata.name : undefined;
}

function wrongApiVersion(apiVersion: unknown, kind: string, flavour: ApiFlavour): string | undefined {
  const wanted = apiVersionOf(flavour.machineConfig);
  if (apiVersion === wanted) return undefined;
  const other = FLAVOUR_NAMES.find((name) => apiFlavour(name).group === groupOf({ apiVersion }));
  if (other !== undefined && other !== flavour.name) {
    return `${kind} is of the flavour ${other} and ${flavour.name} is rendered; render one flavour at a time`;
  }
  return `apiVersion of the ${kind} is ${quote(apiVersion)}; write ${wanted}`;
}

function wrongMetadata(metadata: unknown, kind: string): string | undefined {
  const write = 'write metadata with a name';
  if (metadata === undefined || metadata === null) return `the ${kind} has no metadata.name; ${write}`;
  if (!isRecord(metadata)) return `metadata of the ${kind} is no object; ${write}`;
  if (nameOf({ metadata }) === undefined) return `the ${kind} has no metadata.name; ${write}`;
  for (const field of ['labels', 'annotations'] as const) {
    const map = metadata[field] ?? {};
    if (!isRecord(map)) return `metadata.${field} of the ${kind} is no object; write key: value`;
    const wrong = Object.entries(map).find(([, text]) => typeof text !== 'string');
    if (wrong !== undefined)
      return `metadata.${field}[${quote(wrong[0])}] of the ${kind} is no string; put it in quotes`;
  }
  return undefined;
}

/** Selector of a pool, with its nulls taken as absent. */
function selectorOf(pool: Readonly<Record<string, unknown>>): LabelSelector | undefined | 'invalid' {
  const selector = isRecord(pool.spec) ? pool.spec.machineConfigSelector : undefined;
  if (selector === undefined || selector === null) return undefined;
  const parsed = labelSelectorSchema.safeParse(
    isRecord(selector) ? Object.fromEntries(Object.entries(selector).filter(([, part]) => part !== null)) : selector,
  );
  return parsed.success ? parsed.data : 'invalid';
}

/** A pool of the files selects by its selector; any other by role: its own name, and `worker` too if it is a custom one. */
function selectFor(pool: string | undefined, { machineConfigs, pools }: Sorted, flavour: ApiFlavour): Found[] {
  if (pool === undefined) return machineConfigs;
  const defined = pools.find(({ name }) => name === pool);
  const values = BUILT_IN_POOLS.includes(pool) ? [pool] : ['worker', pool];
  const byRole: LabelSelector = { matchExpressions: [{ key: flavour.roleLabel, operator: 'In', values }] };
  const own = isRecord(defined?.object) ? selectorOf(defined.object) : byRole;
  if (own === undefined || own === 'invalid') return [];
  const selected = new Set(
    selectMachineConfigs(
      { spec: { machineConfigSelector: own } },
      machineConfigs.map(({ object }) => object),
    ),
  );
  return machineConfigs.filter(({ object }) => selected.has(object));
}

function describeNothing(files: readonly string[], { pools, others }: Sorted): string {
  const found = [...pools.map(({ name }) => `MachineConfigPool ${name}`), ...others];
  const list = found.length > 3 ? `${found.slice(0, 3).join(', ')} and ${found.length - 3} more` : found.join(', ');
  return `${files.join(', ')}: there is no MachineConfig to render${found.length === 0 ? '' : `, only ${list}`}`;
}

/** Puts file, document and line before what was found in a MachineConfig. */
function withPlace(finding: RenderFinding, selected: readonly Found[], files: readonly string[]): string {
  const text = formatRenderFinding(finding);
  const source = selected.find(({ name }) => name === finding.machineConfig);
  if (source === undefined) return `${files.join(', ')}: ${text}`;
  const line = source.manifest.lineOf(stepsOfPath(finding.path));
  return `${source.manifest.place}${line === undefined ? '' : ` (line ${line})`}: ${text}`;
}
