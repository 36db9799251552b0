import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import type { Lab } from '../../dev/lab.js';
import type { Machine } from '../../dev/real-nodes/real-node.js';
import { pidsNaming } from '../lab/kubernetes-call.js';

/** By what a machine can be seen on this host from outside. */
export interface MachineTraces {
  readonly directory: string;
  readonly networkInterface: string;
  /** Its name for systemd-nspawn. */
  readonly nspawnName: string;
}

export async function tracesOf(lab: Lab, machine: Machine): Promise<MachineTraces> {
  const networkInterface = Object.entries(networkInterfaces()).find(([, addresses]) =>
    addresses?.some(({ address }) => address === machine.gateway),
  )?.[0];
  const [nspawn = 0] = await pidsNaming(`--directory=${join(lab.directory, 'machines', machine.name, 'root')}`);
  const name = /--machine=([^\0]+)/.exec(readFileSync(`/proc/${nspawn}/cmdline`, 'utf8'))?.[1];
  if (networkInterface === undefined || name === undefined) throw new Error(`${machine.name} leaves no traces`);
  return { directory: lab.directory, networkInterface, nspawnName: name };
}

/** What of a machine is on this host: processes, network, mounts of any process, loop devices, cgroups, folders. */
export async function findTraces({ directory, networkInterface, nspawnName }: MachineTraces): Promise<string[]> {
  const processes = (await pidsNaming(directory)).map((pid) => `process ${pid}`);
  const network = networkInterface in networkInterfaces() ? [`network interface ${networkInterface}`] : [];
  const folders = [...cgroupMounts(), '/run/systemd/nspawn/propagate']
    .map((parent) => join(parent, nspawnName))
    .concat(directory)
    .filter((path) => existsSync(path));
  return [...processes, ...network, ...mountsBelow(directory), ...loopDevicesOf(directory), ...folders];
}

function cgroupMounts(): string[] {
  const mounts = readFileSync('/proc/self/mounts', 'utf8').trim().split('\n');
  return mounts.flatMap((line) => (/ cgroup2? /.test(line) ? [line.split(' ')[1] ?? ''] : []));
}

/** Of every process: a mount may be in a namespace of its own. */
function mountsBelow(directory: string): string[] {
  const found = new Set<string>();
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    for (const line of readProc(`/proc/${pid}/mountinfo`).split('\n')) {
      if (line.includes(directory)) found.add(`mount in process ${pid}: ${line}`);
    }
  }
  return [...found];
}

function loopDevicesOf(directory: string): string[] {
  return readdirSync('/sys/block').filter(
    (name) => name.startsWith('loop') && readProc(`/sys/block/${name}/loop/backing_file`).includes(directory),
  );
}

/** Empty if it went away while we looked. */
function readProc(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
