import { ignitionSchema, type IgnitionConfig } from '../ignition/config.js';
import { isList, isRecord, type FieldPath } from '../ignition/findings.js';
import { mergeConfigs } from '../ignition/merge.js';
import { bootDeviceStorage } from './boot-device.js';
import { mountUnits, type MountedFilesystem } from './mount-units.js';
import type { ReadButane } from './read.js';
import { setsFipsCipher } from './rules.js';
import { bootDeviceSchema } from './schema.js';
import { translateSection, type Translating } from './sections.js';
import { withTrees, type Tree } from './trees.js';

type Fields = Readonly<Record<string, unknown>>;
type Storage = NonNullable<IgnitionConfig['storage']>;

const SECTIONS = ['ignition', 'kernel_arguments', 'passwd', 'storage', 'systemd'] as const;

/** The Ignition config that the file stands for, all sugar written out. Undefined: `to.findings` says what is wrong. */
export function toIgnition({ spec, value }: ReadButane, to: Translating): IgnitionConfig | undefined {
  const written: Fields = value;
  const sections = SECTIONS.filter((name) => written[name] !== undefined).map((name) => [
    name === 'kernel_arguments' ? 'kernelArguments' : name,
    translateSection(written[name], [name], to),
  ]);
  const named = Object.fromEntries(sections) as Fields;
  const ignition = { ...(isRecord(named.ignition) ? named.ignition : {}), version: `3.${spec.minor}.0` };
  if (to.findings.isRefused()) return undefined;
  // The types were checked in the words of Butane already: what is wrong here is a mistake of ours, and loud.
  const config = ignitionSchema.parse({ ...named, ignition });

  const withFiles = addTrees(config, written, to);
  const withUnits = addMountUnits(withFiles, written, to);
  const withBoot = addBootDevice(withUnits, written, to);
  return withFipsCipher(withBoot, written, to);
}

function listAt(written: Fields, section: string, key: string): readonly unknown[] {
  const found = isRecord(written[section]) ? written[section][key] : undefined;
  return isList(found) ? found : [];
}

function addTrees(config: IgnitionConfig, written: Fields, to: Translating): IgnitionConfig {
  const trees = listAt(written, 'storage', 'trees');
  if (trees.length === 0) return config;
  return { ...config, storage: withTrees(config.storage ?? {}, trees as readonly Tree[], to) };
}

function addMountUnits(config: IgnitionConfig, written: Fields, to: Translating): IgnitionConfig {
  const wishes = listAt(written, 'storage', 'filesystems');
  const mounted = (config.storage?.filesystems ?? []).flatMap((filesystem, index): MountedFilesystem[] => {
    const wish = wishes[index];
    const wants = isRecord(wish) && wish.with_mount_unit === true;
    return wants ? [{ filesystem, at: ['storage', 'filesystems', index] }] : [];
  });
  const made = mountUnits(mounted, config, to);
  if (made.length === 0) return config;
  const generated = { ignition: config.ignition, systemd: { units: made.map(({ unit }) => unit) } };
  const origin = (name: string) => made.find(({ unit }) => unit.name === name)?.at ?? ['storage', 'filesystems'];
  return mergeUnder(config, generated, { lists: [['systemd', 'units']], origin }, to);
}

const DISK_LISTS = ['disks', 'raid', 'luks', 'filesystems'].map((list) => ['storage', list] as const);

function addBootDevice(config: IgnitionConfig, written: Fields, to: Translating): IgnitionConfig {
  const device = written.boot_device;
  if (device === undefined) return config;
  const storage = bootDeviceStorage(bootDeviceSchema.parse(device), to.findings);
  if (storage === undefined) return config;
  const generated = { ignition: config.ignition, storage };
  return mergeUnder(config, generated, { lists: DISK_LISTS, origin: () => ['boot_device'] }, to);
}

interface Generated {
  readonly lists: readonly (readonly [string, string])[];
  /** Of a generated entry that the file does not name: the place that asked for it. */
  readonly origin: (identity: string) => FieldPath;
}

/** What the file says itself counts for more than what is generated; entries are one by name, path or device. */
function mergeUnder(config: IgnitionConfig, generated: IgnitionConfig, { lists, origin }: Generated, to: Translating) {
  const merged = mergeConfigs(generated, config);
  for (const [section, list] of lists) {
    const own = listAt(config, section, list).map(identityOf);
    listAt(merged, section, list).forEach((entry, index) => {
      const place = [section, list, index];
      const position = own.indexOf(identityOf(entry));
      if (position < 0) to.origins.fromOne(place, origin(identityOf(entry)));
      else to.origins.moved(place, [section, list, position]);
    });
  }
  return merged;
}

/** What merging goes by: in none of these lists do entries have both a name and a device that differ in it. */
function identityOf(entry: unknown): string {
  const { name, device } = isRecord(entry) ? entry : {};
  return typeof name === 'string' ? name : typeof device === 'string' ? device : '';
}

const FIPS_CIPHER = ['--cipher', 'aes-cbc-essiv:sha256'];

function withFipsCipher(config: IgnitionConfig, written: Fields, { spec }: Translating): IgnitionConfig {
  const isFips = isRecord(written.openshift) && written.openshift.fips === true;
  const volumes = config.storage?.luks;
  if (!isFips || volumes === undefined || !setsFipsCipher(spec)) return config;
  const namesCipher = (option: string) => option === '-c' || option === '--cipher' || option.startsWith('--cipher=');
  const luks: Storage['luks'] = volumes.map((volume) => {
    const options = volume.options ?? [];
    return options.some(namesCipher) ? volume : { ...volume, options: [...options, ...FIPS_CIPHER] };
  });
  return { ...config, storage: { ...config.storage, luks } };
}
