import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseMemory } from '../node-worker-memory.js';

/** Of USER_HZ, which every Linux tells programs, whatever the kernel's own is. */
const TICKS_A_SECOND = 100;
const SAMPLE_EVERY_MS = 500;

export interface ProcessUse {
  /** Since the watch began. */
  readonly cpuSeconds: number;
  /** In MB, the most since the watch began. */
  readonly peakResident: number;
}

/** Of `/proc/<pid>/stat`: user and system time of all threads, in seconds. */
export function parseCpuSeconds(stat: string): number {
  // The name of the program may hold spaces and brackets, and ends with the last one.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const ticks = Number(fields[11]) + Number(fields[12]);
  if (!Number.isFinite(ticks)) throw new Error('/proc/PID/stat cannot be read as proc(5) describes it');
  return ticks / TICKS_A_SECOND;
}

/** Watches what some processes of this machine take, until it is asked. */
export async function watchProcesses(pids: readonly (number | undefined)[]): Promise<() => Promise<ProcessUse>> {
  const known = pids.filter((pid) => pid !== undefined);
  const cpu = async () => sum(await Promise.all(known.map(cpuSecondsOf)));
  const before = await cpu();
  const stopped = new AbortController();
  let peakResident = 0;
  const sampling = (async () => {
    while (!stopped.signal.aborted) {
      peakResident = Math.max(peakResident, sum(await Promise.all(known.map(residentOf))));
      await sleep(SAMPLE_EVERY_MS, undefined, { signal: stopped.signal }).catch(() => undefined);
    }
  })();
  return async () => {
    stopped.abort();
    await sampling;
    return { cpuSeconds: (await cpu()) - before, peakResident };
  };
}

/** As `watchProcesses`, for several groups of them. */
export async function watchByName<N extends string>(
  pids: Readonly<Record<N, readonly (number | undefined)[]>>,
): Promise<() => Promise<Map<N, ProcessUse>>> {
  const names = Object.keys(pids) as N[];
  const watched = await Promise.all(names.map(async (name) => [name, await watchProcesses(pids[name])] as const));
  return async () => new Map(await Promise.all(watched.map(async ([name, used]) => [name, await used()] as const)));
}

async function cpuSecondsOf(pid: number): Promise<number> {
  return parseCpuSeconds(await readFile(`/proc/${pid}/stat`, 'utf8'));
}

async function residentOf(pid: number): Promise<number> {
  return parseMemory(await readFile(`/proc/${pid}/status`, 'utf8')).resident;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
