import { stringify, type TomlTable } from 'smol-toml';
import type { ContainerRuntimeSettings } from '../../api/container-runtime-config.js';
import type { IgnitionFile } from '../../ignition/config.js';
import { isRecord } from '../../ignition/findings.js';
import { generatedFile } from '../generated-config.js';
import type { PresentFile } from '../kubelet/present-files.js';
import { parseQuantity } from '../quantity.js';
import { readToml } from '../toml.js';

export const STORAGE_CONF = '/etc/containers/storage.conf';
const CRIO_DROP_INS = '/etc/crio/crio.conf.d';
/** containerd reads it where its config.toml imports it, as the default one does from 2.2 on. */
const CONTAINERD_DROP_INS = '/etc/containerd/conf.d';

/** One drop-in a setting, so that several ContainerRuntimeConfigs of a pool add up. */
function dropIn(name: string, settings: TomlTable): IgnitionFile {
  return generatedFile(`${CRIO_DROP_INS}/01-ctrcfg-${name}`, stringify({ crio: settings }));
}

/**
 * The settings as files of CRI-O. `storage` is the storage.conf that the pool has already, which is kept but for what is
 * set here.
 *
 * @throws UnreadableTomlError
 */
export function crioFiles(settings: ContainerRuntimeSettings, storage: PresentFile | undefined): IgnitionFile[] {
  const { pidsLimit, logLevel, defaultRuntime, additionalArtifactStores } = settings;
  const logSize = parseQuantity(String(settings.logSizeMax ?? 0)) ?? 0;
  const files: IgnitionFile[] = [];
  // 0 is written: it lifts the limit that CRI-O has by itself.
  if (pidsLimit !== undefined) files.push(dropIn('pidsLimit', { runtime: { pids_limit: pidsLimit } }));
  if (logSize !== 0) files.push(dropIn('logSizeMax', { runtime: { log_size_max: Math.ceil(logSize) } }));
  if (logLevel !== undefined && logLevel !== '') files.push(dropIn('logLevel', { runtime: { log_level: logLevel } }));
  if (defaultRuntime !== undefined) {
    files.push(dropIn('defaultRuntime', { runtime: { default_runtime: defaultRuntime } }));
  }
  if (additionalArtifactStores !== undefined) {
    const paths = additionalArtifactStores.map(({ path }) => path);
    files.push(dropIn('additionalArtifactStores', { image: { additional_artifact_stores: paths } }));
  }
  const options = storageOptions(settings);
  if (Object.keys(options).length > 0) files.push(generatedFile(STORAGE_CONF, storageConf(options, storage)));
  return files;
}

function storageOptions(settings: ContainerRuntimeSettings): TomlTable {
  const { overlaySize, additionalLayerStores, additionalImageStores } = settings;
  const isSized = overlaySize !== undefined && parseQuantity(String(overlaySize)) !== 0;
  return {
    ...(isSized ? { size: String(overlaySize) } : {}),
    ...(additionalImageStores === undefined
      ? {}
      : { additionalimagestores: additionalImageStores.map(({ path }) => path) }),
    // Without ":ref" the store is asked by digest of a layer only, and has none of an image by its name.
    ...(additionalLayerStores === undefined
      ? {}
      : {
          additionallayerstores: additionalLayerStores.map(({ path }) =>
            path.endsWith(':ref') ? path : `${path}:ref`,
          ),
        }),
  };
}

/** What containers-storage has without a file. */
const DEFAULT_STORAGE: TomlTable = {
  driver: 'overlay',
  runroot: '/run/containers/storage',
  graphroot: '/var/lib/containers/storage',
};

function storageConf(options: TomlTable, present: PresentFile | undefined): string {
  const base = present === undefined ? { storage: DEFAULT_STORAGE } : readToml(present, STORAGE_CONF);
  const storage = isRecord(base['storage']) ? base['storage'] : {};
  const before = isRecord(storage['options']) ? storage['options'] : {};
  return stringify({ ...base, storage: { ...storage, options: { ...before, ...options } } });
}

const CRI_PLUGIN = 'io.containerd.grpc.v1.cri';

/**
 * The settings as files of containerd. Written in version 2 of its configuration: version 1.x of containerd reads no
 * later one, and 2.x translates it.
 */
export function containerdFiles({ logLevel, defaultRuntime }: ContainerRuntimeSettings): IgnitionFile[] {
  const file = (name: string, settings: TomlTable) =>
    generatedFile(`${CONTAINERD_DROP_INS}/01-ctrcfg-${name}.toml`, stringify({ version: 2, ...settings }));
  const files: IgnitionFile[] = [];
  if (logLevel !== undefined && logLevel !== '') files.push(file('logLevel', { debug: { level: logLevel } }));
  if (defaultRuntime !== undefined) {
    const runtime: TomlTable = {
      runtime_type: 'io.containerd.runc.v2',
      options: { BinaryName: defaultRuntime, SystemdCgroup: true },
    };
    const containerd: TomlTable = { default_runtime_name: defaultRuntime, runtimes: { [defaultRuntime]: runtime } };
    files.push(file('defaultRuntime', { plugins: { [CRI_PLUGIN]: { containerd } } }));
  }
  return files;
}
