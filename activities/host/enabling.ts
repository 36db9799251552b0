import { dirname, join, posix } from 'node:path';
import type { Host } from './host.js';
import { removeIfEmpty } from './offline-systemctl.js';
import { ABSENT } from './path-state.js';
import { putPath } from './put-path.js';
import { PathRefused, resolveInRoot } from './root-path.js';
import { enablementLinks, isThere } from './units.js';

/**
 * Enables units. Some versions of systemd refuse while a broken link of the unit lies in a `*.wants` folder: then those
 * go, and it is tried once more.
 */
export async function enableUnits(host: Host, units: readonly string[]): Promise<void> {
  try {
    await host.systemctl.enable(units);
  } catch (error) {
    if (!(await removeBrokenLinks(host, units))) throw error;
    await host.systemctl.enable(units);
  }
}

async function removeBrokenLinks(host: Host, units: readonly string[]): Promise<boolean> {
  let removed = false;
  for (const unit of units) {
    for (const { path, target } of await enablementLinks(host.root, unit)) {
      if (await leadsSomewhere(host.root, posix.resolve(dirname(path), target))) continue;
      await putPath(host, path, ABSENT);
      await removeIfEmpty(dirname(join(host.root, path)));
      removed = true;
    }
  }
  return removed;
}

async function leadsSomewhere(root: string, path: string): Promise<boolean> {
  try {
    return await isThere(join(root, await resolveInRoot(root, path)));
  } catch (error) {
    if (error instanceof PathRefused) return false;
    throw error;
  }
}
