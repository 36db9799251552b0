import type { IgnitionConfig } from './config.js';
import type { FieldPath, Findings } from './findings.js';

export const UNIT_FOLDER = '/etc/systemd/system';

/** One path that a config puts on disk. */
export interface ManagedPath {
  readonly path: string;
  readonly kind: 'file' | 'directory' | 'link' | 'unit' | 'drop-in';
  /** Where the config says so. */
  readonly at: FieldPath;
}

/** Everything that a config puts on disk, units and drop-ins included, in the order of the config. */
export function managedPaths(config: IgnitionConfig): ManagedPath[] {
  const paths: ManagedPath[] = [];
  const storage = ['config', 'storage'];
  config.storage?.files?.forEach(({ path }, index) =>
    paths.push({ path, kind: 'file', at: [...storage, 'files', index] }),
  );
  config.storage?.links?.forEach(({ path }, index) =>
    paths.push({ path, kind: 'link', at: [...storage, 'links', index] }),
  );
  config.storage?.directories?.forEach(({ path }, index) =>
    paths.push({ path, kind: 'directory', at: [...storage, 'directories', index] }),
  );
  config.systemd?.units?.forEach((unit, index) => {
    const at = ['config', 'systemd', 'units', index];
    const path = `${UNIT_FOLDER}/${unit.name}`;
    if ((unit.contents ?? '') !== '' || unit.mask === true) paths.push({ path, kind: 'unit', at });
    unit.dropins?.forEach((dropin, position) => {
      if ((dropin.contents ?? '') === '') return;
      paths.push({ path: `${path}.d/${dropin.name}`, kind: 'drop-in', at: [...at, 'dropins', position] });
    });
  });
  return paths;
}

/** Says where an entry stands: `in this config`, or which MachineConfig it comes from. */
export type Origin = (entry: ManagedPath) => string;

/** No path twice, and nothing below what is no directory. */
export function validatePaths(config: IgnitionConfig, findings: Findings, origin: Origin): void {
  const paths = managedPaths(config);
  const byPath = new Map<string, ManagedPath>();
  for (const entry of paths) {
    const other = byPath.get(entry.path);
    if (other === undefined) byPath.set(entry.path, entry);
    else findings.refuse(entry.at, describeCollision(entry, other, origin));
  }
  for (const entry of paths) {
    const above = nearestNonDirectory(entry.path, byPath);
    if (above === undefined) continue;
    findings.refuse(
      entry.at,
      `${subject(entry)}lies below ${above.path}, which is a ${above.kind} ${origin(above)}; choose another path for one of the two`,
    );
  }
}

/** Findings begin with the path of a file, but only with the name of a unit or drop-in. */
function subject({ kind, path }: ManagedPath): string {
  return kind === 'unit' || kind === 'drop-in' ? `${path} ` : '';
}

function describeCollision(entry: ManagedPath, other: ManagedPath, origin: Origin): string {
  return `${subject(entry)}is written as a ${entry.kind} here and as a ${other.kind} ${origin(other)}; keep one of the two`;
}

function nearestNonDirectory(path: string, byPath: ReadonlyMap<string, ManagedPath>): ManagedPath | undefined {
  for (let end = path.lastIndexOf('/'); end > 0; end = path.lastIndexOf('/', end - 1)) {
    const above = byPath.get(path.slice(0, end));
    if (above !== undefined && above.kind !== 'directory') return above;
  }
  return undefined;
}
