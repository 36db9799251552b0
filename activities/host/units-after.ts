import { join } from 'node:path';
import type { Host } from './host.js';
import { MASK_TARGET, readState, type PathState } from './path-state.js';
import { findUnitFile, templateOf, UNIT_FOLDER } from './units.js';

/** The units of a host as they will be once an update is applied. */
export interface UnitsAfter {
  stateAt(path: string): Promise<PathState>;
  /** It has a file, or systemd knows it without one: generated, transient, or by another name. */
  exists(unit: string): Promise<boolean>;
  /** By a link of the administrator's folder. */
  isMasked(unit: string): Promise<boolean>;
  /** The update itself changes the file that defines the unit, or its mask. */
  isChanged(unit: string): boolean;
}

/** `planned`: what paths will be; what is not in there stays as it is. */
export function unitsAfter(
  host: Host,
  planned: ReadonlyMap<string, PathState>,
  changed: readonly { readonly path: string }[],
): UnitsAfter {
  const changedPaths = new Set(changed.map(({ path }) => path));
  const stateAt = async (path: string) => planned.get(path) ?? readState(join(host.root, path));
  const isChanged = (unit: string) =>
    [unit, templateOf(unit)].some((name) => changedPaths.has(`${UNIT_FOLDER}/${name}`));
  return {
    stateAt,
    isChanged,
    async exists(unit) {
      const file = await findUnitFile(host.root, unit, async (path) => (await stateAt(path)).kind !== 'absent');
      if (file !== undefined) return true;
      // What systemd says holds for the present, so not for a unit whose file goes.
      return !isChanged(unit) && (await host.systemctl.enablement(unit)) !== 'not-found';
    },
    async isMasked(unit) {
      const state = await stateAt(`${UNIT_FOLDER}/${unit}`);
      return state.kind === 'link' && state.target === MASK_TARGET;
    },
  };
}
