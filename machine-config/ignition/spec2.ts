import { z } from 'zod';
import type {
  IgnitionConfig,
  IgnitionDirectory,
  IgnitionDropin,
  IgnitionFile,
  IgnitionLink,
  IgnitionUnit,
  IgnitionUser,
} from './config.js';
import type { FieldPath, Findings } from './findings.js';

/** Ignition spec 2.0 to 2.2 as far as it can be translated to spec 3; the rest is known here only to be refused by name. */
const text = z.string();
const flag = z.boolean();
const int = z.int();
const owner = z.strictObject({ id: int.exactOptional(), name: text.exactOptional() });
const node = {
  filesystem: text.exactOptional(),
  path: text,
  overwrite: flag.exactOptional(),
  user: owner.exactOptional(),
  group: owner.exactOptional(),
};
const resource = z.strictObject({
  source: text.exactOptional(),
  compression: text.exactOptional(),
  verification: z.strictObject({ hash: text.exactOptional() }).exactOptional(),
});
const file = z.strictObject({
  ...node,
  contents: resource.exactOptional(),
  append: flag.exactOptional(),
  mode: int.exactOptional(),
});
const directory = z.strictObject({ ...node, mode: int.exactOptional() });
const link = z.strictObject({ ...node, target: text.exactOptional(), hard: flag.exactOptional() });
const dropin = z.strictObject({ name: text, contents: text.exactOptional() });
const unit = z.strictObject({
  name: text,
  enable: flag.exactOptional(),
  enabled: flag.exactOptional(),
  mask: flag.exactOptional(),
  contents: text.exactOptional(),
  dropins: z.array(dropin).exactOptional(),
});
const user = z.strictObject({
  name: text,
  passwordHash: text.exactOptional(),
  sshAuthorizedKeys: z.array(text).exactOptional(),
  uid: int.exactOptional(),
  gecos: text.exactOptional(),
  homeDir: text.exactOptional(),
  noCreateHome: flag.exactOptional(),
  primaryGroup: text.exactOptional(),
  groups: z.array(text).exactOptional(),
  noUserGroup: flag.exactOptional(),
  noLogInit: flag.exactOptional(),
  shell: text.exactOptional(),
  system: flag.exactOptional(),
  create: z.unknown().exactOptional(),
});
const untranslated = z.unknown().exactOptional();

export const ignition2Schema = z.strictObject({
  ignition: z.strictObject({
    version: text,
    config: z.strictObject({ append: untranslated, replace: untranslated }).exactOptional(),
    timeouts: z
      .strictObject({ httpResponseHeaders: int.exactOptional(), httpTotal: int.exactOptional() })
      .exactOptional(),
    security: z.strictObject({ tls: untranslated }).exactOptional(),
  }),
  networkd: z.strictObject({ units: untranslated }).exactOptional(),
  passwd: z.strictObject({ users: z.array(user).exactOptional(), groups: untranslated }).exactOptional(),
  storage: z
    .strictObject({
      disks: untranslated,
      raid: untranslated,
      filesystems: untranslated,
      files: z.array(file).exactOptional(),
      directories: z.array(directory).exactOptional(),
      links: z.array(link).exactOptional(),
    })
    .exactOptional(),
  systemd: z.strictObject({ units: z.array(unit).exactOptional() }).exactOptional(),
});
type Ignition2 = z.infer<typeof ignition2Schema>;
type Node2 = z.infer<typeof file> | z.infer<typeof directory> | z.infer<typeof link>;

/** What has no translation: the section, and what to do. */
function refuseUntranslatable(config: Ignition2, findings: Findings): void {
  const refuse = (path: FieldPath, advice: string) =>
    findings.refuse(['config', ...path], `cannot be translated from spec 2; ${advice}`);
  if (config.networkd?.units !== undefined) {
    refuse(['networkd', 'units'], 'write the files below /etc/systemd/network under storage.files');
  }
  for (const section of ['disks', 'raid', 'filesystems'] as const) {
    if (config.storage?.[section] !== undefined) refuse(['storage', section], 'write the config in spec 3.4.0');
  }
  if (config.passwd?.groups !== undefined) refuse(['passwd', 'groups'], 'write the config in spec 3.4.0');
  for (const key of ['append', 'replace'] as const) {
    const reference = config.ignition.config?.[key];
    if (reference !== undefined) refuse(['ignition', 'config', key], 'write the content into this MachineConfig');
  }
  if (config.ignition.security?.tls !== undefined) refuse(['ignition', 'security'], 'write the config in spec 3.4.0');
}

/** Translates to the model of spec 3. Entries that spec 2 allows twice are reduced as the field's own translator does. */
export function translateSpec2(config: Ignition2, findings: Findings): IgnitionConfig {
  refuseUntranslatable(config, findings);
  const at = (section: string, list: string) => ['config', section, list];
  const nodes = config.storage ?? {};
  const files = (nodes.files ?? []).map((entry, index) =>
    translateFile(entry, [...at('storage', 'files'), index], findings),
  );
  const directories = (nodes.directories ?? []).map((entry, index): IgnitionDirectory =>
    translateNode(entry, [...at('storage', 'directories'), index], findings),
  );
  const links = (nodes.links ?? []).map((entry, index): IgnitionLink =>
    translateNode(entry, [...at('storage', 'links'), index], findings),
  );
  const storage = {
    ...listOf(
      'files',
      lastOfEach(files, ({ path }) => path, at('storage', 'files'), findings),
    ),
    ...listOf('directories', directories),
    ...listOf('links', links),
  };
  const units = reduceUnits((config.systemd?.units ?? []).map(translateUnit), at('systemd', 'units'), findings);
  const users = reduceUsers(
    (config.passwd?.users ?? []).map((entry, index) =>
      translateUser(entry, [...at('passwd', 'users'), index], findings),
    ),
    at('passwd', 'users'),
    findings,
  );
  const timeouts = config.ignition.timeouts;
  return {
    ignition: { version: config.ignition.version, ...(timeouts === undefined ? {} : { timeouts }) },
    ...(Object.keys(storage).length === 0 ? {} : { storage }),
    ...(units.length === 0 ? {} : { systemd: { units } }),
    ...(users.length === 0 ? {} : { passwd: { users } }),
  };
}

function listOf<K extends string, T>(key: K, list: T[]): { [key in K]?: T[] } {
  return list.length === 0 ? {} : ({ [key]: list } as { [key in K]: T[] });
}

function translateNode<T extends Node2>(entry: T, at: FieldPath, findings: Findings): Omit<T, 'filesystem'> {
  const { filesystem, ...rest } = entry;
  if (filesystem === undefined || filesystem === '') {
    findings.refuse(
      [...at, 'filesystem'],
      'is missing, spec 2 demands it; write filesystem: root, or the config in spec 3.4.0',
    );
  } else if (filesystem !== 'root') {
    findings.refuse([...at, 'filesystem'], 'is not root; other filesystems cannot be translated from spec 2');
  }
  return rest;
}

function translateFile(entry: z.infer<typeof file>, at: FieldPath, findings: Findings): IgnitionFile {
  const { append, ...rest } = translateNode(entry, at, findings);
  if (append === true) {
    findings.refuse([...at, 'append'], 'append is not supported after first boot; write the whole file in contents');
  }
  // An absent overwrite means true in spec 2. Without contents it would be invalid in spec 3, where it means the same.
  return rest.contents?.source === undefined ? rest : { overwrite: true, ...rest };
}

function translateUnit({ enable, ...rest }: z.infer<typeof unit>): IgnitionUnit {
  return enable === true ? { ...rest, enabled: true } : rest;
}

function translateUser({ create, ...rest }: z.infer<typeof user>, at: FieldPath, findings: Findings): IgnitionUser {
  if (create !== undefined) {
    findings.refuse([...at, 'create'], 'cannot be translated from spec 2; write its fields directly into the user');
  }
  return rest;
}

/** The last entry of a name wins, and takes the place of the first; each one that loses is named. */
function lastOfEach<T>(
  entries: readonly T[],
  key: (entry: T) => string,
  at: FieldPath,
  findings: Findings,
  combine: (earlier: T, last: T) => T = (_, last) => last,
): T[] {
  const result = new Map<string, T>();
  entries.forEach((entry, index) => {
    const earlier = result.get(key(entry));
    if (earlier !== undefined) {
      findings.warn([...at, index], 'is listed twice; as in spec 2 the last entry counts, put both into one');
    }
    result.set(key(entry), earlier === undefined ? entry : combine(earlier, entry));
  });
  return [...result.values()];
}

function reduceUnits(units: readonly IgnitionUnit[], at: FieldPath, findings: Findings): IgnitionUnit[] {
  return lastOfEach(
    units,
    ({ name }) => name,
    at,
    findings,
    (earlier, last) => {
      const names = new Set((last.dropins ?? []).map(({ name }) => name));
      const others = (earlier.dropins ?? []).filter(({ name }) => !names.has(name));
      const dropins: IgnitionDropin[] = [...(last.dropins ?? []), ...others];
      return dropins.length === 0 ? last : { ...last, dropins };
    },
  );
}

function reduceUsers(users: readonly IgnitionUser[], at: FieldPath, findings: Findings): IgnitionUser[] {
  return lastOfEach(
    users,
    ({ name }) => name,
    at,
    findings,
    (earlier, last) => {
      const keys = [...new Set([...(last.sshAuthorizedKeys ?? []), ...(earlier.sshAuthorizedKeys ?? [])])];
      return keys.length === 0 ? last : { ...last, sshAuthorizedKeys: keys };
    },
  );
}
