import { containerRuntimeOf, type ControllerConfig } from '../../api/controller-config.js';
import type { ApiFlavour } from '../../api/flavour.js';
import type { ImageDigestMirrorSet, ImageTagMirrorSet } from '../../api/image-mirrors.js';
import type { MachineConfig } from '../../api/machine-config.js';
import type { MachineConfigPool } from '../../api/machine-config-pool.js';
import { parseImageDigestMirrorSet, parseImageTagMirrorSet, type Parsed } from '../../api/parse.js';
import type { IgnitionFile } from '../../ignition/config.js';
import { generatedConfig } from '../generated-config.js';
import { filesAround } from '../kubelet/present-files.js';
import { generatedName } from '../naming.js';
import type { SourceProblem } from '../source.js';
import { standalonePools } from '../standalone-pools.js';
import { UnreadableTomlError } from '../toml.js';
import { hostsFiles } from './hosts-toml.js';
import { mergeMirrors, type MirroredSource } from './merge-mirrors.js';
import { REGISTRIES_CONF, registriesConf } from './registries-conf.js';

const WHAT = 'registries';

export interface ImageMirrorInputs {
  readonly flavour: ApiFlavour;
  readonly controllerConfig: ControllerConfig;
  /** As the API has them; a cluster need not have the kinds. */
  readonly digestMirrorSets: readonly ImageDigestMirrorSet[];
  readonly tagMirrorSets: readonly ImageTagMirrorSet[];
  readonly pools: readonly MachineConfigPool[];
  readonly machineConfigs: readonly MachineConfig[];
}

/**
 * `99-<pool>-generated-registries` out of all mirror sets of the cluster, for every pool that does not get it from
 * another one. All sets together or none: half of them would send images elsewhere than their authors meant.
 */
export function generateImageMirrors(inputs: ImageMirrorInputs): readonly MachineConfig[] | SourceProblem {
  const { flavour, controllerConfig, pools, machineConfigs } = inputs;
  const invalid = firstInvalid(inputs);
  if (invalid !== undefined) return invalid;
  const sources = mergeMirrors(alive(inputs.digestMirrorSets), alive(inputs.tagMirrorSets));
  if ('message' in sources) return sources;
  if (sources.length === 0) return [];
  const isCrio = containerRuntimeOf(controllerConfig) === 'crio';
  const hosts = isCrio ? [] : hostsFiles(sources);
  if ('message' in hosts) return hosts;
  const configFor = (pool: MachineConfigPool): MachineConfig => {
    const name = registriesConfigName(pool.metadata.name);
    const files = isCrio ? [registriesOf(sources, { pool, name, machineConfigs, flavour })] : hosts;
    return generatedConfig(flavour, { name, pool: pool.metadata.name, files });
  };
  try {
    return standalonePools(pools, flavour).map(configFor);
  } catch (error) {
    if (error instanceof UnreadableTomlError) return { reason: 'UnreadablePresent', message: error.message };
    throw error;
  }
}

export function registriesConfigName(pool: string): string {
  return generatedName({ priority: '99', pool, what: WHAT });
}

/** Whether a MachineConfig has the name of one that is generated here. */
export function isRegistriesConfig(name: string): boolean {
  return /^99-.+-generated-registries$/u.test(name);
}

function alive<T extends { readonly metadata: { readonly deletionTimestamp?: string } }>(sets: readonly T[]): T[] {
  return sets.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
}

/** Where the kind was there before, its schema is not ours. */
function firstInvalid({ digestMirrorSets, tagMirrorSets }: ImageMirrorInputs): SourceProblem | undefined {
  return (
    invalidOf('ImageDigestMirrorSet', digestMirrorSets, parseImageDigestMirrorSet) ??
    invalidOf('ImageTagMirrorSet', tagMirrorSets, parseImageTagMirrorSet)
  );
}

function invalidOf(
  kind: string,
  sets: readonly (ImageDigestMirrorSet | ImageTagMirrorSet)[],
  parse: (value: unknown) => Parsed<unknown>,
): SourceProblem | undefined {
  for (const set of sets) {
    const parsed = parse(set);
    const [first] = parsed.ok ? [] : parsed.problems;
    if (first !== undefined) {
      return { reason: 'InvalidField', message: `${kind} ${set.metadata.name}: ${first.path}: ${first.message}` };
    }
  }
  return undefined;
}

function registriesOf(
  sources: readonly MirroredSource[],
  place: { pool: MachineConfigPool; name: string; machineConfigs: readonly MachineConfig[]; flavour: ApiFlavour },
): IgnitionFile {
  const { pool, name, machineConfigs, flavour } = place;
  const { before } = filesAround({ pool, name, path: REGISTRIES_CONF }, machineConfigs, flavour);
  return registriesConf(sources, before);
}
