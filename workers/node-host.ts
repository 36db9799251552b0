import { access } from 'node:fs/promises';
import type { Host } from '../activities/host/host.js';
import { findOsBackend, type BackendChoice } from '../activities/host/os/find-backend.js';
import { runProgram, type RunProgram } from '../activities/host/run-program.js';
import { createSimulatedHost, seedSimulatedHost } from '../activities/host/simulated-host.js';
import { sshKeyPlaceOf } from '../activities/host/sshd.js';
import { createSystemdHost } from '../activities/host/systemd-host.js';

export interface NodeHostOptions {
  /** `/` is the machine in which this process runs; another folder plays one. */
  readonly root: string;
  readonly sshAccount?: string | undefined;
  readonly osBackend: BackendChoice;
  /** The kubeconfigs that the worker uses. */
  readonly ownKubeconfigs: () => readonly string[];
  /** A machine that is played goes down. */
  readonly onDown: (why: string) => void;
  readonly run?: RunProgram;
}

/** Throws, with one line, where this process cannot keep the machine it runs on. */
export async function openNodeHost(options: NodeHostOptions): Promise<Host> {
  const { root, sshAccount, osBackend, onDown, run = runProgram, ownKubeconfigs } = options;
  if (root !== '/') {
    await seedSimulatedHost(root);
    const host = createSimulatedHost({ root, onDown });
    return sshAccount === undefined ? host : { ...host, sshAccount };
  }
  await checkMachine();
  return createSystemdHost({
    root,
    run,
    os: await findOsBackend({ root, run, wanted: osBackend }),
    sshKeyPlace: (account) => sshKeyPlaceOf(account, { root, run }),
    ...(sshAccount === undefined ? {} : { sshAccount }),
    ownKubeconfigs,
  });
}

async function checkMachine(): Promise<void> {
  if (process.geteuid?.() !== 0)
    throw new Error('not run as root, which keeping a host needs; see drydock-node.service');
  try {
    // As sd_booted(3) does.
    await access('/run/systemd/system');
  } catch {
    throw new Error(
      'systemd does not run here; set DRYDOCK_ROOT to a folder that plays the host, or run on a host with it',
    );
  }
}
