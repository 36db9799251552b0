import { z } from 'zod';

/**
 * Ignition spec 3.5 as far as a MachineConfig can carry it, and through the marks `since` also 3.0 to 3.4: a field
 * marked `since(n, …)` exists from 3.n on. After parsing nothing is null, and no object or list is empty.
 */
function since<S extends z.ZodType>(minor: number, schema: S): S {
  return schema.meta({ since: minor });
}

const text = z.string();
const int = z.int();
const flag = z.boolean();
const textList = z.array(z.string());

const header = z.strictObject({ name: text, value: text.exactOptional() });

const resource = z.strictObject({
  source: text.exactOptional(),
  compression: text.exactOptional(),
  httpHeaders: since(1, z.array(header)).exactOptional(),
  verification: z.strictObject({ hash: text.exactOptional() }).exactOptional(),
});

const ignitionSection = z.strictObject({
  version: text,
  config: z
    .strictObject({ merge: z.array(resource).exactOptional(), replace: resource.exactOptional() })
    .exactOptional(),
  proxy: since(
    1,
    z.strictObject({
      httpProxy: text.exactOptional(),
      httpsProxy: text.exactOptional(),
      noProxy: textList.exactOptional(),
    }),
  ).exactOptional(),
  security: z
    .strictObject({
      tls: z.strictObject({ certificateAuthorities: z.array(resource).exactOptional() }).exactOptional(),
    })
    .exactOptional(),
  timeouts: z
    .strictObject({ httpResponseHeaders: int.exactOptional(), httpTotal: int.exactOptional() })
    .exactOptional(),
});

const owner = z.strictObject({ id: int.exactOptional(), name: text.exactOptional() });
const nodeFields = {
  path: text,
  overwrite: flag.exactOptional(),
  user: owner.exactOptional(),
  group: owner.exactOptional(),
};
const file = z.strictObject({
  ...nodeFields,
  contents: resource.exactOptional(),
  append: z.array(resource).exactOptional(),
  mode: int.exactOptional(),
});
const directory = z.strictObject({ ...nodeFields, mode: int.exactOptional() });
const link = z.strictObject({ ...nodeFields, target: text.exactOptional(), hard: flag.exactOptional() });

const partition = z.strictObject({
  label: text.exactOptional(),
  number: int.exactOptional(),
  sizeMiB: int.exactOptional(),
  startMiB: int.exactOptional(),
  typeGuid: text.exactOptional(),
  guid: text.exactOptional(),
  wipePartitionEntry: flag.exactOptional(),
  shouldExist: flag.exactOptional(),
  resize: since(2, flag).exactOptional(),
});
const disk = z.strictObject({
  device: text,
  wipeTable: flag.exactOptional(),
  partitions: z.array(partition).exactOptional(),
});
const raid = z.strictObject({
  name: text,
  level: text.exactOptional(),
  devices: textList.exactOptional(),
  spares: int.exactOptional(),
  options: textList.exactOptional(),
});
const filesystem = z.strictObject({
  device: text,
  format: text.exactOptional(),
  path: text.exactOptional(),
  wipeFilesystem: flag.exactOptional(),
  label: text.exactOptional(),
  uuid: text.exactOptional(),
  options: textList.exactOptional(),
  mountOptions: since(1, textList).exactOptional(),
});

const tang = z.strictObject({
  url: text.exactOptional(),
  thumbprint: text.exactOptional(),
  advertisement: since(4, text).exactOptional(),
});
const clevis = z.strictObject({
  tang: z.array(tang).exactOptional(),
  tpm2: flag.exactOptional(),
  threshold: int.exactOptional(),
  custom: z
    .strictObject({ pin: text.exactOptional(), config: text.exactOptional(), needsNetwork: flag.exactOptional() })
    .exactOptional(),
});
const luks = z.strictObject({
  name: text,
  device: text.exactOptional(),
  keyFile: resource.exactOptional(),
  label: text.exactOptional(),
  uuid: text.exactOptional(),
  options: textList.exactOptional(),
  discard: since(4, flag).exactOptional(),
  openOptions: since(4, textList).exactOptional(),
  wipeVolume: flag.exactOptional(),
  clevis: clevis.exactOptional(),
  cex: since(5, z.strictObject({ enabled: flag.exactOptional() })).exactOptional(),
});

const dropin = z.strictObject({ name: text, contents: text.exactOptional() });
const unit = z.strictObject({
  name: text,
  enabled: flag.exactOptional(),
  mask: flag.exactOptional(),
  contents: text.exactOptional(),
  dropins: z.array(dropin).exactOptional(),
});

const user = z.strictObject({
  name: text,
  passwordHash: text.exactOptional(),
  sshAuthorizedKeys: textList.exactOptional(),
  uid: int.exactOptional(),
  gecos: text.exactOptional(),
  homeDir: text.exactOptional(),
  noCreateHome: flag.exactOptional(),
  primaryGroup: text.exactOptional(),
  groups: textList.exactOptional(),
  noUserGroup: flag.exactOptional(),
  noLogInit: flag.exactOptional(),
  shell: text.exactOptional(),
  shouldExist: since(2, flag).exactOptional(),
  system: flag.exactOptional(),
});
const group = z.strictObject({
  name: text,
  gid: int.exactOptional(),
  passwordHash: text.exactOptional(),
  shouldExist: since(2, flag).exactOptional(),
  system: flag.exactOptional(),
});

export const ignitionSchema = z.strictObject({
  ignition: ignitionSection,
  kernelArguments: since(
    3,
    z.strictObject({ shouldExist: textList.exactOptional(), shouldNotExist: textList.exactOptional() }),
  ).exactOptional(),
  passwd: z
    .strictObject({ users: z.array(user).exactOptional(), groups: z.array(group).exactOptional() })
    .exactOptional(),
  storage: z
    .strictObject({
      disks: z.array(disk).exactOptional(),
      raid: z.array(raid).exactOptional(),
      luks: since(2, z.array(luks)).exactOptional(),
      filesystems: z.array(filesystem).exactOptional(),
      files: z.array(file).exactOptional(),
      directories: z.array(directory).exactOptional(),
      links: z.array(link).exactOptional(),
    })
    .exactOptional(),
  systemd: z.strictObject({ units: z.array(unit).exactOptional() }).exactOptional(),
});

/** An Ignition config in the model of 3.5, whatever version it came in. */
export type IgnitionConfig = z.infer<typeof ignitionSchema>;
export type IgnitionResource = z.infer<typeof resource>;
export type IgnitionFile = z.infer<typeof file>;
export type IgnitionDirectory = z.infer<typeof directory>;
export type IgnitionLink = z.infer<typeof link>;
export type IgnitionUnit = z.infer<typeof unit>;
export type IgnitionDropin = z.infer<typeof dropin>;
export type IgnitionUser = z.infer<typeof user>;
export type IgnitionGroup = z.infer<typeof group>;
export type IgnitionDisk = z.infer<typeof disk>;
export type IgnitionFilesystem = z.infer<typeof filesystem>;
export type IgnitionRaid = z.infer<typeof raid>;
export type IgnitionLuks = z.infer<typeof luks>;

/** Whether anything in the config exists only from 3.5 on; then, and only then, it is written as 3.5.0. */
export function needsNewestVersion(config: IgnitionConfig): boolean {
  return (config.storage?.luks ?? []).some((volume) => volume.cex !== undefined);
}
