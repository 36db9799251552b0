import { randomUUID } from 'node:crypto';
import { appendFile, chown, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isErrno, readIfThere, writeDurably } from './durable.js';
import type { Host, OsBackend, OsState, Systemctl } from './host.js';
import { offlineSystemctl } from './offline-systemctl.js';
import type { Owner } from './path-state.js';

/*
 * A machine played by a folder: its boot ID, kernel command line and boots are files in it. Nothing here is Drydock's
 * own bookkeeping, so that tests and the demo can count boots without asking Drydock.
 */
const LAB_FOLDER = 'var/lib/drydock-lab';
const BOOT_ID_FILE = 'proc/sys/kernel/random/boot_id';
const COMMAND_LINE_FILE = 'proc/cmdline';
const STAGED_ARGUMENTS_FILE = `${LAB_FOLDER}/kernel-arguments`;
const REBOOT_REQUEST_FILE = `${LAB_FOLDER}/reboot-requested.json`;
/** One line a boot: `{"bootId": …, "at": ISO 8601}`. */
export const BOOTS_FILE = `${LAB_FOLDER}/boots.jsonl`;
/** One line for each thing that was asked of a service. */
const SERVICES_FILE = `${LAB_FOLDER}/services.jsonl`;
/** What shall go wrong on this machine; read anew before each step. */
export const FAULTS_FILE = 'lab-faults.json';

const BASE_COMMAND_LINE = 'BOOT_IMAGE=/boot/vmlinuz-lab root=/dev/lab ro';
/** How often a held step looks whether it may go on. */
const HOLD_POLL_MS = 100;

/** Faults of one machine. The texts match a part of a step's words, for example `writing /etc/chrony.conf`. */
export interface LabFaults {
  /** The step fails. */
  readonly failAt?: string;
  /** The step waits until the text is taken away. */
  readonly holdAt?: string;
  /** The machine loses its power before the step and boots again. */
  readonly powerLossAt?: string;
  /** A reboot that is asked for does not come until this is taken away. */
  readonly holdReboot?: boolean;
  /** The machine goes down before it has answered that it reboots. */
  readonly loseRebootAnswer?: boolean;
  /** Overrides for how long the machine stays away, in milliseconds. */
  readonly awayMs?: number;
}

export interface SimulatedHostOptions {
  readonly root: string;
  /** Called when the machine goes down: from here on nothing of it may act or answer. */
  readonly onDown?: (why: string) => void;
  /** Between asking for a reboot and going down, so that the answer gets out; default 1,000. 0: down before the answer. */
  readonly rebootDelayMs?: number;
}

const DEFAULT_REBOOT_DELAY_MS = 1_000;

export async function readFaults(root: string): Promise<LabFaults> {
  try {
    return JSON.parse((await readIfThere(join(root, FAULTS_FILE))) ?? '{}') as LabFaults;
  } catch (error) {
    // Written by hand or by a test while we read it.
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}

export function createSimulatedHost(options: SimulatedHostOptions): Host {
  const { root, onDown, rebootDelayMs = DEFAULT_REBOOT_DELAY_MS } = options;
  const isPrivileged = process.geteuid?.() === 0;
  const self: Owner = { uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0 };
  const ownerOnDisk = ({ uid, gid }: Owner): Owner => (isPrivileged ? { uid, gid } : self);
  return {
    root,
    ownerOnDisk,
    systemctl: { ...offlineSystemctl(root, ownerOnDisk), ...simulatedServices(root) },
    os: simulatedBackend(root),
    facts: { os: 'Drydock lab 1', arch: 'amd64' },
    sshKeyPlace: ({ home }) => Promise.resolve({ path: `${home}/.ssh/authorized_keys.d/ignition`, shared: false }),
    protectedPaths: () => Promise.resolve([]),
    verifyUnits: () => Promise.resolve({ errors: [], warnings: [] }),
    label: () => Promise.resolve(),
    bootId: () => bootIdOf(root),
    bootedAt: async () => Date.parse((await bootsOf(root)).at(-1)?.at ?? ''),
    async reboot({ bootId, reason }) {
      if ((await bootIdOf(root)) !== bootId) return;
      const path = join(root, REBOOT_REQUEST_FILE);
      const request = JSON.stringify({ bootId, reason, at: new Date().toISOString() });
      try {
        await writeFile(path, request, { flag: 'wx' });
      } catch (error) {
        if (isErrno(error, 'EEXIST')) return;
        throw error;
      }
      const delayMs = (await readFaults(root)).loseRebootAnswer === true ? 0 : rebootDelayMs;
      const down = sleep(delayMs).then(() => goDownWhenAllowed(root, bootId, reason, onDown));
      if (delayMs === 0) await down;
    },
    async beforeStep(step) {
      const hits = (text: string | undefined) => text !== undefined && step.includes(text);
      const faults = await readFaults(root);
      while (hits((await readFaults(root)).holdAt)) await sleep(HOLD_POLL_MS);
      if (hits(faults.failAt)) throw new Error(`lab fault: ${faults.failAt ?? ''}`);
      if (hits(faults.powerLossAt)) {
        await rm(join(root, FAULTS_FILE), { force: true });
        onDown?.(`power lost before ${step}`);
        await new Promise<never>(() => undefined);
      }
    },
  };
}

async function goDownWhenAllowed(root: string, bootId: string, why: string, onDown?: (why: string) => void) {
  while ((await readFaults(root)).holdReboot === true) await sleep(HOLD_POLL_MS);
  if ((await bootIdOf(root)) === bootId) onDown?.(why);
}

async function bootIdOf(root: string): Promise<string> {
  return (await readFile(join(root, BOOT_ID_FILE), 'utf8')).trim();
}

/** A reboot was asked for in the present boot and has not come yet, for example because its process was killed. */
export async function isRebootPending(root: string): Promise<boolean> {
  const text = await readIfThere(join(root, REBOOT_REQUEST_FILE));
  if (text === undefined) return false;
  const request = JSON.parse(text) as { bootId: string };
  return request.bootId === (await bootIdOf(root));
}

/** Starts the machine: a new boot ID, and the staged kernel arguments become the running ones. Returns the boot ID. */
export async function bootSimulatedHost(root: string): Promise<string> {
  const bootId = randomUUID();
  const staged =
    (await readIfThere(join(root, STAGED_ARGUMENTS_FILE)))?.split('\n').filter((line) => line !== '') ?? [];
  await write(join(root, COMMAND_LINE_FILE), `${[BASE_COMMAND_LINE, ...staged].join(' ')}\n`);
  await write(join(root, BOOT_ID_FILE), `${bootId}\n`);
  await rm(join(root, REBOOT_REQUEST_FILE), { force: true });
  await mkdir(join(root, LAB_FOLDER), { recursive: true });
  await appendFile(join(root, BOOTS_FILE), `${JSON.stringify({ bootId, at: new Date().toISOString() })}\n`);
  return bootId;
}

/** All boots of a machine, oldest first. */
export async function bootsOf(root: string): Promise<{ bootId: string; at: string }[]> {
  const lines = ((await readIfThere(join(root, BOOTS_FILE))) ?? '').split('\n').filter((line) => line !== '');
  return lines.map((line) => JSON.parse(line) as { bootId: string; at: string });
}

async function write(path: string, contents: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o755 });
  await writeFile(path, contents);
}

/** Services are played by a list of what was asked of them; one that does not run is not started by a reload. */
function simulatedServices(root: string): Pick<Systemctl, 'isActive' | 'start' | 'stop' | 'restart' | 'reloadUnit'> {
  const record = async (action: string, unit: string) => {
    await mkdir(join(root, LAB_FOLDER), { recursive: true });
    await appendFile(join(root, SERVICES_FILE), `${JSON.stringify({ action, unit, at: new Date().toISOString() })}\n`);
  };
  const isActive = async (unit: string) => {
    const actions = (await serviceActionsOf(root)).filter((entry) => entry.unit === unit);
    const last = actions.findLast(({ action }) => action !== 'reload');
    return last !== undefined && last.action !== 'stop';
  };
  return {
    isActive,
    start: (unit) => record('start', unit),
    stop: (unit) => record('stop', unit),
    restart: (unit) => record('restart', unit),
    reloadUnit: (unit) => record('reload', unit),
  };
}

/** What was asked of the services of a machine in all its boots, oldest first. */
export async function serviceActionsOf(root: string): Promise<{ action: string; unit: string; at: string }[]> {
  const lines = ((await readIfThere(join(root, SERVICES_FILE))) ?? '').split('\n').filter((line) => line !== '');
  return lines.map((line) => JSON.parse(line) as { action: string; unit: string; at: string });
}

function simulatedBackend(root: string): OsBackend {
  const path = join(root, STAGED_ARGUMENTS_FILE);
  const state = (kernelArguments: string[]): OsState => ({
    kernelArguments,
    osImageURL: '',
    kernelType: 'default',
    extensions: [],
  });
  return {
    name: 'simulated',
    refusal: (field) => (field === 'kernelArguments' ? undefined : 'a simulated machine only has kernel arguments'),
    staged: async () => state(((await readIfThere(path)) ?? '').split('\n').filter((line) => line !== '')),
    stage: ({ kernelArguments }) => writeDurably(path, kernelArguments.map((argument) => `${argument}\n`).join('')),
    booted: async () =>
      state(((await readIfThere(join(root, COMMAND_LINE_FILE))) ?? '').match(/(?:[^\s"]|"[^"]*")+/g) ?? []),
    deployment: () => Promise.resolve(''),
  };
}

/** What a machine brings before Drydock: accounts, a home, an OS, two units and two files that configs like to replace. */
const SEED: readonly (readonly [path: string, contents: string])[] = [
  [
    'etc/passwd',
    'root:x:0:0:root:/root:/bin/bash\ncore:x:1000:1000:core:/home/core:/bin/bash\nboot:x:1001:1001:boot:/home/boot:/bin/bash\nchrony:x:994:994::/var/lib/chrony:/sbin/nologin\n',
  ],
  ['etc/group', 'root:x:0:\ncore:x:1000:\nboot:x:1001:\nchrony:x:994:\nwheel:x:10:core,boot\n'],
  ['etc/os-release', 'NAME="Drydock lab"\nID=drydock-lab\nVERSION_ID=1\n'],
  ['etc/hostname', 'lab\n'],
  ['etc/chrony.conf', 'pool pool.example.net iburst\ndriftfile /var/lib/chrony/drift\n'],
  ['etc/motd', 'A machine of the lab.\n'],
  [
    'usr/lib/systemd/system/chronyd.service',
    '[Unit]\nDescription=NTP client\n[Service]\nExecStart=/usr/sbin/chronyd -d\n[Install]\nWantedBy=multi-user.target\n',
  ],
  [
    'usr/lib/systemd/system/rpcbind.service',
    '[Unit]\nDescription=RPC bind\n[Service]\nExecStart=/usr/bin/rpcbind -w -f\n[Install]\nWantedBy=multi-user.target\n',
  ],
  [
    'usr/lib/systemd/system/kubelet.service',
    '[Unit]\nDescription=kubelet\n[Service]\nExecStart=/usr/bin/kubelet\n[Install]\nWantedBy=multi-user.target\n',
  ],
];

/** Lays out the folder of a new machine and boots it; a machine that is there already is left as it is. */
export async function seedSimulatedHost(root: string): Promise<void> {
  if ((await readIfThere(join(root, BOOT_ID_FILE))) !== undefined) return;
  for (const [path, contents] of SEED) await write(join(root, path), contents);
  for (const folder of ['root', 'home/core', 'home/boot', 'etc/systemd/system', 'run', 'tmp']) {
    await mkdir(join(root, folder), { recursive: true, mode: 0o755 });
  }
  if (process.geteuid?.() === 0) {
    await chown(join(root, 'home/core'), 1000, 1000);
    await chown(join(root, 'home/boot'), 1001, 1001);
  }
  await bootSimulatedHost(root);
}
