import { firstVersionWith, isOpenshiftBefore, type ButaneSpec } from './specs.js';

const FIRST_BOOT = 'is only made at first boot, and a running node cannot follow a change of it';
const USER_FIELD = 'is only set at first boot; of a user a running node changes the keys and the password alone';
const BOOT_LOADER = 'is no part of a MachineConfig; set the password of the boot loader when the machine is installed';

/** Places that no version of the variant has, lists as `[]`, and what to do instead. */
const REFUSED: Readonly<Record<ButaneSpec['variant'], Readonly<Record<string, string>>>> = {
  openshift: {
    kernel_arguments: 'write openshift.kernel_arguments, a plain list',
    'passwd.groups': FIRST_BOOT,
    'storage.directories': `${FIRST_BOOT}; the folder of a file is made with the file`,
    'storage.links': `${FIRST_BOOT}; a file with contents can be followed`,
    'storage.files[].append': 'would be appended again at each update; write the whole file in contents',
    'storage.files[].contents.http_headers':
      'only have a meaning for remote content, which a node cannot fetch; leave them out',
    grub: BOOT_LOADER,
    ...Object.fromEntries(
      [
        ...['gecos', 'groups', 'home_dir', 'no_create_home', 'no_log_init', 'no_user_group', 'primary_group', 'shell'],
        ...['should_exist', 'system', 'uid'],
      ].map((field) => [`passwd.users[].${field}`, USER_FIELD]),
    ),
  },
  fcos: {
    metadata: 'belongs to variant openshift; give name and role on the command line (--name, --role)',
    openshift: 'belongs to variant openshift; write variant: openshift, or leave it out',
    grub: BOOT_LOADER,
  },
  flatcar: {
    metadata: 'belongs to variant openshift; give name and role on the command line (--name, --role)',
    openshift: 'belongs to variant openshift; write variant: openshift, or leave it out',
    boot_device: 'is of variant fcos, for its own disk image; write storage.disks and storage.filesystems',
    'storage.luks[].clevis': 'is not in flatcar, whose image has no clevis; write key_file',
    'storage.luks[].cex': 'is not in flatcar; write key_file',
    grub: BOOT_LOADER,
  },
};

/** Why this spec refuses what stands at `place`, although some spec has it; undefined: it does not. */
export function whyRefused(spec: ButaneSpec, place: string, since: number | undefined): string | undefined {
  const { variant, version, minor } = spec;
  const reason = REFUSED[variant][place];
  if (reason !== undefined) return `is refused in variant ${variant}: ${reason}`;
  const first = firstNeeded(spec, place, since);
  if (first === 'now') return undefined;
  if (first === undefined) return `exists in no version of ${variant} (it gives Ignition 3.${minor}.0); leave it out`;
  return `exists from ${variant} ${first} on, and this file says ${version}; write version: ${first}`;
}

/** The first version that has it, or `now` if this one has. */
function firstNeeded(spec: ButaneSpec, place: string, since: number | undefined): string | undefined {
  if (since !== undefined && since > spec.minor) return firstVersionWith(spec.variant, since);
  // Both give Ignition 3.2, so that the mark alone does not tell them apart.
  if (place === 'boot_device' && spec.variant === 'fcos' && spec.version === '1.2.0') return '1.3.0';
  if (place === 'passwd.users[].password_hash' && isOpenshiftBefore(spec, 13)) return '4.13.0';
  if (place === 'storage.files[].contents.compression' && isOpenshiftBefore(spec, 10)) return '4.10.0';
  return 'now';
}

/** Whether contents may be packed with gzip where that is smaller. */
export function packsContents(spec: ButaneSpec): boolean {
  return !isOpenshiftBefore(spec, 10) && spec.minor >= 1;
}

/** Whether LUKS volumes get the cipher that FIPS 140-2 demanded, unless they name one. */
export function setsFipsCipher(spec: ButaneSpec): boolean {
  return isOpenshiftBefore(spec, 20);
}
