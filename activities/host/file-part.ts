import { join } from 'node:path';
import type { Host } from './host.js';
import { hasKeyBlock, keyBlockDifference, withKeyBlock, withKeyBlockOf, type KeyBlock } from './key-block.js';
import { ABSENT, differenceOf, putState, readState, type Difference, type PathState } from './path-state.js';
import {
  accountsOf,
  holdingShadowLock,
  lockedIfEmpty,
  passwordDifference,
  passwordLineOf,
  SHADOW_FILE,
  withPassword,
  withPasswordOf,
  type PasswordField,
} from './shadow.js';

/**
 * A part of a file in which others write as well: only the part is ours. It is put in, compared, taken out and put back
 * in the file as it is at that moment, so that nothing that others wrote is lost.
 */
export type FilePart = KeyBlock | PasswordField;
/** What kind of part a change was about, for putting it back. */
export type PartKind = FilePart['kind'];

export function isPart(state: { readonly kind: string } | string): state is FilePart {
  return typeof state !== 'string' && (state.kind === 'keys' || state.kind === 'password');
}

/** The file with the part as it should be. Throws NotPossibleHere. */
export function withPart(part: FilePart, found: PathState): PathState {
  return part.kind === 'keys' ? withKeyBlock(part, found) : withPassword(part, found);
}

export function partDifference(part: FilePart, found: PathState): Difference | undefined {
  return part.kind === 'keys' ? keyBlockDifference(part, found) : passwordDifference(part, found);
}

/** The file as found, with the part that an earlier state of it had. */
export function withPartOf(kind: PartKind, earlier: PathState, found: PathState): PathState {
  return kind === 'keys' ? withKeyBlockOf(earlier, found) : withPasswordOf(earlier, found);
}

/** The same where nothing of the part is managed any more. */
function withoutPart(kind: PartKind, original: PathState, found: PathState): PathState {
  return withPartOf(kind, kind === 'password' ? lockedIfEmpty(original) : original, found);
}

/** As much of a state as is to be kept for putting a part back: of the passwords of others nothing. */
export function keptOf(part: FilePart, state: PathState): PathState {
  return part.kind === 'keys' ? state : passwordLineOf(part.account, state);
}

/** What to come back to where nobody kept what was there before the old config: no keys, no password. */
export function unknownOriginal(part: FilePart): PathState {
  if (part.kind === 'keys') return ABSENT;
  return { kind: 'file', contents: Buffer.from(`${part.account}:*:\n`, 'latin1'), mode: 0o600, uid: 0, gid: 0 };
}

/** How a change of a part is made, in the file as it is then. */
export interface PartChange {
  readonly kind: PartKind;
  change(found: PathState): PathState;
  /** As much of the state before as undoing needs. */
  keep(before: PathState): PathState;
}

export function partChange(part: FilePart): PartChange {
  return { kind: part.kind, change: (found) => withPart(part, found), keep: (before) => keptOf(part, before) };
}

export function partRemoval(kind: PartKind, original: PathState): PartChange {
  const [account = ''] = kind === 'password' ? accountsOf(original) : [];
  return {
    kind,
    change: (found) => withoutPart(kind, original, found),
    keep: (before) => (kind === 'password' ? passwordLineOf(account, before) : before),
  };
}

/**
 * What part of a path was ours, where no config speaks of it any more: the old config tells, else the file itself.
 * /etc/shadow as a whole is never put back to what it once was.
 */
export function formerPart(
  path: string,
  old: PathState | FilePart | string | undefined,
  found: PathState,
): PartKind | undefined {
  if (old !== undefined) return isPart(old) ? old.kind : undefined;
  if (path === SHADOW_FILE) return 'password';
  return hasKeyBlock(found) ? 'keys' : undefined;
}

/** So often others may write the file between our reading and replacing it. */
const MOST_ATTEMPTS = 20;

class WrittenMeanwhile extends Error {
  override readonly name = 'WrittenMeanwhile';
}

/** Changes a part of a file of the host: `change` gets the file as it is now, and may be asked again. */
export async function putPart(host: Host, path: string, change: (found: PathState) => PathState): Promise<void> {
  const put = () => putUnlocked(host, path, change);
  return path === SHADOW_FILE ? holdingShadowLock(host.root, put) : put();
}

async function putUnlocked(host: Host, path: string, change: (found: PathState) => PathState): Promise<void> {
  const real = join(host.root, path);
  for (let attempt = 1; ; attempt++) {
    const found = await readState(real);
    try {
      await putState(real, change(found), async (written) => {
        await host.label(written, path);
        if (differenceOf(found, await readState(real)) !== undefined)
          throw new WrittenMeanwhile(`${path}: others write it all the time`);
      });
      return;
    } catch (error) {
      if (!(error instanceof WrittenMeanwhile) || attempt === MOST_ATTEMPTS) throw error;
    }
  }
}
