import { NotPossibleHere } from './entry.js';
import { ABSENT, type Difference, type Owner, type PathState } from './path-state.js';

/**
 * Lines of ours in a file of keys that others write as well. They stand between two markers, at the beginning of the file
 * unless somebody moved them: so the rest stays byte for byte, also where it does not end with a line break.
 */
export interface KeyBlock extends Owner {
  readonly kind: 'keys';
  /** At least one; the owner is that of the account whose keys they are. */
  readonly lines: readonly string[];
}

type File = PathState & { readonly kind: 'file' };

const BEGIN = '# BEGIN Drydock';
const END = '# END Drydock';
/** sshd refuses a file that others could write. */
const WRITABLE_BY_OTHERS = 0o022;
const READABLE_BY_OTHERS = 0o004;
const NEW_FILE_MODE = 0o600;

/** The file with the block in it. Throws NotPossibleHere where what is found is no plain file. */
export function withKeyBlock(block: KeyBlock, found: PathState): PathState {
  if (found.kind === 'absent') {
    return { kind: 'file', contents: bytes(textOf(block)), mode: NEW_FILE_MODE, uid: block.uid, gid: block.gid };
  }
  if (found.kind !== 'file') {
    throw new NotPossibleHere(
      `the file of keys that others write as well is a ${found.kind} on this host: put a plain file there`,
    );
  }
  const { before, after } = cut(text(found));
  return { ...acceptable(found, block), contents: bytes(before + textOf(block) + after) };
}

/**
 * The file as found, with the block that an earlier state of it had: none, if that had none. What others wrote stays. The
 * file goes if it did not exist then and holds nothing else. A mode or owner that had to be mended is again as it was.
 */
export function withKeyBlockOf(earlier: PathState, found: PathState): PathState {
  if (found.kind !== 'file') return earlier;
  const { before, after, foundBlock } = cut(text(found));
  if (earlier.kind !== 'file') {
    if (before + after === '' && foundBlock !== '') return ABSENT;
    return { ...found, contents: bytes(before + after) };
  }
  const contents = bytes(before + cut(text(earlier)).foundBlock + after);
  const mended = acceptable(earlier, found);
  const isAsWeLeftIt = mended.mode === found.mode && mended.uid === found.uid && mended.gid === found.gid;
  const { mode, uid, gid } = isAsWeLeftIt ? earlier : found;
  return { kind: 'file', contents, mode, uid, gid };
}

/** What of the block is not as it should be; what others write in the file does not count. */
export function keyBlockDifference(block: KeyBlock, found: PathState): Difference | undefined {
  if (found.kind === 'absent') return { kind: 'missing', words: 'expected a file with our keys, found nothing' };
  if (found.kind !== 'file') return { kind: 'type', words: `expected a file, found a ${found.kind}` };
  if (cut(text(found)).foundBlock !== textOf(block)) {
    return { kind: 'contents', words: 'the keys between the markers of Drydock are others' };
  }
  const { mode, uid } = acceptable(found, block);
  if (mode !== found.mode)
    return { kind: 'mode', words: 'others than the owner may write it, so sshd does not read it' };
  if (uid !== found.uid) return { kind: 'owner', words: `expected owner ${uid}, found ${found.uid}` };
  return undefined;
}

/** True where a file has a block of ours. */
export function hasKeyBlock(state: PathState): boolean {
  return state.kind === 'file' && cut(text(state)).foundBlock !== '';
}

/** Lines that would be taken for markers cannot be keys. */
export function isMarker(line: string): boolean {
  return line.startsWith(BEGIN) || line.startsWith(END);
}

function acceptable(file: File, { uid, gid }: Owner): File {
  const isReadable = file.uid === uid || (file.uid === 0 && (file.mode & READABLE_BY_OTHERS) !== 0);
  return { ...file, mode: file.mode & ~WRITABLE_BY_OTHERS, ...(isReadable ? {} : { uid, gid }) };
}

/** How many lines follow is said in the first, so that our keys are found again if somebody removes the last. */
function textOf({ lines }: KeyBlock): string {
  const begin = `${BEGIN} (${lines.length} lines): keys from MachineConfigs, to be changed there`;
  return Buffer.from([begin, ...lines, END].map((line) => `${line}\n`).join(''), 'utf8').toString('latin1');
}

/** Bytes as characters: what others wrote need not be UTF-8. */
const text = ({ contents }: File): string => contents.toString('latin1');
const bytes = (characters: string): Buffer => Buffer.from(characters, 'latin1');

/** What stands before and after our block, and our block; every block, should there be several. */
function cut(characters: string): { before: string; after: string; foundBlock: string } {
  const lines = characters.match(/[^\n]*\n|[^\n]+$/g) ?? [];
  const first = lines.findIndex((line) => line.startsWith(BEGIN));
  if (first < 0) return { before: '', after: characters, foundBlock: '' };
  const end = endOfBlock(lines, first);
  const rest = cut(lines.slice(end).join(''));
  return {
    before: lines.slice(0, first).join(''),
    after: rest.before + rest.after,
    foundBlock: lines.slice(first, end).join('') + rest.foundBlock,
  };
}

function endOfBlock(lines: readonly string[], first: number): number {
  const end = lines.findIndex((line, index) => index > first && isMarker(line));
  if (end >= 0 && lines[end]?.startsWith(END) === true) return end + 1;
  const [, count = '0'] = /\((\d+) lines\)/.exec(lines[first] ?? '') ?? [];
  return Math.min(first + 1 + Number(count), end < 0 ? lines.length : end);
}
