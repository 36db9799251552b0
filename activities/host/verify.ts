import { join } from 'node:path';
import type { MachineConfig } from '../../machine-config/api/machine-config.js';
import { missingArguments, sameArguments } from '../../machine-config/change/command-line.js';
import { desiredEntries } from './desired.js';
import { isPart, partDifference } from './file-part.js';
import type { Host, OsState } from './host.js';
import { sameOsState } from './os-state.js';
import { differenceOf, MASK_TARGET, readState, type Difference } from './path-state.js';
import { findUnitFile } from './units.js';

/** One thing on the host that is not as a config says. */
export interface DriftItem {
  /** A path; for enablement the unit; for kernel arguments `/proc/cmdline`. */
  readonly path: string;
  readonly kind: Difference['kind'] | 'mask' | 'enablement' | 'kernelArguments' | 'osImage';
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
      const difference = isPart(state) ? partDifference(state, found) : differenceOf(state, found);
      if (difference !== undefined) drift.push({ path, ...difference });
    } else if (found.kind === 'link' && found.target === MASK_TARGET) {
      drift.push({ path, kind: 'mask', words: 'masked, expected not to be' });
    }
  }
  for (const [unit, wish] of desired.enablement) {
    const item = await enablementDrift(host, unit, wish);
    if (item !== undefined) drift.push(item);
  }
  return [...drift, ...(await osDrift(desired.os, host, booted))];
}

async function enablementDrift(host: Host, unit: string, wish: boolean): Promise<DriftItem | undefined> {
  if ((await findUnitFile(host.root, unit)) === undefined) return undefined;
  const found = await host.systemctl.enablement(unit);
  const bad = wish ? ['disabled', 'enabled-runtime', 'masked', 'masked-runtime', 'not-found'] : ['enabled'];
  if (!bad.includes(found)) return undefined;
  return { path: unit, kind: 'enablement', words: `expected ${wish ? 'enabled' : 'disabled'}, found ${found}` };
}

async function osDrift(wanted: OsState, { os }: Host, booted: boolean): Promise<DriftItem[]> {
  const drift: DriftItem[] = [];
  const item = (path: string, kind: DriftItem['kind'], words: string) => drift.push({ path, kind, words });
  const staged = await os.staged();
  if (!sameArguments(staged.kernelArguments, wanted.kernelArguments)) {
    const found = staged.kernelArguments.join(' ');
    const expected = wanted.kernelArguments.join(' ');
    item('/proc/cmdline', 'kernelArguments', `expected "${expected}" for the next boot, found "${found}"`);
  }
  if (!sameOsState({ ...staged, kernelArguments: [] }, { ...wanted, kernelArguments: [] })) {
    item('operating system', 'osImage', `expected ${inWords(wanted)} for the next boot, found ${inWords(staged)}`);
  }
  if (!booted || drift.length > 0) return drift;
  const running = await os.booted();
  const missing = missingArguments(wanted.kernelArguments, running.kernelArguments);
  if (missing.length > 0) item('/proc/cmdline', 'kernelArguments', `the running kernel lacks ${missing.join(' ')}`);
  if (wanted.osImageURL !== '' && running.osImageURL !== wanted.osImageURL) {
    item('operating system', 'osImage', `expected to run ${wanted.osImageURL}, it runs ${running.osImageURL}`);
  }
  return drift;
}

function inWords({ osImageURL, kernelType, extensions }: OsState): string {
  return [osImageURL || 'the image it has', `kernel ${kernelType}`, ...extensions].join(', ');
}
