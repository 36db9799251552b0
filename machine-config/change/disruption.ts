import type { DisruptionAction, EffectiveDisruptionAction } from '../api/node-disruption-policy.js';
import { fileContents } from '../ignition/contents.js';
import type { ConfigContent } from './content.js';
import { diffConfigs, type ConfigDiff, type KeyedChange } from './diff-configs.js';
import type { OsField } from './os-fields.js';
import { policyForFile, REGISTRIES_CONF, type EffectivePolicies, type PolicyOrigin } from './policies.js';
import { isRegistriesChangeHarmless } from './registries-conf.js';

/** What a change costs a node, from nothing to everything; each cost includes those before it. */
export type DisruptionCost = 'none' | 'services' | 'drain' | 'reboot';

/** One thing that changes, and what its policy says. */
export interface DisruptionCause {
  readonly kind: 'os' | 'file' | 'unit' | 'passwd';
  /** Path of the file, name of the unit, or field of the MachineConfig; `passwd` for users. */
  readonly name: string;
  /** The same for people: `file /etc/a`, `unit a.service`, `kernel arguments`; names, never contents. */
  readonly what: string;
  readonly actions: readonly EffectiveDisruptionAction[];
  /** Whose policy that is. */
  readonly origin: PolicyOrigin;
  /** Path or unit that the policy is written for; absent where no policy names this. */
  readonly policy?: string;
}

/** What is really to be changed on a host; by names as in the causes. */
export interface ChangedParts {
  readonly files: ReadonlySet<string>;
  readonly units: ReadonlySet<string>;
  readonly passwd: boolean;
  readonly os: ReadonlySet<OsField>;
}

const REBOOT: readonly DisruptionAction[] = [{ type: 'Reboot' }];

function keysOf({ added, changed, removed }: KeyedChange): string[] {
  return [...added, ...changed, ...removed].sort();
}

/** What no policy can soften. */
function hostCauses(diff: ConfigDiff): DisruptionCause[] {
  const causes: [boolean, OsField, string][] = [
    [diff.osImage, 'osImageURL', 'operating-system image'],
    [diff.kernelArguments.changed, 'kernelArguments', 'kernel arguments'],
    [diff.fips, 'fips', 'FIPS mode'],
    [diff.kernelType, 'kernelType', 'kernel type'],
    [diff.extensions, 'extensions', 'extensions'],
  ];
  return causes
    .filter(([differs]) => differs)
    .map(([, name, what]) => ({ kind: 'os', name, what, actions: REBOOT, origin: 'default' }));
}

function fileCause(path: string, policies: EffectivePolicies): DisruptionCause {
  const found = policyForFile(path, policies);
  const { actions, origin } = found ?? policies.otherwise.files;
  const named = found === undefined ? {} : { policy: found.path };
  return { kind: 'file', name: path, what: `file ${path}`, actions, origin, ...named };
}

function unitCause(name: string, policies: EffectivePolicies): DisruptionCause {
  const found = policies.units.find((policy) => policy.name === name);
  const { actions, origin } = found ?? policies.otherwise.units;
  const named = found === undefined ? {} : { policy: found.name };
  return { kind: 'unit', name, what: `unit ${name}`, actions, origin, ...named };
}

/**
 * Everything that changes, with the actions of its policy, in a fixed order: what no policy covers, files by path,
 * units by name, users.
 */
export function disruptionCauses(diff: ConfigDiff, policies: EffectivePolicies): DisruptionCause[] {
  const { actions, origin } = policies.sshkey;
  return [
    ...hostCauses(diff),
    ...keysOf(diff.files).map((path) => fileCause(path, policies)),
    ...keysOf(diff.units).map((name) => unitCause(name, policies)),
    ...(diff.passwd
      ? [{ kind: 'passwd' as const, name: 'passwd', what: 'SSH keys and password', actions, origin }]
      : []),
  ];
}

/**
 * The causes that a host still has to carry out: between two configs more may differ than on a disk that has some of it
 * already.
 */
export function restrictCauses(causes: readonly DisruptionCause[], changed: ChangedParts): DisruptionCause[] {
  const os: ReadonlySet<string> = changed.os;
  const isChanged: Record<DisruptionCause['kind'], (name: string) => boolean> = {
    os: (name) => os.has(name),
    file: (name) => changed.files.has(name),
    unit: (name) => changed.units.has(name),
    passwd: () => changed.passwd,
  };
  return causes.filter(({ kind, name }) => isChanged[kind](name));
}

function registriesText(content: ConfigContent): string | undefined {
  const file = content.config?.storage?.files?.find(({ path }) => path === REGISTRIES_CONF);
  return file === undefined ? undefined : Buffer.from(fileContents(file)).toString('utf8');
}

/**
 * The causes with `Special` written out as what it stands for: CRI-O reads its registries again, on a drained node if
 * images may come from elsewhere then. Done twice it is as done once.
 */
export function resolveSpecial<T extends DisruptionCause>(
  causes: readonly T[],
  old: ConfigContent,
  next: ConfigContent,
): (T & { readonly actions: readonly DisruptionAction[] })[] {
  const reload: DisruptionAction = { type: 'Reload', reload: { serviceName: 'crio.service' } };
  return causes.map((cause) => ({
    ...cause,
    actions: cause.actions.flatMap(({ type, ...target }): DisruptionAction[] => {
      if (type !== 'Special') return [{ type, ...target }];
      return isRegistriesChangeHarmless(registriesText(old), registriesText(next))
        ? [reload]
        : [{ type: 'Drain' }, reload];
    }),
  }));
}

/** The service that an action reloads or restarts. */
export const serviceOf = (action: DisruptionAction): string | undefined =>
  action.restart?.serviceName ?? action.reload?.serviceName;
const idOf = (action: DisruptionAction): string => `${action.type} ${serviceOf(action) ?? ''}`;

/** Restarting a service makes reloading it pointless. */
function withoutReloadsOfRestarted(lists: readonly DisruptionAction[][]): DisruptionAction[][] {
  const restarted = new Set(lists.flat().flatMap((action) => action.restart?.serviceName ?? []));
  return lists.map((list) =>
    list.map((action) => {
      const service = action.reload?.serviceName;
      return service !== undefined && restarted.has(service)
        ? { type: 'Restart', restart: { serviceName: service } }
        : action;
    }),
  );
}

/**
 * Joins lists into one in which each action occurs once and comes after those that come before it in any of the lists;
 * where two lists contradict each other, the first one wins.
 */
function joinInOrder(lists: readonly DisruptionAction[][]): DisruptionAction[] {
  const actions = new Map<string, DisruptionAction>();
  const before = new Map<string, Set<string>>();
  for (const list of lists) {
    list.forEach((action, index) => {
      const id = idOf(action);
      if (!actions.has(id)) actions.set(id, action);
      const earlier = before.get(id) ?? new Set<string>();
      for (const other of list.slice(0, index)) earlier.add(idOf(other));
      before.set(id, earlier);
    });
  }
  const left = [...actions.keys()];
  const joined: DisruptionAction[] = [];
  while (left.length > 0) {
    const free = left.findIndex((id) => !left.some((other) => other !== id && before.get(id)?.has(other) === true));
    const next = left.splice(Math.max(0, free), 1).flatMap((id) => actions.get(id) ?? []);
    joined.push(...next);
  }
  return joined;
}

/** As `disruption`, for causes that were restricted to what a host has to do, or whose actions were. */
export function disruptionOfCauses(
  causes: readonly DisruptionCause[],
  old: ConfigContent,
  next: ConfigContent,
): DisruptionAction[] {
  const lists = resolveSpecial(causes, old, next).map(({ actions }) => [...actions]);
  if (lists.flat().some((action) => action.type === 'Reboot')) return [...REBOOT];
  const services = lists.map((list) => list.filter((action) => serviceOf(action) !== undefined));
  const has = (type: DisruptionAction['type']) => lists.flat().some((action) => action.type === type);
  const found: DisruptionAction[] = [
    ...(has('Drain') ? [{ type: 'Drain' } as const] : []),
    ...(has('DaemonReload') ? [{ type: 'DaemonReload' } as const] : []),
    ...joinInOrder(withoutReloadsOfRestarted(services)),
  ];
  return found.length > 0 ? found : [{ type: 'None' }];
}

/**
 * What bringing a node from `old` to `next` does to it, as the actions that are carried out, in order: Drain, then
 * DaemonReload, then services, each once, Restart in place of Reload for the same service. `Reboot` and `None` stand
 * alone; the list is never empty. Not asked for changes that `checkReconcilable` refuses.
 */
export function disruption(old: ConfigContent, next: ConfigContent, policies: EffectivePolicies): DisruptionAction[] {
  return disruptionOfCauses(disruptionCauses(diffConfigs(old, next), policies), old, next);
}

/** The actions as one word: the most that they do to the workloads of a node. */
export function summariseCost(actions: readonly EffectiveDisruptionAction[]): DisruptionCost {
  const has = (...types: EffectiveDisruptionAction['type'][]) => actions.some(({ type }) => types.includes(type));
  if (has('Reboot')) return 'reboot';
  if (has('Drain', 'Special')) return 'drain';
  return has('Reload', 'Restart', 'DaemonReload') ? 'services' : 'none';
}
