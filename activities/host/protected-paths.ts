import type { MachineConfig } from '../../machine-config/api/machine-config.js';
import type { Desired } from './desired.js';
import { NotPossibleHere } from './entry.js';
import { FORCE_FILE } from './force.js';
import type { Host } from './host.js';
import type { PlannedChange } from './plan.js';
import { ignitionOf } from './rendered.js';
import { PathRefused, PROTECTED, resolveInRoot } from './root-path.js';
import { unitOfPath } from './units.js';

/** The worker's own unit, `drydock-node.service`, and any other of ours. */
export const isOwnUnit = (unit: string): boolean => /^drydock[-@.]/.test(unit);

/**
 * Throws NotPossibleHere where an update would write or remove what this host, its kubelet or the worker itself depends
 * on: by the path as the config has it, and as it really is on this host.
 */
export async function refuseProtected(
  host: Host,
  target: MachineConfig,
  { wanted, changes }: { readonly wanted: Desired; readonly changes: readonly PlannedChange[] },
): Promise<void> {
  (ignitionOf(target).systemd?.units ?? []).forEach(({ name }, index) => {
    if (isOwnUnit(name)) throw new NotPossibleHere(`systemd.units[${index}] (${name}): is a unit of Drydock's own`);
  });
  const protectedPaths = await protectedPlaces(host);
  for (const { path, declared = path, where, origin } of [...wanted.entries.values(), ...changes]) {
    for (const candidate of new Set([path, declared])) {
      const owner = protectedPaths.find((own) => candidate === own || candidate.startsWith(`${own}/`));
      const unit = unitOfPath(candidate);
      if (owner !== undefined || (unit !== undefined && isOwnUnit(unit))) {
        throw new NotPossibleHere(
          `${where}: ${owner ?? unit ?? ''} may not be managed by a MachineConfig on this host`,
        );
      }
    }
    if (origin !== 'directory' && /^\/[^/]+$/.test(path)) {
      throw new NotPossibleHere(`${where}: ${path} lies directly in /, where no config may write; use a folder`);
    }
  }
}

/** Paths, with all below, that nothing of the cluster may write on this host: as they are named, and where they lie. */
export async function protectedPlaces(host: Host): Promise<string[]> {
  const paths = [...PROTECTED, FORCE_FILE, ...(await host.protectedPaths())];
  const real = await Promise.all(paths.map((path) => realPath(host, path)));
  return [...new Set([...paths, ...real])];
}

async function realPath(host: Host, path: string): Promise<string> {
  try {
    return await resolveInRoot(host.root, path);
  } catch (error) {
    if (error instanceof PathRefused) return path;
    throw error;
  }
}
