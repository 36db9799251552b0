import { apiFlavour } from '../../../../machine-config/api/flavour.js';
import type { KubeletConfig, KubeletConfigSpec } from '../../../../machine-config/api/kubelet-config.js';
import type { MachineConfigPool } from '../../../../machine-config/api/machine-config-pool.js';
import type { MachineConfig } from '../../../../machine-config/api/machine-config.js';
import { generatedConfig, generatedFile } from '../../../../machine-config/sources/generated-config.js';
import { generateKubeletConfigs, type KubeletInputs } from '../../../../machine-config/sources/kubelet/generate.js';
import { fileIn } from '../../../../machine-config/sources/kubelet/present-files.js';
import type { SourceResult } from '../../../../machine-config/sources/source.js';

export const flavour = apiFlavour('openshift');
export const ROLE = flavour.roleLabel;
export const DROP_IN = '/etc/kubernetes/kubelet.conf.d/90-drydock.conf';
export const WHOLE = '/etc/kubernetes/kubelet.conf';

/** A pool as install makes them; a custom one takes the configs of `worker` too. */
export function poolNamed(name: string): MachineConfigPool {
  const roles = name === 'worker' || name === 'master' ? [name] : ['worker', name];
  return {
    metadata: { name, labels: { pool: name } },
    spec: { machineConfigSelector: { matchExpressions: [{ key: ROLE, operator: 'In', values: roles }] } },
  };
}

/** For the pool of that name unless `spec` chooses others. */
export function kubeletConfig(
  name: string,
  fields: unknown,
  more: Partial<KubeletConfigSpec> & { pool?: string; created?: string; suffix?: string } = {},
): KubeletConfig {
  const { pool = 'worker', created = '2026-01-01T00:00:00Z', suffix, ...spec } = more;
  return {
    metadata: {
      name,
      uid: `uid-${name}`,
      generation: 1,
      creationTimestamp: created,
      ...(suffix === undefined ? {} : { annotations: { [`${flavour.group}/mc-name-suffix`]: suffix } }),
    },
    spec: {
      machineConfigPoolSelector: { matchLabels: { pool } },
      kubeletConfig: fields as Record<string, unknown>,
      ...spec,
    },
  };
}

/** A MachineConfig that people wrote, with one file. */
export function written(name: string, role: string, path: string, text: string): MachineConfig {
  const { metadata, spec } = generatedConfig(flavour, { name, pool: role, files: [generatedFile(path, text)] });
  return { metadata: { ...metadata, annotations: {} }, spec: spec! };
}

/** As the activity stores it. */
export function ownedBy({ metadata: { name, uid } }: KubeletConfig, config: MachineConfig): MachineConfig {
  const owner = { apiVersion: `${flavour.group}/v1`, kind: 'KubeletConfig', name, uid: uid! };
  return { ...config, metadata: { ...config.metadata, ownerReferences: [owner] } };
}

export function generate(inputs: Partial<KubeletInputs>): SourceResult[] {
  return generateKubeletConfigs({
    flavour,
    nodeFlavour: 'kubeadm',
    kubeletConfigs: [],
    pools: [poolNamed('worker')],
    machineConfigs: [],
    ...inputs,
  });
}

/** What a generated config says in a file, as JSON. */
export function fieldsIn(config: MachineConfig | undefined, path = DROP_IN): unknown {
  const text = config && fileIn(config, path)?.text;
  return text === undefined ? undefined : JSON.parse(text);
}

/** Why the fields of one KubeletConfig are refused; undefined: they are not. */
export function refusalOf(
  fields: unknown,
  more: Partial<KubeletConfigSpec> = {},
  inputs: Partial<KubeletInputs> = {},
): string | undefined {
  return generate({ kubeletConfigs: [kubeletConfig('one', fields, more)], ...inputs })[0]?.problem?.message;
}
