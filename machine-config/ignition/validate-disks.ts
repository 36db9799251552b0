import type { IgnitionConfig, IgnitionDisk, IgnitionFilesystem, IgnitionLuks, IgnitionRaid } from './config.js';
import { decodeResource } from './contents.js';
import type { FieldPath, Findings } from './findings.js';
import { pathProblem, validateResource } from './validate-nodes.js';

type Partition = NonNullable<IgnitionDisk['partitions']>[number];

const FORMATS = ['ext4', 'btrfs', 'xfs', 'vfat', 'swap', 'none'];
const LABEL_LIMITS: Readonly<Record<string, number>> = { ext4: 16, btrfs: 256, xfs: 12, swap: 15, vfat: 11 };
const RAID_LEVELS = /^(linear|raid0|0|stripe|raid1|1|mirror|raid4|4|raid5|5|raid6|6|raid10|10)$/;
const GUID = /^(|[\da-f]{8}-([\da-f]{4}-){3}[\da-f]{12})$/i;

/** Disks, RAID, LUKS and filesystems: what Ignition would refuse at first boot, the only time they are made. */
export function validateDisks(config: IgnitionConfig, findings: Findings): void {
  const storage = ['config', 'storage'];
  config.storage?.disks?.forEach((disk, index) => validateDisk(disk, [...storage, 'disks', index], findings));
  config.storage?.raid?.forEach((raid, index) => validateRaid(raid, [...storage, 'raid', index], findings));
  config.storage?.luks?.forEach((luks, index) => validateLuks(luks, [...storage, 'luks', index], findings));
  config.storage?.filesystems?.forEach((filesystem, index) =>
    validateFilesystem(filesystem, [...storage, 'filesystems', index], findings),
  );
}

function validateDevice(device: string | undefined, at: FieldPath, findings: Findings): void {
  const problem = device === undefined ? 'is missing; write the path of the device' : pathProblem(device);
  if (problem !== undefined) findings.refuse([...at, 'device'], problem);
}

function validateDisk(disk: IgnitionDisk, at: FieldPath, findings: Findings): void {
  validateDevice(disk.device, at, findings);
  const partitions = disk.partitions ?? [];
  const numbers = partitions.map(({ number }) => number ?? 0);
  const labels = partitions.map(({ label }) => label ?? '');
  const isRepeated = (list: readonly (string | number)[], index: number) => list.indexOf(list[index] ?? '') < index;
  partitions.forEach((partition, index) => {
    const place = [...at, 'partitions', index];
    const { number = 0, label = '' } = partition;
    if (number > 0 && isRepeated(numbers, index)) findings.refuse([...place, 'number'], 'is used twice on the disk');
    if (label !== '' && isRepeated(labels, index)) findings.refuse([...place, 'label'], 'is used twice on the disk');
    validatePartition(partition, place, findings);
  });
}

function validatePartition({ number = 0, label, guid, typeGuid }: Partition, at: FieldPath, findings: Findings): void {
  if (number < 0) findings.refuse([...at, 'number'], `is ${number}; must be 0 or more`);
  if (number === 0 && label === undefined) findings.refuse(at, 'has neither number nor label; write one');
  if (label !== undefined && (label.length > 36 || label.includes(':'))) {
    findings.refuse([...at, 'label'], 'must have at most 36 characters and no colon');
  }
  for (const [key, value] of Object.entries({ guid, typeGuid })) {
    if (value !== undefined && !GUID.test(value)) findings.refuse([...at, key], 'is no GUID');
  }
}

function validateRaid(raid: IgnitionRaid, at: FieldPath, findings: Findings): void {
  if (!RAID_LEVELS.test(raid.level ?? '')) findings.refuse([...at, 'level'], 'is no RAID level such as raid1');
  if ((raid.devices ?? []).length === 0) findings.refuse([...at, 'devices'], 'is empty; write the devices');
}

function validateLuks(luks: IgnitionLuks, at: FieldPath, findings: Findings): void {
  validateDevice(luks.device, at, findings);
  if (luks.name.includes('/')) findings.refuse([...at, 'name'], 'must not contain /');
  if ((luks.label ?? '').length > 47) findings.refuse([...at, 'label'], 'must have at most 47 characters');
  if (luks.cex !== undefined && (luks.clevis !== undefined || luks.keyFile !== undefined)) {
    findings.refuse([...at, 'cex'], 'cannot be combined with clevis or keyFile; write only one');
  }
  validateClevis(luks.clevis, [...at, 'clevis'], findings);
  if (luks.keyFile === undefined || !validateResource(luks.keyFile, [...at, 'keyFile'], findings)) return;
  const decoded = decodeResource(luks.keyFile);
  if (!decoded.ok) findings.refuse([...at, 'keyFile', 'source'], decoded.error);
}

function validateClevis(clevis: IgnitionLuks['clevis'], at: FieldPath, findings: Findings): void {
  if ((clevis?.custom?.pin ?? '') === '') return;
  if (clevis?.tang !== undefined || clevis?.tpm2 === true || (clevis?.threshold ?? 0) !== 0) {
    findings.refuse(at, 'has a custom pin together with tang, tpm2 or threshold; write only one');
  }
}

function validateFilesystem(filesystem: IgnitionFilesystem, at: FieldPath, findings: Findings): void {
  validateDevice(filesystem.device, at, findings);
  const { path = '', format = '', label = '' } = filesystem;
  const problem = path === '' ? undefined : pathProblem(path);
  if (problem !== undefined) findings.refuse([...at, 'path'], problem);
  if (format === '') {
    if (needsFormat(filesystem)) findings.refuse([...at, 'format'], `is missing; write one of ${FORMATS.join(', ')}`);
  } else if (!FORMATS.includes(format)) {
    findings.refuse([...at, 'format'], `is none of ${FORMATS.join(', ')}`);
  }
  const limit = LABEL_LIMITS[format];
  if (limit !== undefined && label.length > limit) {
    findings.refuse([...at, 'label'], `must have at most ${limit} characters on ${format}`);
  }
}

function needsFormat({ path, label, uuid, wipeFilesystem, options, mountOptions }: IgnitionFilesystem): boolean {
  const isSet = [path, label, uuid].some((value) => value !== undefined && value !== '');
  return isSet || wipeFilesystem === true || options !== undefined || mountOptions !== undefined;
}
