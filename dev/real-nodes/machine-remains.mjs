/**
 * What outlives the keeper of a machine: the processes of the machine, which do not end with systemd-nspawn when that is
 * killed, and empty folders: its cgroups, where this host has no systemd that makes and removes them, and a mount point
 * of systemd-nspawn's. All of its processes are in its cgroups, from before the first of them does anything.
 *
 * As a program: waits for the end of its standard input, which is that of a machine's keeper, and removes what is left
 * of it. argv: the machine's name.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';

const PROPAGATE = '/run/systemd/nspawn/propagate';
const NAME = /^drydock-(\d+)-(\d+)$/;
/** Killed processes take a moment to be gone. */
const TRIES = 200;
const TRY_AGAIN_MS = 25;

/** When a process started, in clock ticks since boot: with it a pid names one process for good. Empty where unknown. */
export function startTime(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' ? '' : fields[19];
  } catch {
    return '';
  }
}

/**
 * A cgroup for the machine in every hierarchy, as two systemds in one would end each other's processes. None where this
 * host runs systemd: systemd-nspawn asks that for a scope.
 */
export function makeCgroups(machine) {
  if (existsSync('/run/systemd/system')) return [];
  return hierarchies().map(({ mount, isCpuset }) => {
    const folder = join(mount, machine);
    mkdirSync(folder, { recursive: true });
    // Without both no process may enter (cpusets(7)).
    for (const file of isCpuset ? ['cpuset.cpus', 'cpuset.mems'] : []) {
      writeFileSync(join(folder, file), readFileSync(join(mount, file)));
    }
    return folder;
  });
}

function hierarchies() {
  const mounts = readFileSync('/proc/self/mounts', 'utf8').trim().split('\n');
  return mounts
    .map((line) => line.split(' '))
    .filter(([, , type]) => type === 'cgroup' || type === 'cgroup2')
    .map(([, mount, type, options]) => ({
      mount,
      isCpuset: type === 'cgroup' && options.split(',').includes('cpuset'),
    }));
}

/** Ends what still runs of the machine. Resolves when nothing is left of it, or after some seconds. */
export async function removeRemains(machine) {
  const mounts = hierarchies().map(({ mount }) => mount);
  const own = mounts.map((mount) => join(mount, machine));
  // Made, and removed when it is empty, by the systemd of this host.
  const scopes = mounts.map((mount) => join(mount, 'machine.slice', `${machine}.scope`));
  for (let attempt = 0; attempt < TRIES; attempt += 1) {
    for (const folder of [...own, ...scopes]) killAll(folder);
    if ([...own, join(PROPAGATE, machine)].map(removeTree).every(Boolean) && !scopes.some(existsSync)) return;
    await sleep(TRY_AGAIN_MS);
  }
}

function killAll(cgroup) {
  for (const folder of foldersIn(cgroup)) killAll(join(cgroup, folder));
  for (const pid of readLines(join(cgroup, 'cgroup.procs'))) {
    try {
      // 0 is a process that cannot be seen from here.
      if (Number(pid) > 0) process.kill(Number(pid), 'SIGKILL');
    } catch {
      // Gone meanwhile.
    }
  }
}

function readLines(file) {
  try {
    return readFileSync(file, 'utf8').split('\n').filter(Boolean);
  } catch {
    return [];
  }
}

function foldersIn(folder) {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
  } catch {
    return [];
  }
}

/** Only empty folders; the files of a cgroup go with it. @returns whether it is gone. */
function removeTree(folder) {
  for (const name of foldersIn(folder)) removeTree(join(folder, name));
  try {
    rmdirSync(folder);
    return true;
  } catch (error) {
    return error.code === 'ENOENT';
  }
}

/** Of all keepers that are gone: those whose watcher was killed with them. */
export async function sweepRemains() {
  const parents = [...hierarchies().map(({ mount }) => mount), PROPAGATE].filter(existsSync);
  const names = new Set(parents.flatMap((parent) => readdirSync(parent)));
  for (const name of names) {
    const [, pid, started] = NAME.exec(name) ?? [];
    if (pid !== undefined && startTime(pid) !== started) await removeRemains(name);
  }
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  process.stdin.resume();
  process.stdin.once('end', () => void removeRemains(process.argv[2]));
}
