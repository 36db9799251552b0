import { machineConfigSpecSchema } from '../api/machine-config.js';
import type { IgnitionConfig } from '../ignition/config.js';
import { Findings, hasLoneSurrogate, isList, isRecord, isTooDeep, quote, type Finding } from '../ignition/findings.js';
import { knownKeyLike } from '../ignition/keys.js';
import { parseIgnition } from '../ignition/parse.js';
import { parseTyped } from '../ignition/typing.js';
import { splitKernelArguments } from './kernel-arguments.js';

export const KERNEL_TYPES = ['default', 'realtime', '64k-pages'] as const;
export type KernelType = (typeof KERNEL_TYPES)[number];

/** Sets of packages that a node may be given. */
export const EXTENSIONS = [
  'ipsec',
  'kerberos',
  'kernel-devel',
  'sandboxed-containers',
  'sysstat',
  'two-node-ha',
  'usbguard',
] as const;

/** What the spec of one MachineConfig says, in one form: defaults written out, kernel arguments one an item. */
export interface SpecContent {
  readonly osImageURL: string;
  readonly baseOSExtensionsContainerImage: string;
  readonly kernelArguments: readonly string[];
  readonly extensions: readonly string[];
  readonly fips: boolean;
  readonly kernelType: KernelType;
  /** Absent where the spec has none, or an empty one. */
  readonly config?: IgnitionConfig;
  readonly problems: readonly Finding[];
  readonly warnings: readonly Finding[];
  /** Keys of spec that the API does not have; it drops them. */
  readonly unknownKeys: readonly string[];
}

const fieldsSchema = machineConfigSpecSchema.omit({ config: true });

/** Reads and checks the spec of a MachineConfig. Never throws; what has problems is read as far as it goes. */
export function readSpec(spec: unknown): SpecContent {
  const findings = new Findings({ spec });
  if (spec !== undefined && spec !== null && !isRecord(spec)) findings.refuse(['spec'], 'must be an object');
  const { config, ...others } = isRecord(spec) ? spec : {};
  const { fields, unknownKeys } = knownFields(others, findings);
  const ignition = parseIgnition(config);
  const {
    osImageURL = '',
    baseOSExtensionsContainerImage = '',
    extensions = [],
    fips = false,
    kernelType = '',
  } = fields;
  const kernelArguments = readKernelArguments(fields.kernelArguments ?? [], findings);
  checkExtensions(extensions, kernelType, findings);
  return {
    osImageURL: osImageURL.trim(),
    baseOSExtensionsContainerImage: baseOSExtensionsContainerImage.trim(),
    kernelArguments,
    extensions,
    fips,
    kernelType: readKernelType(kernelType, findings),
    ...(ignition.config === undefined ? {} : { config: ignition.config }),
    problems: [...findings.problems, ...ignition.problems],
    warnings: [...findings.warnings, ...ignition.warnings],
    unknownKeys,
  };
}

interface SpecFields {
  readonly osImageURL?: string;
  readonly baseOSExtensionsContainerImage?: string;
  readonly kernelArguments?: readonly string[] | null;
  readonly extensions?: readonly string[];
  readonly fips?: boolean;
  readonly kernelType?: string;
}

function knownFields(
  spec: Readonly<Record<string, unknown>>,
  findings: Findings,
): { fields: SpecFields; unknownKeys: string[] } {
  if (isTooDeep(spec)) {
    findings.refuse(['spec'], 'is nested too deep to be a MachineConfig');
    return { fields: {}, unknownKeys: [] };
  }
  const known = Object.keys(machineConfigSpecSchema.shape);
  const kept: [string, unknown][] = [];
  const unknownKeys: string[] = [];
  for (const [key, value] of Object.entries(spec)) {
    if (value === null || value === undefined) continue;
    if (known.includes(key)) {
      kept.push([key, value]);
      continue;
    }
    unknownKeys.push(key);
    reportUnknownKey(key, known, findings);
  }
  for (const [key, value] of kept) {
    const texts = isList(value) ? value : [value];
    if (texts.some((text) => typeof text === 'string' && hasLoneSurrogate(text))) {
      findings.refuse(['spec', key], 'contains half a Unicode character (a lone surrogate); write the whole character');
    }
  }
  const typing = new Findings(spec, ['spec']);
  const fields = parseTyped(fieldsSchema, Object.fromEntries(kept), typing);
  findings.problems.push(...typing.problems);
  return { fields: fields ?? {}, unknownKeys };
}

/** A key that the API server drops is a warning, unless it is a known one misspelt: then somebody wanted something. */
function reportUnknownKey(key: string, known: readonly string[], findings: Findings): void {
  const meant = knownKeyLike(key, known);
  if (meant !== undefined) {
    findings.refuse(['spec', key], `${quote(key)} is not a key of spec and would be ignored; write ${meant}`);
  } else if (['ignition', 'storage', 'systemd', 'passwd'].includes(key)) {
    findings.refuse(['spec', key], 'belongs one level deeper and would be ignored; write it under spec.config');
  } else {
    findings.warn(['spec', key], 'is not a key of spec; the API drops it and it does nothing; leave it out');
  }
}

function readKernelArguments(items: readonly string[], findings: Findings): string[] {
  return items.flatMap((item, index) => {
    const split = splitKernelArguments(item);
    if (split.ok) {
      const count = split.arguments.length;
      const path = ['spec', 'kernelArguments', index];
      if (count > 1)
        findings.warn(path, `is read as ${count} arguments, split at blanks; write one argument a list item`);
      return split.arguments;
    }
    findings.refuse(['spec', 'kernelArguments', index], split.error);
    return [];
  });
}

function readKernelType(kernelType: string, findings: Findings): KernelType {
  if (kernelType === '') return 'default';
  const known = KERNEL_TYPES.find((type) => type === kernelType);
  if (known === undefined) {
    findings.refuse(
      ['spec', 'kernelType'],
      `${quote(kernelType)} is none of ${KERNEL_TYPES.join(', ')}; write one of them`,
    );
  }
  return known ?? 'default';
}

function checkExtensions(extensions: readonly string[], kernelType: string, findings: Findings): void {
  const known: readonly string[] = EXTENSIONS;
  extensions.forEach((extension, index) => {
    if (!known.includes(extension)) {
      findings.refuse(
        ['spec', 'extensions', index],
        `${quote(extension)} is no extension; known are ${known.join(', ')}`,
      );
    }
  });
  const isDefault = kernelType === '' || kernelType === 'default';
  if (extensions.includes('kernel-devel') && !isDefault) {
    findings.refuse(
      ['spec', 'extensions'],
      'kernel-devel exists for the default kernel only; leave it out or change kernelType',
    );
  }
}
