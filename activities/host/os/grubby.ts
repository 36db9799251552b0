import {
  missingArguments,
  sameArguments,
  splitCommandLine,
  withoutArguments,
} from '../../../machine-config/change/command-line.js';
import type { OsBackend, OsState } from '../host.js';
import type { RunProgram } from '../run-program.js';
import { runningArguments } from './none.js';
import { ourArguments, possiblyOurs, readOsRecord, recordIntention, recordSettled } from './record.js';
import { PLAIN_OS, refuseOthers, REFUSALS_WITHOUT_IMAGES, type Refusals } from './refusal.js';
import { runOrThrow } from './run-or-throw.js';

/** RHEL and its kin, installed from packages: kernel arguments through `grubby`. Experimental. */
export function grubbyBackend({ root, run, fips }: { root: string; run: RunProgram; fips: Refusals }): OsBackend {
  const refusals: Refusals = { ...REFUSALS_WITHOUT_IMAGES, ...fips };
  return {
    name: 'grubby',
    refusal: (field, wanted) =>
      refusals[field] ?? (field === 'kernelArguments' ? argumentsRefusal(wanted?.kernelArguments ?? []) : undefined),
    async staged() {
      const [booting] = await entries(run, 'DEFAULT');
      return { ...PLAIN_OS, kernelArguments: ourArguments(await readOsRecord(root), booting ?? []) };
    },
    stage: (wanted) => stage(wanted, { root, run }),
    booted: async () => ({ ...PLAIN_OS, kernelArguments: await runningArguments(root) }),
    deployment: () => Promise.resolve(''),
  };
}

/** grubby knows one value a key, and hands its arguments to a shell unquoted. */
function argumentsRefusal(wanted: readonly string[]): string | undefined {
  const seen = new Set<string>();
  for (const argument of wanted) {
    if (/["'\\$`*?[\]\s]/.test(argument)) return `${argument}: grubby cannot take quotes, blanks and wildcards`;
    const key = keyOf(argument);
    if (seen.has(key)) return `${key}: grubby keeps only one of several arguments with one name`;
    seen.add(key);
  }
  return undefined;
}

const keyOf = (argument: string): string => argument.split('=', 1)[0] ?? argument;

async function stage(wanted: OsState, { root, run }: { root: string; run: RunProgram }): Promise<void> {
  refuseOthers('grubby', wanted, ['kernelArguments']);
  const refused = argumentsRefusal(wanted.kernelArguments);
  if (refused !== undefined) throw new Error(`kernelArguments: ${refused}`);
  const record = await readOsRecord(root);
  const before = await entries(run, 'ALL');
  if (before.length === 0) throw new Error('grubby --info=ALL: names no kernel: is a boot loader installed?');
  if (record.intended === undefined && before.every((entry) => isDone(entry, ourArguments(record, entry), wanted)))
    return;
  const others = before.map((entry) => withoutArguments(entry, possiblyOurs(record)));
  refuseTakenKeys(wanted, others);

  await recordIntention(root, wanted);
  const remove = possiblyOurs(record).filter((argument) => before.some((entry) => entry.includes(argument)));
  const change = [
    ...(remove.length === 0 ? [] : [`--remove-args=${remove.join(' ')}`]),
    ...(wanted.kernelArguments.length === 0 ? [] : [`--args=${wanted.kernelArguments.join(' ')}`]),
  ];
  if (change.length > 0) await runOrThrow(run, 'grubby', ['--update-kernel=ALL', ...change]);
  checkResult(await entries(run, 'ALL'), others, wanted);
  await recordSettled(root, wanted);
}

function isDone(entry: readonly string[], ours: readonly string[], wanted: OsState): boolean {
  return sameArguments(ours, wanted.kernelArguments) && missingArguments(wanted.kernelArguments, entry).length === 0;
}

/** grubby would change the argument that is there, and taking ours away again would take it away too. */
function refuseTakenKeys({ kernelArguments }: OsState, others: readonly (readonly string[])[]): void {
  const taken = new Set(others.flat().map(keyOf));
  const argument = kernelArguments.find((candidate) => taken.has(keyOf(candidate)));
  if (argument !== undefined) {
    throw new Error(
      `kernelArguments: the host itself sets ${keyOf(argument)}, and grubby keeps only one: remove it there`,
    );
  }
}

/** Older grubby takes arguments away by the beginning of their names: somebody else's must all be there still. */
function checkResult(after: readonly string[][], others: readonly string[][], { kernelArguments }: OsState): void {
  after.forEach((entry, index) => {
    const lost = missingArguments(others[index] ?? [], withoutArguments(entry, kernelArguments));
    if (lost.length > 0) throw new Error(`grubby: removed ${lost.join(' ')}, which is not Drydock's: add it again`);
    const [missing] = missingArguments(kernelArguments, entry);
    if (missing !== undefined)
      throw new Error(`grubby: did not add ${missing} to every kernel: look at grubby --info=ALL`);
  });
}

/** The arguments of each kernel. */
async function entries(run: RunProgram, which: 'ALL' | 'DEFAULT'): Promise<string[][]> {
  const text = await runOrThrow(run, 'grubby', [`--info=${which}`]);
  return [...text.matchAll(/^args="(.*)"$/gm)].map(([, line]) => splitCommandLine(line ?? ''));
}
