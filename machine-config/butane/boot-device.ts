import type {
  IgnitionConfig,
  IgnitionDisk,
  IgnitionFilesystem,
  IgnitionLuks,
  IgnitionRaid,
} from '../ignition/config.js';
import type { ButaneFindings } from './places.js';
import type { BootDevice } from './schema.js';

type Partition = NonNullable<IgnitionDisk['partitions']>[number];
type Storage = NonNullable<IgnitionConfig['storage']>;

/** Types of partitions, as GPT knows them. */
const TYPES = {
  reserved: '8DA63339-0007-60C0-C436-083AC8230908',
  bios: '21686148-6449-6E6F-744E-656564454649',
  prep: '9E1A2D38-C612-4316-AA26-8B49521E5A8B',
  esp: 'C12A7328-F81F-11D2-BA4B-00A0C93EC93B',
} as const;
/** No smaller than those of the image of the system, whose contents are copied into them. */
const SIZES_MIB = { reserved: 1, bios: 1, prep: 4, esp: 127, boot: 384 } as const;

/** The first two partitions of the image, by layout. */
const LAYOUTS: Readonly<Record<string, readonly [keyof typeof TYPES, keyof typeof TYPES]>> = {
  x86_64: ['bios', 'esp'],
  aarch64: ['reserved', 'esp'],
  ppc64le: ['prep', 'reserved'],
};

const AT = ['boot_device'] as const;

/** Disks, RAID, LUKS and filesystems of a boot disk that is mirrored or encrypted. Undefined: `findings` says why. */
export function bootDeviceStorage(device: BootDevice, findings: ButaneFindings): Storage | undefined {
  const { layout = 'x86_64', luks = {}, mirror = {} } = device;
  const devices = mirror.devices ?? [];
  const isEncrypted = luks.tpm2 === true || (luks.tang ?? []).length > 0;
  const first = LAYOUTS[layout];
  if (first === undefined) {
    const known = Object.keys(LAYOUTS).join(', ');
    findings.refuse([...AT, 'layout'], `is none of ${known}; for others write storage.disks, luks and filesystems`);
  }
  refuseOtherMachines(luks, findings);
  if (devices.length === 1) findings.refuse([...AT, 'mirror', 'devices'], 'has one device; a mirror needs two or more');
  if (!isEncrypted && devices.length === 0) {
    findings.refuse(AT, 'asks for nothing; write luks with tpm2 or tang, or mirror with devices');
  }
  if (first === undefined || findings.isRefused()) return undefined;
  return storageOf({ devices, first, ...(isEncrypted ? { luks } : {}) });
}

function refuseOtherMachines(luks: NonNullable<BootDevice['luks']>, findings: ButaneFindings): void {
  for (const field of ['cex', 'device'] as const) {
    if (luks[field] === undefined) continue;
    findings.refuse([...AT, 'luks', field], 'is of s390x, whose boot disks are not translated; write storage.luks');
  }
}

interface Wanted {
  readonly devices: readonly string[];
  readonly first: readonly [keyof typeof TYPES, keyof typeof TYPES];
  readonly luks?: NonNullable<BootDevice['luks']>;
}

function storageOf({ devices, first, luks }: Wanted): Storage {
  const isMirrored = devices.length > 0;
  const rootDevice = isMirrored ? '/dev/md/md-root' : '/dev/disk/by-partlabel/root';
  const root: IgnitionFilesystem = {
    device: luks === undefined ? rootDevice : '/dev/mapper/root',
    format: 'xfs',
    label: 'root',
    wipeFilesystem: true,
  };
  return {
    ...(isMirrored ? mirrored(devices, first) : {}),
    ...(luks === undefined ? {} : { luks: [encryptedRoot(luks, rootDevice)] }),
    filesystems: [...(isMirrored ? bootFilesystems(devices, first) : []), root],
  };
}

function encryptedRoot(luks: NonNullable<BootDevice['luks']>, device: string): IgnitionLuks {
  const { tang, tpm2, threshold, discard } = luks;
  return {
    name: 'root',
    label: 'luks-root',
    device,
    clevis: {
      ...(tang === undefined ? {} : { tang }),
      ...(tpm2 === undefined ? {} : { tpm2 }),
      ...(threshold === undefined ? {} : { threshold }),
    },
    ...(discard === undefined ? {} : { discard }),
    wipeVolume: true,
  };
}

function mirrored(devices: readonly string[], first: Wanted['first']): Pick<Storage, 'disks' | 'raid'> {
  const disks = devices.map((device, index): IgnitionDisk => {
    const small = first.map((name): Partition => ({
      label: `${name}-${index + 1}`,
      sizeMiB: SIZES_MIB[name],
      typeGuid: TYPES[name],
    }));
    const boot: Partition = { label: `boot-${index + 1}`, sizeMiB: SIZES_MIB.boot };
    return { device, wipeTable: true, partitions: [...small, boot, { label: `root-${index + 1}` }] };
  });
  const members = (name: string) => devices.map((_, index) => `/dev/disk/by-partlabel/${name}-${index + 1}`);
  const raid: IgnitionRaid[] = [
    // With its mark at the end of the partition, so that a BIOS boot loader need not know of RAID.
    { name: 'md-boot', level: 'raid1', devices: members('boot'), options: ['--metadata=1.0'] },
    { name: 'md-root', level: 'raid1', devices: members('root') },
  ];
  return { disks, raid };
}

/** The EFI partitions are each by themselves: firmware writes to them and knows no RAID. */
function bootFilesystems(devices: readonly string[], first: Wanted['first']): IgnitionFilesystem[] {
  const efi = devices.map((_, index): IgnitionFilesystem => {
    const label = `esp-${index + 1}`;
    return { device: `/dev/disk/by-partlabel/${label}`, format: 'vfat', label, wipeFilesystem: true };
  });
  const boot: IgnitionFilesystem = { device: '/dev/md/md-boot', format: 'ext4', label: 'boot', wipeFilesystem: true };
  return [...(first.includes('esp') ? efi : []), boot];
}
