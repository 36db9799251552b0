import { apiFlavour, FLAVOUR_NAMES, type ApiFlavour, type FlavourName } from '../machine-config/api/flavour.js';
import type { MachineConfiguration } from '../machine-config/api/machine-configuration.js';
import type { DisruptionAction } from '../machine-config/api/node-disruption-policy.js';
import { parseMachineConfig, parseMachineConfiguration, type Parsed } from '../machine-config/api/parse.js';
import { reconcileObstacles } from '../machine-config/change/check-reconcilable.js';
import type { ConfigContent } from '../machine-config/change/content.js';
import { diffConfigs, type ConfigDiff, type KeyedChange } from '../machine-config/change/diff-configs.js';
import {
  disruptionCauses,
  disruptionOfCauses,
  resolveSpecial,
  summariseCost,
  type DisruptionCause,
} from '../machine-config/change/disruption.js';
import { readPolicies } from '../machine-config/change/frozen-policies.js';
import { checkPolicies, policiesInForce, type EffectivePolicies } from '../machine-config/change/policies.js';
import { isRecord } from '../machine-config/ignition/findings.js';
import { readSpec } from '../machine-config/render/spec.js';
import { CommandError } from './command-error.js';
import { readManifests, type Manifest } from './manifest-files.js';

export interface OfflineDiffInput {
  /** Files with one rendered config each. */
  readonly old: string;
  readonly next: string;
  /** File with the MachineConfiguration. Absent: what the new config carries, else what is built in. */
  readonly policy?: string | undefined;
  /** Absent: that of the group of the new config. */
  readonly flavour?: FlavourName | undefined;
}

/** What a change from one rendered config to another does to a node, as printed for programs. */
export interface DiffReport {
  readonly reconcilable: boolean;
  /** Why a running node cannot follow, one line each. */
  readonly reasons: readonly string[];
  /** By path: added, changed or removed. */
  readonly changedFiles: readonly string[];
  readonly units: KeyedChange;
  /** In the order in which they are carried out. */
  readonly actions: readonly DisruptionAction[];
  readonly drain: boolean;
  readonly reboot: boolean;
}

export interface OfflineDiffResult {
  readonly report: DiffReport;
  /** Absent where a config cannot be read. */
  readonly details?: { readonly diff: ConfigDiff; readonly causes: readonly DisruptionCause[] };
}

/**
 * Compares two rendered configs without a cluster. A config that could not be rendered is refused with its problems,
 * and not compared any further.
 *
 * @throws CommandError (`refused`) where a file is not what it should be.
 */
export async function offlineDiff(input: OfflineDiffInput): Promise<OfflineDiffResult> {
  const [old, next] = [await readConfig(input.old), await readConfig(input.next)];
  const flavour = apiFlavour(input.flavour ?? flavourOf(next.apiVersion));
  const configuration = input.policy === undefined ? undefined : await readPolicyFile(input.policy);
  const policies = configuration === undefined ? readPolicies(next) : policiesInForce(configuration.spec, flavour);
  const problems = [old, next].flatMap(({ problems: found }) => found);
  if (problems.length > 0) return { report: unreadable(problems) };
  return compare(old.content, next.content, { policies, flavour, configuration });
}

interface CompareOptions {
  readonly policies: EffectivePolicies;
  readonly flavour: ApiFlavour;
  readonly configuration: MachineConfiguration | undefined;
}

function compare(old: ConfigContent, next: ConfigContent, options: CompareOptions): OfflineDiffResult {
  const { policies, flavour, configuration } = options;
  const overrides = configuration?.spec.irreconcilableValidationOverrides?.storage;
  const obstacles = reconcileObstacles(old, next, { sshUser: flavour.sshUser, overrides });
  const diff = diffConfigs(old, next);
  const causes = resolveSpecial(disruptionCauses(diff, policies), old, next);
  const actions = disruptionOfCauses(causes, old, next);
  const cost = summariseCost(actions);
  const { added, changed, removed } = diff.files;
  const report: DiffReport = {
    reconcilable: obstacles.length === 0,
    reasons: obstacles.map(({ field, message }) => `${field}: ${message}`),
    changedFiles: [...added, ...changed, ...removed].sort(),
    units: diff.units,
    actions,
    drain: cost === 'drain' || cost === 'reboot',
    reboot: cost === 'reboot',
  };
  return { report, details: { diff, causes } };
}

function unreadable(reasons: readonly string[]): DiffReport {
  const units = { added: [], changed: [], removed: [] };
  return { reconcilable: false, reasons, changedFiles: [], units, actions: [], drain: false, reboot: false };
}

interface ReadConfig {
  readonly apiVersion: string;
  readonly metadata: { readonly name: string; readonly annotations?: Record<string, string> };
  readonly content: ConfigContent;
  /** One line each, with the file. */
  readonly problems: readonly string[];
}

async function readConfig(file: string): Promise<ReadConfig> {
  const { manifest, value } = await readOne(file, 'MachineConfig', parseMachineConfig);
  const content = readSpec(value.spec);
  const { name, annotations } = value.metadata;
  return {
    apiVersion: value.apiVersion ?? '',
    metadata: { name, ...(annotations === undefined ? {} : { annotations }) },
    content,
    problems: content.problems.map(({ path, message }) => `${manifest.place}: ${path}: ${message}`),
  };
}

async function readPolicyFile(file: string): Promise<MachineConfiguration> {
  const { manifest, value } = await readOne(file, 'MachineConfiguration', parseMachineConfiguration);
  const [problem] = checkPolicies(value.spec);
  if (problem !== undefined) throw new CommandError('refused', `${manifest.place}: ${problem}`);
  return value;
}

/** The one object of a kind in a file; others there are passed over. */
async function readOne<T>(
  file: string,
  kind: string,
  parse: (value: unknown) => Parsed<T>,
): Promise<{ manifest: Manifest; value: T }> {
  const { manifests, errors } = await readManifests([file]);
  if (errors[0] !== undefined) throw new CommandError('refused', errors[0]);
  const found = manifests.filter(({ value }) => isRecord(value) && value.kind === kind);
  const [manifest] = found;
  if (manifest === undefined || found.length > 1) {
    const count = manifest === undefined ? 'no' : String(found.length);
    throw new CommandError('refused', `${file}: has ${count} ${kind}; give a file with one`);
  }
  const parsed = parse(manifest.value);
  if (parsed.ok) return { manifest, value: parsed.value };
  const [first] = parsed.problems;
  throw new CommandError('refused', `${manifest.place}: ${first?.path ?? ''}: ${first?.message ?? ''}`);
}

function flavourOf(apiVersion: string): FlavourName {
  return FLAVOUR_NAMES.find((name) => apiVersion.startsWith(`${apiFlavour(name).group}/`)) ?? 'openshift';
}
