import { apiVersionOf, apiFlavour, type ApiFlavour } from '../api/flavour.js';
import type { MachineConfig, MachineConfigSpec } from '../api/machine-config.js';
import type { IgnitionConfig } from '../ignition/config.js';
import { stepsOfPath, type FieldPath, type Finding } from '../ignition/findings.js';
import { parseIgnition } from '../ignition/parse.js';
import { readSource } from '../render/source.js';
import { reachableAtFirstBoot } from './first-boot.js';
import type { LocalFiles } from './local-files.js';
import { Origins } from './origins.js';
import { ButaneFindings, type ButaneFinding, type Place } from './places.js';
import { readButane, type ReadButane } from './read.js';
import { toIgnition } from './to-ignition.js';
import type { Translating } from './sections.js';

export interface TranslateInput {
  readonly text: string;
  readonly files: LocalFiles;
  readonly flavour: ApiFlavour;
  /** For variants without metadata: which MachineConfig it becomes. Absent: an Ignition config. */
  readonly machineConfig?: { readonly name: string; readonly role: string };
}

export type Translated =
  | {
      readonly outcome: 'machineConfig';
      readonly machineConfig: MachineConfig;
      readonly warnings: readonly ButaneFinding[];
      /** Where in the Butane file a place of the MachineConfig comes from. */
      readonly placeOf: (path: FieldPath) => Place;
    }
  | {
      readonly outcome: 'ignition';
      readonly config: IgnitionConfig;
      readonly warnings: readonly ButaneFinding[];
      /** Where the file says its variant, which is why it is no MachineConfig. */
      readonly place: Place;
    }
  | {
      readonly outcome: 'refused';
      /** Never empty; in the order of the file. */
      readonly problems: readonly ButaneFinding[];
      readonly warnings: readonly ButaneFinding[];
    };

/**
 * Translates a Butane file: variant openshift to a MachineConfig, the others to a MachineConfig where its name and role are given,
 * else to an Ignition config for first boot. Pure but for `files`, never throws for what stands in the text. A MachineConfig that
 * comes out is one that rendering accepts by itself: what it cannot carry is refused with the reason and its place.
 */
export function translateButane(input: TranslateInput): Translated {
  const findings = new ButaneFindings();
  const read = readButane(input.text, findings);
  if (read === undefined) return refused(findings);
  const to: Translating = { spec: read.spec, findings, origins: new Origins(), files: input.files };
  const config = toIgnition(read, to);
  if (config === undefined || findings.isRefused()) return refused(findings);

  const metadata = metadataOf(read, input, findings);
  if (findings.isRefused()) return refused(findings);
  if (metadata === undefined) return asIgnition(config, to);
  const machineConfig = toMachineConfig(config, metadata, read, { to, flavour: input.flavour });
  const originOf = (path: FieldPath) => originInFile(path, read, to);
  const source = readSource(machineConfig, input.flavour);
  report(source, originOf, findings);
  warnOfFixedPaths(config, to);
  if (findings.isRefused()) return refused(findings);
  return {
    outcome: 'machineConfig',
    machineConfig: withUsers(machineConfig, source.content.config),
    warnings: findings.warnings,
    placeOf: (path) => findings.places.of(originOf(path)),
  };
}

function asIgnition(config: IgnitionConfig, { findings, origins }: Translating): Translated {
  const checked = parseIgnition(reachableAtFirstBoot(config), []);
  report(checked, (path) => origins.of(path.slice(1)), findings);
  if (findings.isRefused()) return refused(findings);
  const { warnings, places } = findings;
  const passwd = checked.config?.passwd;
  return {
    outcome: 'ignition',
    config: passwd === undefined ? config : { ...config, passwd },
    warnings,
    place: places.of(['variant']),
  };
}

/** Ignition refuses a user or key that is listed twice; it is meant once, and the reader has said so. */
function withUsers(machineConfig: MachineConfig, read: IgnitionConfig | undefined): MachineConfig {
  const { spec = {} } = machineConfig;
  if (read?.passwd === undefined) return machineConfig;
  return { ...machineConfig, spec: { ...spec, config: { ...spec.config, passwd: read.passwd } } };
}

function refused({ problems, warnings }: ButaneFindings): Translated {
  return { outcome: 'refused', problems, warnings };
}

type Metadata = MachineConfig['metadata'];

/** Undefined where there is nothing wrong and yet no MachineConfig: an Ignition config is wanted. */
function metadataOf(
  { spec, value }: ReadButane,
  input: TranslateInput,
  findings: ButaneFindings,
): Metadata | undefined {
  const { flavour, machineConfig } = input;
  if (spec.variant !== 'openshift') {
    if (machineConfig === undefined) return undefined;
    return { name: machineConfig.name, labels: { [flavour.roleLabel]: machineConfig.role } };
  }
  const { metadata } = value;
  if (metadata === undefined) {
    findings.refuse(['variant'], 'openshift needs metadata with a name and the label of the role; write both');
    return undefined;
  }
  const openshiftLabel = apiFlavour('openshift').roleLabel;
  const { [flavour.roleLabel]: own, [openshiftLabel]: given, ...others } = metadata.labels ?? {};
  const role = own ?? given;
  if (role === undefined || role === '') {
    findings.refuse(['metadata', 'labels'], `has no ${flavour.roleLabel}, so no pool would select it; write the role`);
    return undefined;
  }
  return { name: metadata.name, labels: { ...others, [flavour.roleLabel]: role } };
}

function toMachineConfig(
  config: IgnitionConfig,
  metadata: Metadata,
  { value }: ReadButane,
  { to, flavour }: { to: Translating; flavour: ApiFlavour },
): MachineConfig {
  const { kernelArguments, ...carried } = config;
  const { kernel_arguments = [], kernel_type, extensions, fips } = value.openshift ?? {};
  if (kernelArguments?.shouldNotExist !== undefined) {
    to.findings.refuse(
      ['kernel_arguments', 'should_not_exist'],
      'cannot be said in a MachineConfig, which only adds kernel arguments; leave it out',
    );
  }
  const all = [...kernel_arguments, ...(kernelArguments?.shouldExist ?? [])];
  const spec: MachineConfigSpec = {
    config: carried,
    ...(all.length === 0 ? {} : { kernelArguments: all }),
    ...(extensions === undefined ? {} : { extensions }),
    ...(fips === undefined ? {} : { fips }),
    ...(kernel_type === undefined ? {} : { kernelType: kernel_type }),
  };
  return { apiVersion: apiVersionOf(flavour.machineConfig), kind: 'MachineConfig', metadata, spec };
}

/** `path` is of a MachineConfig. */
function originInFile(
  [section, field, ...rest]: FieldPath,
  { value }: ReadButane,
  { origins }: Translating,
): FieldPath {
  if (section === 'metadata')
    return value.metadata === undefined ? ['variant'] : ['metadata', ...(field === undefined ? [] : [field]), ...rest];
  if (section !== 'spec' || field === undefined) return [];
  if (field === 'config') return origins.of(rest);
  if (field === 'kernelArguments' && value.openshift === undefined)
    return ['kernel_arguments', 'should_exist', ...rest];
  const names: Readonly<Record<string, string>> = { kernelArguments: 'kernel_arguments', kernelType: 'kernel_type' };
  return ['openshift', names[field] ?? field, ...rest];
}

interface Said {
  readonly problems: readonly Pick<Finding, 'path' | 'message'>[];
  readonly warnings: readonly Pick<Finding, 'path' | 'message'>[];
}

/** Takes over what was found in what came out, at the places of what went in. */
function report(
  { problems, warnings }: Said,
  originOf: (path: FieldPath) => FieldPath,
  findings: ButaneFindings,
): void {
  for (const { path, message } of problems) findings.refuse(originOf(stepsOfPath(path)), message);
  for (const { path, message } of warnings) findings.warn(originOf(stepsOfPath(path)), message);
}

function warnOfFixedPaths({ storage = {} }: IgnitionConfig, { findings, origins }: Translating): void {
  for (const section of ['directories', 'links'] as const) {
    if (storage[section] === undefined) continue;
    findings.warn(
      origins.of(['storage', section, 0]),
      `${section} are made at first boot only: nodes that run do not get them, and a later change of them is refused`,
    );
  }
}
