import type { ApiFlavour } from '../api/flavour.js';
import type { MachineConfig } from '../api/machine-config.js';
import type { IgnitionFile, IgnitionUnit } from '../ignition/config.js';

/**
 * In the annotation of a generated config. Not a version: a new version of Drydock writes no config anew for its own
 * sake.
 */
const GENERATED_BY = 'drydock';

/** What all generated configs are written in, whatever newer version there is: another one would be another object. */
const IGNITION_VERSION = '3.4.0';

/** A file with its contents as base64; mode 0644 unless said otherwise. */
export function generatedFile(path: string, contents: string, mode = 0o644): IgnitionFile {
  const source = `data:text/plain;charset=utf-8;base64,${Buffer.from(contents).toString('base64')}`;
  return { path, overwrite: true, mode, contents: { compression: '', source } };
}

/** A MachineConfig as sources generate it, for the pool (or role) that `pool` names. Without ownerReferences. */
export function generatedConfig(
  flavour: Pick<ApiFlavour, 'roleLabel' | 'generatedByAnnotation'>,
  content: { name: string; pool: string; files?: readonly IgnitionFile[]; units?: readonly IgnitionUnit[] },
): MachineConfig {
  const { name, pool, files = [], units = [] } = content;
  return {
    metadata: {
      name,
      labels: { [flavour.roleLabel]: pool },
      annotations: { [flavour.generatedByAnnotation]: GENERATED_BY },
    },
    spec: {
      config: {
        ignition: { version: IGNITION_VERSION },
        ...(files.length === 0 ? {} : { storage: { files: [...files] } }),
        ...(units.length === 0 ? {} : { systemd: { units: [...units] } }),
      },
    },
  };
}
