import { mkdir, open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { missingArguments, sameArguments, withoutArguments } from '../../../machine-config/change/command-line.js';
import { readIfThere, syncDirectory } from '../durable.js';
import type { OsBackend, OsState } from '../host.js';
import { ABSENT, putState } from '../path-state.js';
import type { RunProgram } from '../run-program.js';
import { argumentsOfLinuxLine, grubRefusal, grubWord, shellWord } from './grub-words.js';
import { runningArguments } from './none.js';
import { ourArguments, possiblyOurs, readOsRecord, recordIntention, recordSettled } from './record.js';
import { PLAIN_OS, refuseOthers, REFUSALS_WITHOUT_IMAGES, type Refusals } from './refusal.js';
import { runOrThrow } from './run-or-throw.js';

/** Read by grub-mkconfig of Debian and its kin after /etc/default/grub, in the order of the names. */
const DRYDOCK_GRUB_FILE = '/etc/default/grub.d/90-drydock.cfg';
/** What the boot loader reads. */
const GRUB_CONFIGURATION = '/boot/grub/grub.cfg';
/** os-prober can look through many disks. */
const UPDATE_TIMEOUT_MS = 5 * 60_000;

/** Debian, Ubuntu and their kin: kernel arguments through a file of our own and `update-grub`. */
export function grubBackend({
  root,
  run,
  fips,
}: {
  readonly root: string;
  readonly run: RunProgram;
  readonly fips: Refusals;
}): OsBackend {
  const refusals: Refusals = { ...REFUSALS_WITHOUT_IMAGES, ...fips };
  return {
    name: 'grub',
    refusal: (field, wanted) =>
      refusals[field] ?? (field === 'kernelArguments' ? argumentsRefusal(wanted?.kernelArguments ?? []) : undefined),
    staged: async () => ({ ...PLAIN_OS, kernelArguments: await stagedArguments(root) }),
    stage: (wanted) => stage(wanted, { root, run }),
    booted: async () => ({ ...PLAIN_OS, kernelArguments: await runningArguments(root) }),
    deployment: () => Promise.resolve(''),
  };
}

function argumentsRefusal(wanted: readonly string[]): string | undefined {
  for (const argument of wanted) {
    const why = grubRefusal(argument);
    if (why !== undefined) return `${argument}: ${why}`;
  }
  return undefined;
}

async function stagedArguments(root: string): Promise<readonly string[]> {
  const record = await readOsRecord(root);
  const [first = []] = await configuredArguments(root);
  const ours = ourArguments(record, first);
  // Without our file the next kernel that is installed, or the next update-grub, would boot without them.
  return (await readIfThere(join(root, DRYDOCK_GRUB_FILE))) === fileFor(ours) ? ours : [];
}

async function stage(wanted: OsState, { root, run }: { root: string; run: RunProgram }): Promise<void> {
  refuseOthers('grub', wanted, ['kernelArguments']);
  const refused = argumentsRefusal(wanted.kernelArguments);
  if (refused !== undefined) throw new Error(`kernelArguments: ${refused}`);
  const before = await readOsRecord(root);
  if (before.intended === undefined && sameArguments(await stagedArguments(root), wanted.kernelArguments)) return;
  await recordIntention(root, wanted);
  await putFile(join(root, DRYDOCK_GRUB_FILE), fileFor(wanted.kernelArguments));
  const old = withoutArguments(possiblyOurs(before), wanted.kernelArguments);
  // So that going back also works where update-grub failed, and left the configuration as it was, for a reason that stays.
  if (!(await isConfigured(root, wanted.kernelArguments, old))) {
    await runOrThrow(run, 'update-grub', [], { timeoutMs: UPDATE_TIMEOUT_MS });
    await syncFile(join(root, GRUB_CONFIGURATION));
    await checkConfigured(root, wanted.kernelArguments);
  }
  await recordSettled(root, wanted);
}

/** Undefined: no file, since there is nothing to say. */
function fileFor(kernelArguments: readonly string[]): string | undefined {
  if (kernelArguments.length === 0) return undefined;
  const words = kernelArguments.map(grubWord).join(' ');
  return `# The kernel arguments that MachineConfigs ask for. Written by Drydock: change them there.
GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX "${shellWord(words)}
`;
}

async function putFile(path: string, text: string | undefined): Promise<void> {
  if (text === undefined) return putState(path, ABSENT);
  await mkdir(dirname(path), { recursive: true, mode: 0o755 });
  const owner = { uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0 };
  return putState(path, { kind: 'file', contents: Buffer.from(text), mode: 0o644, ...owner });
}

/** The kernel arguments of each entry that update-grub makes for this system's kernels, the default one first. */
async function configuredArguments(root: string): Promise<string[][]> {
  const text = (await readIfThere(join(root, GRUB_CONFIGURATION))) ?? '';
  const section = /### BEGIN \S*\/10_linux\S* ###\n([^]*?)### END \S*\/10_linux\S* ###/g;
  const entries = [...text.matchAll(section)].map(([, entry]) => entry ?? '').join('\n');
  return (entries.match(/^\s*linux(?:efi)?\s.*$/gm) ?? []).map(argumentsOfLinuxLine);
}

async function isConfigured(root: string, wanted: readonly string[], gone: readonly string[]): Promise<boolean> {
  const entries = await configuredArguments(root);
  return (
    entries.length > 0 &&
    entries.every(
      (entry) => missingArguments(wanted, entry).length === 0 && missingArguments(gone, entry).length === gone.length,
    )
  );
}

async function checkConfigured(root: string, wanted: readonly string[]): Promise<void> {
  if (wanted.length === 0) return;
  const entries = await configuredArguments(root);
  if (entries.length === 0) {
    throw new Error(`${GRUB_CONFIGURATION}: update-grub found no kernel of this system in /boot: install one`);
  }
  for (const entry of entries) {
    const [missing] = missingArguments(wanted, entry);
    if (missing !== undefined) {
      throw new Error(
        `${GRUB_CONFIGURATION}: lacks ${missing} after update-grub: look for a file in /etc/default/grub.d, later than ${DRYDOCK_GRUB_FILE}, that sets GRUB_CMDLINE_LINUX anew`,
      );
    }
  }
}

/** grub-mkconfig replaces its file without making it durable. */
async function syncFile(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
  await syncDirectory(dirname(path));
}
