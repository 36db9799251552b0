import { join } from 'node:path';
import type { MachineConfig } from '../../machine-config/api/machine-config.js';
import { desiredEntries } from './desired.js';
import type { Host } from './host.js';
import { differenceOf, MASK_TARGET, readState, type Difference } from './path-state.js';
import { sameList } from './plan.js';
import { findUnitFile } from './units.js';

/** One thing on the host that is not as a config says. */
export interface DriftItem {
  /** A path; for enablement the unit; for kernel arguments `/proc/cmdline`. */
  readonly path: string;
  readonly kind: Difference['kind'] | 'mask' | 'enablement' | 'kernelArguments';
  /** One line for people; never tells contents. */
  readonly words: string;
}

/**
 * Compares the host with a config: contents, type, mode, owner, link target, masks, drop-ins, SSH keys, enablement,
 * kernel arguments. `booted`: the arguments must be those of the running kernel, not only of the next one.
 * Throws NotPossibleHere where the config cannot be meant for this host.
 */
export async function verifyHost(
  config: MachineConfig,
  { host, sshUser, booted }: { host: Host; sshUser: string; booted: boolean },
): Promise<DriftItem[]> {
  const desired = await desiredEntries(config, host, sshUser);
  const drift: DriftItem[] = [];
  for (const { path, state } of desired.entries.values()) {
    const found = await readState(join(host.root, path));
    if (state !== 'unmasked') {
      const difference = differenceOf(state, found);
      if (difference !== undefined) drift.push({ path, ...difference });
    } else if (found.kind === 'link' && found.target === MASK_TARGET) {
      drift.push({ path, kind: 'mask', words: 'masked, expected not to be' });
    }
  }
  for (const [unit, wish] of desired.enablement) {
    const item = await enablementDrift(host, unit, wish);
    if (item !== undefined) drift.push(item);
  }
  return [...drift, ...(await kernelArgumentDrift(desired.kernelArguments, host, booted))];
}

async function enablementDrift(host: Host, unit: string, wish: boolean): Promise<DriftItem | undefined> {
  if ((await findUnitFile(host.root, unit)) === undefined) return undefined;
  const found = await host.systemctl.enablement(unit);
  const bad = wish ? ['disabled', 'masked', 'masked-runtime', 'not-found'] : ['enabled', 'enabled-runtime'];
  if (!bad.includes(found)) return undefined;
  return { path: unit, kind: 'enablement', words: `expected ${wish ? 'enabled' : 'disabled'}, found ${found}` };
}

async function kernelArgumentDrift(wanted: readonly string[], host: Host, booted: boolean): Promise<DriftItem[]> {
  if (!host.os.canSetKernelArguments) return [];
  const item = (words: string): DriftItem => ({ path: '/proc/cmdline', kind: 'kernelArguments', words });
  const staged = await host.os.stagedKernelArguments();
  if (!sameList(staged, wanted))
    return [item(`expected "${wanted.join(' ')}" for the next boot, found "${staged.join(' ')}"`)];
  if (!booted) return [];
  const running = await host.os.bootedKernelArguments();
  const missing = wanted.filter((argument) => !running.includes(argument));
  return missing.length === 0 ? [] : [item(`the running kernel lacks ${missing.join(' ')}`)];
}
