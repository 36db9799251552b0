import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Account } from './accounts.js';
import type { Host, OsBackend, SshKeyPlace } from './host.js';
import { identityPaths } from './kubelet-paths.js';
import { readHostFacts } from './os-release.js';
import { requestReboot } from './reboot-request.js';
import { runProgram, type RunProgram } from './run-program.js';
import { createLabeller } from './selinux.js';
import { createSystemctl } from './systemctl.js';
import { verifyUnits } from './verify-units.js';

export interface SystemdHostOptions {
  /** The folder that is the machine's `/`: `/` itself, except in tests. */
  readonly root: string;
  /** What can be changed of the operating system; see findOsBackend. */
  readonly os: OsBackend;
  /** Where sshd looks for the keys of a user. */
  readonly sshKeyPlace: (account: Account) => Promise<SshKeyPlace>;
  /** The account that a config's one user stands for; absent: the one of that name. */
  readonly sshAccount?: string;
  /** The kubeconfigs of the worker itself, which no config may manage; asked each time, since they are found late. */
  readonly ownKubeconfigs?: () => readonly string[];
  /** Every program goes through here. */
  readonly run?: RunProgram;
  /** Called before each step of a change; for tests that fail one or die in it. */
  readonly beforeStep?: Host['beforeStep'];
}

/** The machine in which this process runs, as root, under systemd 239 or newer. */
export async function createSystemdHost(options: SystemdHostOptions): Promise<Host> {
  const { root, run = runProgram, os, sshKeyPlace, sshAccount, beforeStep, ownKubeconfigs } = options;
  const bootId = async () => (await readFile(join(root, 'proc/sys/kernel/random/boot_id'), 'utf8')).trim();
  return {
    root,
    systemctl: createSystemctl({ root, run }),
    os,
    facts: await readHostFacts(root),
    ...(sshAccount === undefined ? {} : { sshAccount }),
    bootId,
    bootedAt: () => bootTime(root),
    reboot: (request) => requestReboot(request, { root, run, bootId }),
    ownerOnDisk: ({ uid, gid }) => ({ uid, gid }),
    sshKeyPlace,
    protectedPaths: () => identityPaths(ownKubeconfigs?.() ?? [], { root, run }),
    verifyUnits: (units, planned) => verifyUnits(units, planned, { root, run }),
    label: createLabeller({ root, run }),
    beforeStep: beforeStep ?? (() => Promise.resolve()),
  };
}

/** `btime` of /proc/stat, in seconds: the kernel counts it back from the present time of the clock. */
async function bootTime(root: string): Promise<number> {
  const seconds = /^btime (\d+)$/m.exec(await readFile(join(root, 'proc/stat'), 'utf8'))?.[1];
  return seconds === undefined ? Number.NEGATIVE_INFINITY : Number(seconds) * 1000;
}
