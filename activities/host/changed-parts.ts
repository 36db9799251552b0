import type { ConfigContent } from '../../machine-config/change/content.js';
import type { ChangedParts } from '../../machine-config/change/disruption.js';
import { sameJson, sameUnit } from '../../machine-config/change/same-meaning.js';
import type { IgnitionFile, IgnitionUnit } from '../../machine-config/ignition/config.js';
import type { Desired } from './desired.js';
import type { PathState } from './path-state.js';
import type { PlannedChange } from './plan.js';
import { isInstanceOf } from './units.js';

/** What an update really changes on this host, in the names of the configs. */
export interface HostChange extends ChangedParts {
  /** By name as in `files`: what was found there. */
  readonly found: ReadonlyMap<string, PathState>;
}

interface Configs {
  readonly wanted: Desired;
  readonly had: Desired | undefined;
}

/** `units`: of which anything changes, their enablement too. */
export function changedParts(
  changes: readonly PlannedChange[],
  units: readonly string[],
  { wanted, had }: Configs,
): HostChange {
  const found = new Map<string, PathState>();
  const changedUnits = new Set(units.filter((unit) => !followsTemplate(unit, units, { wanted, had })));
  let passwd = false;
  for (const change of changes) {
    const entries = [wanted.entries.get(change.path), had?.entries.get(change.path)].filter((one) => one !== undefined);
    for (const { declared, path, unit, where } of entries) {
      if (unit !== undefined) changedUnits.add(unit);
      else if (where.startsWith('passwd.')) passwd = true;
      else found.set(declared ?? path, change.before);
    }
    // What no config speaks of any more, and whose config is lost: as dear as any file.
    if (entries.length === 0 && change.origin === 'file') found.set(change.path, change.before);
  }
  return { files: new Set(found.keys()), found, units: changedUnits, passwd, os: new Set() };
}

/** An instance that is only enabled anew because its template has changed: the template's policy is what counts. */
function followsTemplate(unit: string, units: readonly string[], { wanted, had }: Configs): boolean {
  const isInstance = units.some((template) => isInstanceOf(template, unit));
  return isInstance && wanted.enablement.get(unit) === had?.enablement.get(unit);
}

/** A mode that no file has: what is there is something else. */
const NO_FILE = -1;

/**
 * The old config with what this host really has in the places that change: by that, not by what a config said, the cost
 * is judged. A node without an old config may have most of the next one already.
 */
export function contentFound(old: ConfigContent, next: ConfigContent, changed: HostChange): ConfigContent {
  const files = (old.config?.storage?.files ?? []).filter(({ path }) => !changed.found.has(path));
  for (const [path, state] of changed.found) {
    const file = fileFound(path, state);
    if (file !== undefined) files.push(file);
  }
  const samePasswd = sameJson(old.config?.passwd, next.config?.passwd);
  const { passwd, ...config } = old.config ?? { ignition: { version: '3.5.0' } };
  return {
    ...old,
    config: {
      ...config,
      storage: { ...config.storage, files },
      systemd: { units: unitsFound(old, next, changed.units) },
      ...(passwd === undefined || (changed.passwd && samePasswd) ? {} : { passwd }),
    },
  };
}

function fileFound(path: string, state: PathState): IgnitionFile | undefined {
  if (state.kind === 'absent') return undefined;
  if (state.kind !== 'file') return { path, mode: NO_FILE };
  const source = `data:;base64,${state.contents.toString('base64')}`;
  return { path, mode: state.mode, user: { id: state.uid }, group: { id: state.gid }, contents: { source } };
}

/** A unit that changes although both configs say the same of it is one that this host did not have so. */
function unitsFound(old: ConfigContent, next: ConfigContent, changed: ReadonlySet<string>): IgnitionUnit[] {
  const nextUnits = new Map((next.config?.systemd?.units ?? []).map((unit) => [unit.name, unit]));
  const oldUnits = new Map((old.config?.systemd?.units ?? []).map((unit) => [unit.name, unit]));
  for (const name of changed) {
    const before = oldUnits.get(name);
    const after = nextUnits.get(name);
    if (before === undefined && after === undefined) oldUnits.set(name, { name });
    else if (before !== undefined && after !== undefined && sameUnit(before, after)) oldUnits.delete(name);
  }
  return [...oldUnits.values()];
}
