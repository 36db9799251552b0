import { join } from 'node:path';
import { parseInstallSection } from './offline-systemctl.js';
import { readState, type PathState } from './path-state.js';
import { findUnitFile } from './units.js';
import type { UnitsAfter } from './units-after.js';

/**
 * The units together with those that systemd enables and disables with them (`Also=`), by their files as they are and as
 * they will be: whose links an update may touch.
 */
export async function withAlso(units: Iterable<string>, root: string, after: UnitsAfter): Promise<string[]> {
  const all = new Set(units);
  for (const unit of all) {
    const definitions = [
      await definition(root, unit, (path) => readState(join(root, path))),
      await definition(root, unit, (path) => after.stateAt(path)),
    ];
    for (const text of definitions) for (const other of parseInstallSection(text).also) all.add(other);
  }
  return [...all];
}

async function definition(root: string, unit: string, stateAt: (path: string) => Promise<PathState>): Promise<string> {
  const path = await findUnitFile(root, unit, async (candidate) => (await stateAt(candidate)).kind !== 'absent');
  const state = path === undefined ? undefined : await stateAt(path);
  return state?.kind === 'file' ? state.contents.toString('utf8') : '';
}
