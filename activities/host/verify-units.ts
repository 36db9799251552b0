import { readlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Host, UnitFindings } from './host.js';
import { ProgramFailed, type RunProgram } from './run-program.js';
import { flatPath, stageFlat, stageTree, withStage } from './staged-units.js';
import { judgeLines } from './unit-findings.js';
import { missingTrigger } from './unit-trigger.js';
import { findUnitFile, isThere, templateOf } from './units.js';

export type PlannedUnits = Parameters<Host['verifyUnits']>[1];

export interface VerifyDependencies {
  readonly root: string;
  readonly run: RunProgram;
  /** systemd's version on this host; absent: asked. */
  readonly version?: number;
}

/** The first that can look at units below another root. */
const VERIFIES_OTHER_ROOTS = 250;
const TIMEOUT_MS = 60_000;
/** The instance as which systemd verifies a template. */
const TEMPLATE_INSTANCE = 'i';

/**
 * Asks `systemd-analyze verify` of the units as they will be, in a temporary tree of the host's units and the planned
 * ones. What systemd would pass over (an unknown key, a value that it does not take) is a warning; what keeps a unit from
 * being loaded or started is an error. A program that the host or the update has is never missed, and what is wrong with
 * other units is not told. No value of a unit is repeated, only keys, lines and paths: values may be secret.
 */
export async function verifyUnits(
  units: readonly string[],
  planned: PlannedUnits,
  dependencies: VerifyDependencies,
): Promise<UnitFindings> {
  if (units.length === 0) return { errors: [], warnings: [] };
  const { root, run } = dependencies;
  try {
    const version = dependencies.version ?? (await systemdVersion(run));
    return await withStage(async (stage) => {
      const staged =
        version < VERIFIES_OTHER_ROOTS
          ? await beforeTheHost(stage, root, { units, planned })
          : await asAnotherRoot(stage, root, { units, planned });
      const lines = await analyze(staged, run);
      const found = await judgeLines(lines, { names: staged.names, planned, stage, root });
      const triggers = await Promise.all(units.map((unit) => missingTrigger(unit, staged.read, staged.exists)));
      return { ...found, warnings: [...found.warnings, ...triggers.filter((line) => line !== undefined)] };
    });
  } catch (error) {
    if (!(error instanceof ProgramFailed)) throw error;
    // The check is a help; a host without the program keeps its units without it.
    return { errors: [], warnings: [`the units were not verified: ${error.message}`] };
  }
}

/** Units in a temporary folder, ready to be looked at. */
interface Staged {
  readonly options: readonly string[];
  readonly files: readonly string[];
  /** Every name under which systemd may speak of a unit, to the name that was asked for. */
  readonly names: ReadonlyMap<string, string>;
  /** The file of a unit; undefined: there is none, or it is a mask. */
  readonly read: (unit: string) => Promise<string | undefined>;
  readonly exists: (unit: string) => Promise<boolean>;
}

interface Asked {
  readonly units: readonly string[];
  readonly planned: PlannedUnits;
}

async function asAnotherRoot(stage: string, root: string, { units, planned }: Asked): Promise<Staged> {
  await stageTree(stage, root, planned.files);
  const names = namesOf(units);
  const files: string[] = [];
  for (const unit of units) {
    const file = await findUnitFile(stage, unit);
    if (file === undefined) continue;
    const target = await readlink(join(stage, file)).catch(() => '');
    if (target === '/dev/null') continue;
    // Of an alias systemd speaks by its real name.
    if (target !== '') names.set(basename(target), unit);
    // An instance has no file of its own, and is found by its name nevertheless.
    files.push(join(file, '..', unit));
  }
  const fileOf = async (unit: string) => {
    const file = await findUnitFile(stage, unit);
    return file === undefined ? undefined : join(stage, file);
  };
  return {
    options: [`--root=${stage}`],
    files,
    names,
    read: fileOf,
    exists: async (unit) => (await fileOf(unit)) !== undefined,
  };
}

async function beforeTheHost(stage: string, root: string, { units, planned }: Asked): Promise<Staged> {
  const files = await stageFlat(stage, root, { units, planned: planned.files });
  const fileOf = async (unit: string) => {
    const inStage = await findUnitFile(stage, unit, (path) => isThere(join(stage, flatPath(path))));
    if (inStage !== undefined) return join(stage, flatPath(inStage));
    const onHost = await findUnitFile(root, unit);
    return onHost === undefined || planned.files.has(onHost) ? undefined : join(root, onHost);
  };
  return {
    options: [],
    files,
    names: namesOf(units),
    read: fileOf,
    exists: async (unit) => (await fileOf(unit)) !== undefined,
  };
}

function namesOf(units: readonly string[]): Map<string, string> {
  const names = new Map<string, string>();
  for (const unit of units) {
    names.set(templateOf(unit), unit);
    names.set(templateOf(unit).replace('@.', `@${TEMPLATE_INSTANCE}.`), unit);
  }
  // Last, so that nothing takes a unit's own name from it.
  for (const unit of units) names.set(unit, unit);
  return names;
}

async function analyze({ options, files }: Staged, run: RunProgram): Promise<string[]> {
  if (files.length === 0) return [];
  const result = await run('systemd-analyze', ['--no-pager', '--man=no', ...options, 'verify', ...files], {
    timeoutMs: TIMEOUT_MS,
  });
  return result.stderr.split('\n').map((line) => line.trim());
}

/** The number after the program's name: `systemd 252 (252.39-1)`, `systemd 239`. */
async function systemdVersion(run: RunProgram): Promise<number> {
  const { stdout } = await run('systemd-analyze', ['--version']);
  const version = Number(/^systemd (\d+)/.exec(stdout)?.[1]);
  // What does not say its version is taken for new.
  return Number.isNaN(version) ? VERIFIES_OTHER_ROOTS : version;
}
