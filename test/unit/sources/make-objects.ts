import type { ControllerConfig, ControllerConfigSpec } from '../../../machine-config/api/controller-config.js';
import { apiFlavour } from '../../../machine-config/api/flavour.js';
import type { MachineConfigPool } from '../../../machine-config/api/machine-config-pool.js';
import type { MachineConfig } from '../../../machine-config/api/machine-config.js';
import { fileIn } from '../../../machine-config/sources/kubelet/present-files.js';
import { generatedConfig, generatedFile } from '../../../machine-config/sources/generated-config.js';

export const flavour = apiFlavour('openshift');

export function controllerConfig(spec: ControllerConfigSpec = {}): ControllerConfig {
  return { metadata: { name: 'machine-config-controller', uid: 'cc-uid', generation: 3 }, spec };
}

/** A pool that selects the configs of its own role and of `others`. */
export function pool(name: string, ...others: string[]): MachineConfigPool {
  const matchExpressions = [{ key: flavour.roleLabel, operator: 'In' as const, values: [name, ...others] }];
  return { metadata: { name, labels: { tier: name } }, spec: { machineConfigSelector: { matchExpressions } } };
}

/** A MachineConfig of people, with one file. */
export function withFile(name: string, role: string, path: string, text: string): MachineConfig {
  return generatedConfig(flavour, { name, pool: role, files: [generatedFile(path, text)] });
}

/** What a config writes to a path; undefined: nothing. */
export function textIn(config: MachineConfig | undefined, path: string): string | undefined {
  return config && fileIn(config, path)?.text;
}

/** Paths of the files of a config, in order. */
export function pathsIn(config: MachineConfig | undefined): string[] {
  const storage = config?.spec?.config?.['storage'] as { files?: { path: string }[] } | undefined;
  return (storage?.files ?? []).map(({ path }) => path);
}
