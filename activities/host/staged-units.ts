import { chmod, cp, lstat, mkdir, mkdtemp, readdir, readlink, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Host } from './host.js';
import { findUnitFile, isThere, UNIT_PATHS } from './units.js';

export type PlannedFiles = Parameters<Host['verifyUnits']>[1]['files'];

/** What generators made at the last reload. systemd leaves these out when it looks at another root, so they go elsewhere. */
const GENERATED = ['/run/systemd/generator.early', '/run/systemd/generator', '/run/systemd/generator.late'];
const VENDOR_FOLDER = '/usr/lib/systemd/system';
/** No unit file is larger; something else that lies in the folder may be. */
const LARGEST_BYTES = 1024 * 1024;

/** Runs `work` with a temporary folder, private to root, which is gone afterwards. */
export async function withStage<T>(work: (stage: string) => Promise<T>): Promise<T> {
  const stage = await mkdtemp(join(tmpdir(), 'drydock-units-'));
  try {
    return await work(stage);
  } finally {
    await rm(stage, { recursive: true, force: true });
  }
}

/** Fills the folder with the units of the host, and the planned ones on top, at the paths that they will have. */
export async function stageTree(stage: string, root: string, planned: PlannedFiles): Promise<void> {
  for (const link of ['/lib', '/bin', '/sbin']) await copyLink(join(root, link), join(stage, link));
  for (const folder of UNIT_PATHS) {
    if (!(await isThere(join(stage, folder)))) await copyUnits(join(root, folder), join(stage, folder), true);
  }
  for (const folder of GENERATED) await copyUnits(join(root, folder), join(stage, VENDOR_FOLDER), false);
  for (const [path, contents] of planned) await putFile(join(stage, path), contents);
}

/**
 * For systemd before 250, which cannot look into another root: the units that are asked for, and whatever is planned, in
 * one flat folder that comes before those of the host. Returns the files of the units that exist.
 */
export async function stageFlat(
  stage: string,
  root: string,
  { units, planned }: { readonly units: readonly string[]; readonly planned: PlannedFiles },
): Promise<string[]> {
  for (const unit of units) {
    const file = await findUnitFile(root, unit);
    if (file !== undefined && !planned.has(file)) await cp(join(root, file), join(stage, flatPath(file)));
  }
  for (const [path, contents] of planned) {
    // An empty file hides the drop-in that the host still has; a unit that will be gone is not verified.
    if (contents !== undefined || path.includes('.d/'))
      await putFile(join(stage, flatPath(path)), contents ?? Buffer.of());
  }
  const files: string[] = [];
  for (const unit of units) {
    const file = await findUnitFile(stage, unit, (path) => isThere(join(stage, flatPath(path))));
    if (file !== undefined) files.push(join(stage, flatPath(file)));
  }
  return files;
}

/** `/etc/systemd/system/x.service.d/1.conf` → `x.service.d/1.conf`. */
export function flatPath(path: string): string {
  return UNIT_PATHS.reduce((rest, folder) => (rest.startsWith(`${folder}/`) ? rest.slice(folder.length) : rest), path);
}

async function putFile(path: string, contents: Buffer | undefined): Promise<void> {
  await rm(path, { recursive: true, force: true });
  if (contents === undefined) return;
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, contents);
  await chmod(path, 0o644);
}

/** A link in the root's first level; relative, so that nothing of the stage leads out of it. */
async function copyLink(from: string, to: string): Promise<void> {
  if (!(await lstat(from).catch(() => undefined))?.isSymbolicLink()) return;
  await symlink((await readlink(from)).replace(/^\/+/, ''), to);
}

async function copyUnits(from: string, to: string, replace: boolean): Promise<void> {
  const names = await readdir(from).catch(() => []);
  if (names.length === 0) return;
  await cp(from, to, {
    recursive: true,
    verbatimSymlinks: true,
    force: replace,
    async filter(path) {
      const stats = await lstat(path).catch(() => undefined);
      if (stats === undefined) return false;
      return stats.isDirectory() || stats.isSymbolicLink() || (stats.isFile() && stats.size <= LARGEST_BYTES);
    },
  });
}
