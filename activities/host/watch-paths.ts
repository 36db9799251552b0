import { watch, type FSWatcher } from 'node:fs';
import { lstat, readlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { isErrno } from './durable.js';

/** What is watched, as absolute paths within a root. None of it need exist. */
export interface WatchedPaths {
  /** What is at the path, and everything that leads to it: folders and links that are replaced, moved or removed. */
  readonly paths: Iterable<string>;
  /** Folders in which every name counts. */
  readonly folders: Iterable<string>;
}

export interface PathWatchOptions {
  readonly root: string;
  /** Called for every change, many times a second if need be: it has to be cheap. */
  readonly onChange: () => void;
  /** The kernel grants no more watches (or none at all): changes are missed. Called once until it works again. */
  readonly onTrouble: (why: unknown) => void;
  /** Default: the kernel's. */
  readonly watchFolder?: WatchFolder;
}

/** `name`: what in the folder changed; null: not known. Throws as `fs.watch`. */
type WatchFolder = (folder: string, onEvent: (event: string, name: string | null) => void) => FSWatcher;

const inotify: WatchFolder = (folder, onEvent) => watch(folder, { persistent: false }, onEvent);

/** Names that count in one folder; `all`: every one. */
type Names = Set<string> | 'all';

interface Armed {
  readonly watcher: FSWatcher;
  /** Tells a folder from a later one at the same path. */
  readonly identity: string;
  names: Names;
}

/** Links that are followed for one path, as in the kernel. */
const MOST_LINKS = 40;
/** Folders may change while they are being armed; then they are looked at again, so often. */
const MOST_PASSES = 5;
/**
 * The kernel's queue holds 16,384 events for all folders together and drops the rest without a word from Node. So many
 * events that count for nothing may have pushed out one that counts.
 */
const MOST_IGNORED = 4_096;

/**
 * Tells of changes to paths through inotify. A path is watched through every folder and link that leads to it, so that
 * it does not matter whether a file is written in place, replaced by rename, or moved with a folder far above it. Blind
 * for what inotify is blind for: writes through a memory map, through another hard link, and mounts.
 */
export class PathWatch {
  private readonly options: PathWatchOptions;
  private readonly armed = new Map<string, Armed>();
  private ignored = 0;
  private inTrouble = false;

  constructor(options: PathWatchOptions) {
    this.options = options;
  }

  /** Everything that was asked for is watched, as far as it exists. */
  get isComplete(): boolean {
    return !this.inTrouble;
  }

  /**
   * Watches these paths and nothing else. To be called again after every change, since folders come and go; whoever looks
   * at the paths after the promise misses nothing that happened before it.
   */
  async follow(wanted: WatchedPaths): Promise<void> {
    for (let pass = 0; pass < MOST_PASSES; pass++) {
      const { folders, identities } = await this.survey(wanted);
      if (!this.arm(folders, identities)) return;
    }
  }

  close(): void {
    for (const { watcher } of this.armed.values()) watcher.close();
    this.armed.clear();
  }

  private async survey(
    wanted: WatchedPaths,
  ): Promise<{ folders: Map<string, Names>; identities: Map<string, string> }> {
    const trail = new Trail(this.options.root);
    for (const path of wanted.paths) await trail.walk(path, false);
    for (const folder of wanted.folders) await trail.walk(folder, true);
    return { folders: trail.folders, identities: trail.identities };
  }

  /** True: something was armed anew, so what was seen before may be old. */
  private arm(folders: ReadonlyMap<string, Names>, identities: ReadonlyMap<string, string>): boolean {
    for (const [folder, { watcher }] of this.armed) {
      if (folders.has(folder)) continue;
      watcher.close();
      this.armed.delete(folder);
    }
    let isNew = false;
    let trouble: unknown;
    for (const [folder, names] of folders) {
      const identity = identities.get(folder) ?? '';
      const before = this.armed.get(folder);
      if (before?.identity === identity) {
        before.names = names;
        continue;
      }
      try {
        this.armed.set(folder, { watcher: this.watchFolder(folder), identity, names });
        isNew = true;
      } catch (error) {
        this.armed.delete(folder);
        // It went while we looked: its own folder tells when it is back.
        if (isErrno(error, 'ENOENT', 'ENOTDIR')) isNew = true;
        else trouble ??= error;
      }
      // After the new one: two watches of the same folder share one in the kernel, which thus never ends in between.
      before?.watcher.close();
    }
    this.say(trouble);
    return isNew && trouble === undefined;
  }

  private watchFolder(folder: string): FSWatcher {
    const self = basename(folder);
    const { root, watchFolder = inotify } = this.options;
    const watcher = watchFolder(join(root, folder), (_, name) => {
      const armed = this.armed.get(folder);
      // Without a name, or with its own, the event is of the folder itself.
      if (name === null || name === self || armed === undefined || armed.names === 'all' || armed.names.has(name)) {
        this.changed();
      } else if (++this.ignored >= MOST_IGNORED) this.changed();
    });
    watcher.on('error', (error) => {
      watcher.close();
      if (this.armed.get(folder)?.watcher === watcher) this.armed.delete(folder);
      this.say(error);
      this.changed();
    });
    return watcher;
  }

  private changed(): void {
    this.ignored = 0;
    this.options.onChange();
  }

  private say(trouble: unknown): void {
    const isTrouble = trouble !== undefined;
    if (isTrouble && !this.inTrouble) this.options.onTrouble(trouble);
    this.inTrouble = isTrouble;
  }
}

/** Collects the folders through which paths are reached, and the names in them that matter. */
class Trail {
  readonly folders = new Map<string, Names>();
  readonly identities = new Map<string, string>();
  private readonly root: string;
  private readonly seen = new Map<string, Promise<Found>>();

  constructor(root: string) {
    this.root = root;
  }

  /** Goes along `path` as far as it exists, through links within the root. `into`: the folder at its end counts whole. */
  async walk(path: string, into: boolean): Promise<void> {
    const pending = partsOf(path);
    let here: string[] = [];
    for (let links = 0; pending.length > 0 && links <= MOST_LINKS;) {
      const part = pending.shift() ?? '';
      if (part === '..') {
        here.pop();
        continue;
      }
      await this.note(here, part);
      // The last part itself is what is managed, a link or not.
      if (pending.length === 0 && !into) return;
      const found = await this.lookAt([...here, part]);
      if (found.kind === 'other') return;
      if (found.kind === 'folder') {
        here = [...here, part];
        continue;
      }
      links += 1;
      if (found.target.startsWith('/')) here = [];
      pending.unshift(...partsOf(found.target));
    }
    if (into && pending.length === 0) await this.note(here);
  }

  /** Without a name: all of them count. */
  private async note(folder: readonly string[], name?: string): Promise<void> {
    const path = `/${folder.join('/')}`;
    if (!this.folders.has(path)) {
      const found = await this.lookAt(folder);
      if (found.kind !== 'folder') return;
      this.identities.set(path, found.identity);
      this.folders.set(path, new Set());
    }
    const names = this.folders.get(path);
    if (names === undefined || names === 'all') return;
    if (name === undefined) this.folders.set(path, 'all');
    else names.add(name);
  }

  private lookAt(parts: readonly string[]): Promise<Found> {
    const path = join(this.root, ...parts);
    const known = this.seen.get(path);
    if (known !== undefined) return known;
    const found = lookAt(path);
    this.seen.set(path, found);
    return found;
  }
}

type Found =
  | { readonly kind: 'folder'; readonly identity: string }
  | { readonly kind: 'link'; readonly target: string }
  /** A file, or nothing. */
  | { readonly kind: 'other' };

async function lookAt(path: string): Promise<Found> {
  try {
    const stats = await lstat(path, { bigint: true });
    if (stats.isSymbolicLink()) return { kind: 'link', target: await readlink(path) };
    if (!stats.isDirectory()) return { kind: 'other' };
    // File systems use the number of a removed folder again at once; its time of birth they do not.
    return { kind: 'folder', identity: `${stats.dev}:${stats.ino}:${stats.birthtimeNs}` };
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR', 'EINVAL')) return { kind: 'other' };
    throw error;
  }
}

const partsOf = (path: string): string[] => path.split('/').filter((part) => part !== '' && part !== '.');
