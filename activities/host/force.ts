import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Host } from './host.js';

/**
 * Made by an administrator, with any contents, it asks that the config is applied again as a whole although the disk is
 * not as it says. It lies where a reboot forgets it.
 */
export const FORCE_FILE = '/run/machine-config-daemon-force';

/** What was asked is done. */
export async function removeForceFile({ root }: Host): Promise<void> {
  await rm(join(root, FORCE_FILE), { force: true });
}
