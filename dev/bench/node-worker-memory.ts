import { setTimeout as sleep } from 'node:timers/promises';
import { startLab } from '../lab.js';
import { whyNoRealNodes } from '../real-nodes/availability.js';
import { startRealNodes, WORKER_UNIT, type Machine } from '../real-nodes/real-node.js';
import { waitUntil } from '../processes/wait-until.js';
import type { Log } from '../tools/cache.js';
import { median, type Measurement } from './measurement.js';

/** What a node gives up for its worker. */
const BOUND_MB = 150;
const SAMPLE_EVERY_MS = 1_000;
/** What its start left behind is collected when V8 finds it idle, on a busy machine later: these many are to be alike. */
const ALIKE_SAMPLES = 30;
const ALIKE_MB = 4;
const MOST_SAMPLES = 240;
const START_TIMEOUT_MS = 120_000;

/**
 * The memory of the packaged node worker at rest: on a real systemd machine, as its unit starts it, registered and
 * polling, with nothing to do. The median of half a minute in which it hardly changed.
 */
export async function nodeWorkerMemory(log: Log): Promise<Measurement> {
  const why = await whyNoRealNodes(log);
  if (why !== undefined) throw new Error(`the node worker cannot be measured: ${why}`);
  const lab = await startLab({ log });
  try {
    const [node] = await startRealNodes(lab, { nodes: [{ name: 'bench-1' }], log });
    if (node === undefined) throw new Error('the lab made no node');
    await waitUntil(async () => (await node.exec(['test', '-e', '/run/drydock/polling'])).code === 0, {
      what: 'the node worker to poll',
      timeoutMs: START_TIMEOUT_MS,
    });
    log('measuring until it is at rest (half a minute to four minutes)');
    const samples: MemoryUse[] = [];
    while (samples.length < MOST_SAMPLES && !isAtRest(samples)) {
      await sleep(SAMPLE_EVERY_MS);
      samples.push(await memoryOf(node));
    }
    const of = (what: keyof MemoryUse) => samples.slice(-ALIKE_SAMPLES).map((sample) => sample[what]);
    return {
      name: 'node worker at rest',
      value: median(of('resident')),
      unit: 'MB',
      bound: BOUND_MB,
      details: {
        'of it its own': median(of('own')),
        'seconds until it rested': samples.length,
        'most since its start': Math.max(...of('peak')),
        threads: median(of('threads')),
      },
    };
  } finally {
    await lab.stop();
  }
}

/** In MB. */
interface MemoryUse {
  readonly resident: number;
  /** Without the pages of files, which are there once for all processes and can be read again. */
  readonly own: number;
  readonly peak: number;
  readonly threads: number;
}

/** Whether the last samples are alike. */
export function isAtRest(samples: readonly Pick<MemoryUse, 'resident'>[]): boolean {
  const last = samples.slice(-ALIKE_SAMPLES).map(({ resident }) => resident);
  return last.length === ALIKE_SAMPLES && Math.max(...last) - Math.min(...last) <= ALIKE_MB;
}

async function memoryOf(machine: Machine): Promise<MemoryUse> {
  const pid = (await machine.succeed(['systemctl', 'show', '--property=MainPID', '--value', WORKER_UNIT])).trim();
  return parseMemory(await machine.succeed(['cat', `/proc/${pid}/status`]));
}

/** Of `/proc/<pid>/status`, which counts in KiB. */
export function parseMemory(status: string): MemoryUse {
  const field = (name: string) => {
    const value = new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1];
    if (value === undefined) throw new Error(`/proc/PID/status has no ${name}: has the worker ended?`);
    return Number(value);
  };
  const megabytes = (name: string) => Math.round((field(name) * 1024) / 1e6);
  return {
    resident: megabytes('VmRSS'),
    own: megabytes('RssAnon'),
    peak: megabytes('VmHWM'),
    threads: field('Threads'),
  };
}
