import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { missingArguments, withoutArguments } from '../../../machine-config/change/command-line.js';
import { readIfThere, syncDirectory, writeDurably } from '../durable.js';
import type { OsState } from '../host.js';
import { STATE_FOLDER } from '../state-store.js';
import { PLAIN_OS } from './refusal.js';

const RECORD_FILE = `${STATE_FOLDER}/operating-system.json`;

/**
 * Which part of the operating system's state is Drydock's: a boot loader does not tell whose an argument is. What the
 * next boot really has is always read from the host itself; this only says what of it to call ours.
 */
export interface OsRecord {
  readonly version: 1;
  /** The last change that got through. */
  readonly settled: OsState;
  /** A change that was begun; absent once it got through. */
  readonly intended?: OsState;
  /** Where each deployment has its own arguments and image: what was ours in it, by the deployment's id. */
  readonly deployments?: Readonly<Record<string, OsState>>;
  /** The image that the host had before Drydock chose one, as its own tools name it; it comes back. */
  readonly imageBefore?: string;
}

const NOTHING: OsRecord = { version: 1, settled: PLAIN_OS };

export async function readOsRecord(root: string): Promise<OsRecord> {
  const text = await readIfThere(join(root, RECORD_FILE));
  if (text === undefined) return NOTHING;
  try {
    return JSON.parse(text) as OsRecord;
  } catch (cause) {
    throw new Error(`${RECORD_FILE}: is not JSON; it was damaged by something else than Drydock: restore it`, {
      cause,
    });
  }
}

/** Before anything is touched. */
export async function recordIntention(root: string, wanted: OsState, more: Partial<OsRecord> = {}): Promise<void> {
  const record = await readOsRecord(root);
  // What was in the middle of being changed stays known, whichever way it went.
  const settled = record.intended === undefined ? record.settled : merged(record.settled, record.intended);
  await write(root, { ...record, ...more, settled, intended: wanted });
}

/** Once the host shows it. `deployments` takes the place of those recorded. */
export async function recordSettled(
  root: string,
  settled: OsState,
  deployments?: OsRecord['deployments'],
): Promise<void> {
  const { imageBefore } = await readOsRecord(root);
  await write(root, {
    version: 1,
    settled,
    ...(deployments === undefined ? {} : { deployments }),
    ...(imageBefore === undefined ? {} : { imageBefore }),
  });
}

/** Those of `actual` that are Drydock's, as far as the record tells. */
export function ourArguments({ settled, intended }: OsRecord, actual: readonly string[]): readonly string[] {
  if (intended !== undefined) {
    const isThere = missingArguments(intended.kernelArguments, actual).length === 0;
    const old = withoutArguments(settled.kernelArguments, intended.kernelArguments);
    const oldIsGone = missingArguments(old, actual).length === old.length;
    if (isThere && oldIsGone) return intended.kernelArguments;
  }
  const known = intended === undefined ? settled : merged(settled, intended);
  return withoutArguments(known.kernelArguments, missingArguments(known.kernelArguments, actual));
}

/** All that may be ours, whichever way a change that was begun went. */
export function possiblyOurs({ settled, intended }: OsRecord): readonly string[] {
  return intended === undefined ? settled.kernelArguments : merged(settled, intended).kernelArguments;
}

function merged(settled: OsState, intended: OsState): OsState {
  const added = withoutArguments(intended.kernelArguments, settled.kernelArguments);
  return { ...settled, kernelArguments: [...settled.kernelArguments, ...added] };
}

/** A host of which nothing is ours looks as if there had never been anything. */
async function write(root: string, record: OsRecord): Promise<void> {
  const path = join(root, RECORD_FILE);
  if (JSON.stringify(record) !== JSON.stringify(NOTHING)) return writeDurably(path, JSON.stringify(record));
  await rm(path, { force: true });
  return syncDirectory(dirname(path));
}
