import type { IgnitionConfig, IgnitionUser } from '../ignition/config.js';
import type { ConfigContent } from './content.js';
import { sameByKey, sameJson } from './same-meaning.js';

/** Storage sections whose change is accepted although existing nodes cannot follow it; as MachineConfiguration has them. */
export type StorageOverride = 'Disks' | 'FileSystems' | 'Raid';

export interface ReconcileOptions {
  /** The one user whose keys and password a node can change. */
  readonly sshUser: string;
  readonly overrides?: readonly StorageOverride[] | undefined;
}

export type Reconcilable =
  | { readonly ok: true }
  /** `field` from `spec` on; `message` is one line without contents, keys or hashes. */
  | { readonly ok: false; readonly field: string; readonly message: string };

export type Refusal = Extract<Reconcilable, { ok: false }>;
type Check = (old: ConfigContent, next: ConfigContent, options: ReconcileOptions) => Refusal | undefined;

function refuse(field: string, message: string): Refusal {
  return { ok: false, field, message };
}

const FIRST_BOOT =
  'is only acted on when a node boots for the first time, so a running node cannot follow a change of it';
const PUT_BACK = 'put it back as it was, or reinstall the nodes of the pool';

type Storage = NonNullable<IgnitionConfig['storage']>;
interface StorageSection {
  readonly field: keyof Storage;
  readonly override?: StorageOverride;
  readonly same: (old: Storage, next: Storage) => boolean;
}
const STORAGE: readonly StorageSection[] = [
  { field: 'disks', override: 'Disks', same: (a, b) => sameByKey(a.disks, b.disks, (disk) => disk.device) },
  {
    field: 'filesystems',
    override: 'FileSystems',
    same: (a, b) => sameByKey(a.filesystems, b.filesystems, (filesystem) => filesystem.device),
  },
  { field: 'raid', override: 'Raid', same: (a, b) => sameByKey(a.raid, b.raid, (array) => array.name) },
  { field: 'luks', same: (a, b) => sameByKey(a.luks, b.luks, (volume) => volume.name) },
  { field: 'directories', same: (a, b) => sameByKey(a.directories, b.directories, (directory) => directory.path) },
  { field: 'links', same: (a, b) => sameByKey(a.links, b.links, (link) => link.path) },
];

const checkStorage: Check = (old, next, { overrides = [] }) => {
  const [a, b] = [old.config?.storage ?? {}, next.config?.storage ?? {}];
  const differing = STORAGE.find(
    ({ override, same }) => (override === undefined || !overrides.includes(override)) && !same(a, b),
  );
  if (differing === undefined) return undefined;
  const { field, override } = differing;
  const way = override === undefined ? '' : `, or name ${override} in irreconcilableValidationOverrides`;
  return refuse(`spec.config.storage.${field}`, `${FIRST_BOOT}; ${PUT_BACK}${way}`);
};

/** Of the document itself a running node looks at nothing but the version. */
const checkIgnitionSection: Check = (old, next) => {
  const [a, b] = [old.config?.ignition, next.config?.ignition];
  for (const field of ['config', 'proxy', 'security', 'timeouts'] as const) {
    if (!sameJson(a?.[field], b?.[field])) return refuse(`spec.config.ignition.${field}`, `${FIRST_BOOT}; ${PUT_BACK}`);
  }
  return undefined;
};

const checkKernelArguments: Check = (old, next) =>
  sameJson(old.config?.kernelArguments, next.config?.kernelArguments)
    ? undefined
    : refuse('spec.config.kernelArguments', `${FIRST_BOOT}; write spec.kernelArguments instead`);

const checkGroups: Check = (old, next) =>
  sameByKey(old.config?.passwd?.groups, next.config?.passwd?.groups, (group) => group.name)
    ? undefined
    : refuse('spec.config.passwd.groups', `${FIRST_BOOT}; ${PUT_BACK}`);

/** A user without what a running node can change. */
function fixedPart(user: IgnitionUser | undefined): object {
  return Object.fromEntries(
    Object.entries(user ?? {}).filter(([key]) => !['name', 'sshAuthorizedKeys', 'passwordHash'].includes(key)),
  );
}

/** Any other user than that of the flavour stays as first boot made it. */
function checkOtherUser(before: IgnitionUser | undefined, after: IgnitionUser | undefined, sshUser: string) {
  if (sameJson(before, after)) return undefined;
  const name = after?.name ?? before?.name ?? '';
  return refuse(
    'spec.config.passwd.users',
    `changes user ${name}; a running node changes only the keys and the password of ${sshUser}: ${PUT_BACK}`,
  );
}

/** Leaving the user out is allowed and takes its keys and password away. */
function checkSshUser(before: IgnitionUser | undefined, after: IgnitionUser | undefined): Refusal | undefined {
  if (after === undefined) return undefined;
  const [old, next]: Partial<Record<string, unknown>>[] = [fixedPart(before), fixedPart(after)];
  const changed = Object.keys({ ...old, ...next }).find((key) => !sameJson(old?.[key], next?.[key]));
  if (changed !== undefined) {
    return refuse(
      `spec.config.passwd.users.${changed}`,
      `of user ${after.name} ${FIRST_BOOT}; only sshAuthorizedKeys and passwordHash can change`,
    );
  }
  const canLogIn = (after.sshAuthorizedKeys ?? []).length > 0 || after.passwordHash !== undefined;
  if (canLogIn || before === undefined || sameJson(before, after)) return undefined;
  return refuse(
    'spec.config.passwd.users',
    `leaves user ${after.name} without a key or password; keep one, or leave the user out if nobody shall log in`,
  );
}

const checkUsers: Check = (old, next, { sshUser }) => {
  const [a, b] = [old.config?.passwd?.users ?? [], next.config?.passwd?.users ?? []];
  const names = new Set([...a, ...b].map((user) => user.name));
  for (const name of names) {
    const named = (user: IgnitionUser) => user.name === name;
    const [before, after] = [a.find(named), b.find(named)];
    const refusal = name === sshUser ? checkSshUser(before, after) : checkOtherUser(before, after, sshUser);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
};

const checkAppend: Check = (_, next) => {
  const appending = next.config?.storage?.files?.find((file) => (file.append ?? []).length > 0);
  if (appending === undefined) return undefined;
  return refuse(
    'spec.config.storage.files.append',
    `of ${appending.path} cannot be done on a running node, it would be appended again at each update: write the whole file`,
  );
};

const checkFips: Check = (old, next) =>
  old.fips === next.fips
    ? undefined
    : refuse(
        'spec.fips',
        'is fixed when a node is installed; put it back as it was, or reinstall the nodes of the pool',
      );

const CHECKS: readonly Check[] = [
  checkGroups,
  checkUsers,
  checkKernelArguments,
  checkIgnitionSection,
  checkStorage,
  checkAppend,
  checkFips,
];

/**
 * Whether a node that runs `old` can be brought to `next` without being installed anew; otherwise the first field that
 * forbids it. Whatever a node would silently not follow is refused. Not for the first config of a node: at first boot
 * all of it is acted on.
 */
export function checkReconcilable(old: ConfigContent, next: ConfigContent, options: ReconcileOptions): Reconcilable {
  return reconcileObstacles(old, next, options)[0] ?? { ok: true };
}

/** As checkReconcilable, but all that forbids it; of each section the first. */
export function reconcileObstacles(old: ConfigContent, next: ConfigContent, options: ReconcileOptions): Refusal[] {
  return CHECKS.flatMap((check) => check(old, next, options) ?? []);
}
