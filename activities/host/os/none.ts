import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { splitCommandLine } from '../../../machine-config/change/command-line.js';
import type { OsBackend, OsBackendName } from '../host.js';
import { PLAIN_OS, refuseOthers, type Refusals } from './refusal.js';

/** The arguments of the running kernel: ours and others'. */
export async function runningArguments(root: string): Promise<string[]> {
  return splitCommandLine(await readFile(join(root, 'proc/cmdline'), 'utf8'));
}

/** Changes nothing of the operating system: where nothing can, or where what could is not switched on. */
export function passiveBackend({
  name,
  root,
  refusals,
  deployment = () => Promise.resolve(''),
}: {
  readonly name: OsBackendName;
  readonly root: string;
  readonly refusals: Refusals;
  readonly deployment?: OsBackend['deployment'];
}): OsBackend {
  return {
    name,
    refusal: (field) => refusals[field],
    staged: () => Promise.resolve(PLAIN_OS),
    stage: (wanted) =>
      new Promise((resolve) => {
        refuseOthers(name, wanted, []);
        resolve();
      }),
    booted: async () => ({ ...PLAIN_OS, kernelArguments: await runningArguments(root) }),
    deployment,
  };
}
