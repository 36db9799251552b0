import type { DisruptionAction, EffectiveDisruptionAction } from '../api/node-disruption-policy.js';
import { fileContents } from '../ignition/contents.js';
import type { ConfigContent } from './content.js';
import { diffConfigs, type ConfigDiff, type KeyedChange } from './diff-configs.js';
import { policyForFile, REGISTRIES_CONF, type EffectivePolicies } from './policies.js';
import { isRegistriesChangeHarmless } from './registries-conf.js';

/** What a change costs a node, from nothing to everything; each cost includes those before it. */
export type DisruptionCost = 'none' | 'services' | 'drain' | 'reboot';

/** One thing that changes, and what its policy says. */
export interface DisruptionCause {
  /** For example `file /etc/a`, `unit a.service` or `kernel arguments`; names, never contents. */
  readonly what: string;
  readonly actions: readonly EffectiveDisruptionAction[];
}

const REBOOT: readonly DisruptionAction[] = [{ type: 'Reboot' }];

function keysOf({ added, changed, removed }: KeyedChange): string[] {
  return [...added, ...changed, ...removed].sort();
}

/** What no policy can soften. */
function hostCauses(diff: ConfigDiff): DisruptionCause[] {
  const causes: [boolean, string][] = [
    [diff.osImage, 'operating-system image'],
    [diff.kernelArguments.changed, 'kernel arguments'],
    [diff.fips, 'FIPS mode'],
    [diff.kernelType, 'kernel type'],
    [diff.extensions, 'extensions'],
  ];
  return causes.filter(([differs]) => differs).map(([, what]) => ({ what, actions: REBOOT }));
}

/**
 * Everything that changes, with the actions of its policy, in a fixed order: what no policy covers, files by path,
 * units by name, users. A file or unit without a policy reboots the node.
 */
export function disruptionCauses(diff: ConfigDiff, policies: EffectivePolicies): DisruptionCause[] {
  return [
    ...hostCauses(diff),
    ...keysOf(diff.files).map((path) => ({
      what: `file ${path}`,
      actions: policyForFile(path, policies)?.actions ?? REBOOT,
    })),
    ...keysOf(diff.units).map((name) => ({
      what: `unit ${name}`,
      actions: policies.units.find((policy) => policy.name === name)?.actions ?? REBOOT,
    })),
    ...(diff.passwd ? [{ what: 'SSH keys and password', actions: policies.sshkey.actions }] : []),
  ];
}

function registriesText(content: ConfigContent): string | undefined {
  const file = content.config?.storage?.files?.find(({ path }) => path === REGISTRIES_CONF);
  return file === undefined ? undefined : Buffer.from(fileContents(file)).toString('utf8');
}

/** `Special` stands for: CRI-O reads its registries again, on a drained node if images may come from elsewhere then. */
function resolveSpecial(
  action: EffectiveDisruptionAction,
  old: ConfigContent,
  next: ConfigContent,
): DisruptionAction[] {
  const { type, ...target } = action;
  if (type !== 'Special') return [{ type, ...target }];
  const reload: DisruptionAction = { type: 'Reload', reload: { serviceName: 'crio.service' } };
  return isRegistriesChangeHarmless(registriesText(old), registriesText(next)) ? [reload] : [{ type: 'Drain' }, reload];
}

const serviceOf = (action: DisruptionAction): string | undefined =>
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

/**
 * What bringing a node from `old` to `next` does to it, as the actions that are carried out, in order: Drain, then
 * DaemonReload, then services, each once, Restart in place of Reload for the same service. `Reboot` and `None` stand
 * alone; the list is never empty. Not asked for changes that `checkReconcilable` refuses.
 */
export function disruption(old: ConfigContent, next: ConfigContent, policies: EffectivePolicies): DisruptionAction[] {
  const causes = disruptionCauses(diffConfigs(old, next), policies);
  const lists = causes.map(({ actions }) => actions.flatMap((action) => resolveSpecial(action, old, next)));
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

/** The actions as one word: the most that they do to the workloads of a node. */
export function summariseCost(actions: readonly EffectiveDisruptionAction[]): DisruptionCost {
  const has = (...types: EffectiveDisruptionAction['type'][]) => actions.some(({ type }) => types.includes(type));
  if (has('Reboot')) return 'reboot';
  if (has('Drain', 'Special')) return 'drain';
  return has('Reload', 'Restart', 'DaemonReload') ? 'services' : 'none';
}
