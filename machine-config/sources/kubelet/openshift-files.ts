import type { IgnitionFile } from '../../ignition/config.js';
import { isRecord } from '../../ignition/findings.js';
import { generatedFile } from '../generated-config.js';
import { mergeFields, type Fields } from './merge-fields.js';
import { KUBELET_PATHS } from './kubelet-paths.js';
import type { OwnSettings } from './own-settings.js';

/** What the sizing service of an OpenShift node reads: the kubelet gets these reservations from it, not from its file. */
const SIZING_KEYS = {
  memory: 'SYSTEM_RESERVED_MEMORY',
  cpu: 'SYSTEM_RESERVED_CPU',
  'ephemeral-storage': 'SYSTEM_RESERVED_ES',
};
const SIZING_DEFAULTS = { SYSTEM_RESERVED_MEMORY: '1Gi', SYSTEM_RESERVED_CPU: '500m', SYSTEM_RESERVED_ES: '1Gi' };

/** The whole configuration of the kubelet on an OpenShift node: the present one with what a KubeletConfig says. */
export function mergeWhole(present: Fields, own: OwnSettings): Fields {
  const { fields } = own;
  const withoutSized = { ...fields, systemReserved: unsized(fields.systemReserved) };
  const merged = { ...mergeFields(present, withoutSized) };
  if (Object.keys(withoutSized.systemReserved).length === 0 && !isRecord(present.systemReserved)) {
    delete merged['systemReserved'];
  }
  return withoutContradiction(merged, own);
}

function unsized(reserved: OwnSettings['fields']['systemReserved']): Readonly<Record<string, string>> {
  const kept = Object.entries(reserved ?? {}).filter(([resource]) => !Object.hasOwn(SIZING_KEYS, resource));
  return Object.fromEntries(kept);
}

/** The present configuration enforces a reservation that does not go with these two fields: they say how it is meant. */
function withoutContradiction(merged: Fields, { fields }: OwnSettings): Fields {
  const { reservedSystemCPUs, enforceNodeAllocatable, systemReservedCgroup } = fields;
  if (reservedSystemCPUs !== undefined && reservedSystemCPUs !== '') {
    const present = Array.isArray(merged.enforceNodeAllocatable) ? (merged.enforceNodeAllocatable as unknown[]) : [];
    const others = present.filter((each) => each !== 'system-reserved' && each !== 'system-reserved-compressible');
    const enforced = others.includes('pods') || others.includes('none') ? others : ['pods', ...others];
    return { ...without(merged, 'systemReservedCgroup'), enforceNodeAllocatable: enforced };
  }
  const enforcesSystem = enforceNodeAllocatable?.some((each) => each.startsWith('system-reserved')) ?? true;
  return enforcesSystem || systemReservedCgroup !== undefined ? merged : without(merged, 'systemReservedCgroup');
}

function without(fields: Fields, key: string): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([each]) => each !== key));
}

/** The files besides the configuration itself. `presentSizing`: the sizing file as the pool has it now. */
export function besideWhole(own: OwnSettings, presentSizing: string | undefined): IgnitionFile[] {
  const { autoSizing, logLevel } = own;
  const { systemReserved = {} } = own.fields;
  const asked = Object.entries(SIZING_KEYS).flatMap(([resource, key]): [string, string][] => {
    const amount = systemReserved[resource];
    return amount === undefined ? [] : [[key, amount]];
  });
  const logging = `[Service]\nEnvironment="KUBELET_LOG_LEVEL=${logLevel ?? 0}"\n`;
  return [
    ...(autoSizing === undefined && asked.length === 0
      ? []
      : [generatedFile(KUBELET_PATHS.openshiftSizing, sizingText(presentSizing, autoSizing ?? false, asked))]),
    ...(logLevel === undefined ? [] : [generatedFile(KUBELET_PATHS.openshiftLogging, logging)]),
  ];
}

function sizingText(present: string | undefined, enabled: boolean, asked: readonly [string, string][]): string {
  const pairs = (present ?? '').split('\n').flatMap((line): [string, string][] => {
    const [, key, value] = /^(SYSTEM_RESERVED_\w+)=(\S+)$/u.exec(line.trim()) ?? [];
    return key === undefined || value === undefined ? [] : [[key, value]];
  });
  const values = { ...SIZING_DEFAULTS, ...Object.fromEntries(pairs), ...Object.fromEntries(asked) };
  const lines = Object.keys(SIZING_DEFAULTS).map((key) => `${key}=${values[key as keyof typeof SIZING_DEFAULTS]}`);
  return [`NODE_SIZING_ENABLED=${enabled}`, ...lines, ''].join('\n');
}
