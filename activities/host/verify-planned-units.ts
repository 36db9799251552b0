import { NotPossibleHere } from './entry.js';
import type { Host } from './host.js';
import type { PathState } from './path-state.js';
import type { PlannedChange } from './plan.js';
import { isReadByDaemon, unitOfPath } from './units.js';
import type { UnitsAfter } from './units-after.js';

const MOST_NAMED = 5;

/**
 * What systemd says of the units that an update changes, before anything is written: warnings. Throws NotPossibleHere
 * with what it calls an error. `after`: what every managed path will be; a unit may need a program that comes with it.
 */
export async function verifyPlannedUnits(
  host: Host,
  changes: readonly PlannedChange[],
  { after, units }: { readonly after: ReadonlyMap<string, PathState>; readonly units: UnitsAfter },
): Promise<readonly string[]> {
  const changed = new Set<string>();
  for (const { path, origin } of changes) {
    const unit = origin === 'enablement' ? undefined : unitOfPath(path);
    if (unit !== undefined && !(await units.isMasked(unit)) && (await units.exists(unit))) changed.add(unit);
  }
  if (changed.size === 0) return [];
  const files = new Map<string, Buffer | undefined>();
  const others = new Set<string>();
  for (const [path, state] of after) {
    if (isReadByDaemon(path) && state.kind !== 'directory') {
      files.set(path, state.kind === 'file' ? state.contents : undefined);
    } else if (state.kind !== 'absent') others.add(path);
  }
  const { errors, warnings } = await host.verifyUnits([...changed].sort(), { files, others });
  if (errors.length === 0) return warnings;
  const more = errors.length > MOST_NAMED ? `; and ${errors.length - MOST_NAMED} more` : '';
  throw new NotPossibleHere(`systemd.units: ${errors.slice(0, MOST_NAMED).join('; ')}${more}; correct the units`);
}
