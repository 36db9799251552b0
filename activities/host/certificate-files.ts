import { createHash } from 'node:crypto';
import { dirname, join } from 'node:path';
import type { CertificateFile } from '../../machine-config/certificates/files.js';
import type { CertificateRecord, KeptCertificate } from './certificate-record.js';
import { parentsOf } from './entry.js';
import type { Host } from './host.js';
import { ABSENT, differenceOf, readState, type PathState } from './path-state.js';
import { protectedPlaces } from './protected-paths.js';
import { putPath } from './put-path.js';
import { checkManageable, PathRefused, resolveInRoot } from './root-path.js';
import type { StateStore } from './state-store.js';

export interface CertificatesWanted {
  readonly files: readonly CertificateFile[];
  /** Every path that an entry names, also one that cannot be followed now: its file stays. */
  readonly declared: ReadonlySet<string>;
  /** What the config that the disk is at manages, as it names it and where it lies. */
  readonly managed: ReadonlySet<string>;
}

/** What was done; nothing of it tells contents. */
export interface CertificateChanges {
  /** `spoilt`: it was as it should be once, and others changed it so. */
  readonly written: readonly { readonly path: string; readonly source: string; readonly spoilt?: string }[];
  readonly putBack: readonly string[];
  /** One line each, with the path first. */
  readonly problems: readonly string[];
}

/**
 * Brings the files that follow Secrets and ConfigMaps to what is wanted, and puts back what was there before those that
 * are not wanted any more. Only what differs is written, each file complete before it takes its place, and how to get
 * back is on the disk before: it may be interrupted anywhere and begun again. To be called with the host's lock held and
 * no update open. What cannot be done to one file is a problem, and does not hold up the others.
 */
export async function syncCertificateFiles(
  host: Host,
  store: StateStore,
  wanted: CertificatesWanted,
): Promise<CertificateChanges> {
  const work = new Work(host, store, await store.certificates());
  await work.handOver(wanted.managed);
  const places = await work.place(wanted);
  await work.remember(places);
  for (const [place, file] of places) await work.attempt(file.path, () => work.write(place, file));
  await work.putBackOthers(wanted.declared, places);
  await work.finish();
  return { written: work.written, putBack: work.putBack, problems: work.problems };
}

type Places = ReadonlyMap<string, CertificateFile>;
type FileState = PathState & { readonly kind: 'file' };

class Work {
  readonly written: { path: string; source: string; spoilt?: string }[] = [];
  readonly putBack: string[] = [];
  readonly problems: string[] = [];
  private readonly host: Host;
  private readonly store: StateStore;
  private readonly files: Map<string, KeptCertificate>;
  private readonly folders: Set<string>;
  private onDisk: string;
  private isForgotten = false;

  constructor(host: Host, store: StateStore, record: CertificateRecord) {
    this.host = host;
    this.store = store;
    this.files = new Map(Object.entries(record.files));
    this.folders = new Set(record.folders);
    this.onDisk = JSON.stringify(record);
  }

  /** A config manages the path now: what was there before us comes back when it is the config that lets go of it. */
  async handOver(managed: ReadonlySet<string>): Promise<void> {
    const taken = [...this.files].filter(([place]) => managed.has(place));
    if (taken.length === 0) return;
    const { paths, units } = await this.store.originals();
    const ours = Object.fromEntries(taken.map(([place, { original }]) => [place, original]));
    await this.store.writeOriginals({ paths: { ...paths, ...ours }, units });
    for (const [place] of taken) this.forget(place);
  }

  /** Where the wanted files lie, links among their parents followed; without those that may not lie there. */
  async place({ files, managed }: CertificatesWanted): Promise<Map<string, CertificateFile>> {
    const places = new Map<string, CertificateFile>();
    if (files.length === 0) return places;
    const protectedPaths = await protectedPlaces(this.host);
    for (const file of files) {
      await this.attempt(file.path, async () => {
        const place = await resolveInRoot(this.host.root, file.path);
        checkManageable(place);
        const why = whyNot(place, { file, managed, protectedPaths, other: places.get(place) });
        if (why !== undefined) throw new PathRefused(`${file.path}: ${why}`);
        places.set(place, file);
      });
    }
    return places;
  }

  /** Keeps what is there, before any of it is touched. */
  async remember(places: Places): Promise<void> {
    for (const [place, { path, contents }] of places) {
      const kept = this.files.get(place);
      if (kept !== undefined) this.files.set(place, { ...kept, declared: path });
      else if (contents !== undefined) await this.attempt(path, () => this.rememberOne(place, path));
    }
    await this.save();
  }

  private async rememberOne(place: string, declared: string): Promise<void> {
    const found = await this.found(place);
    if (found.kind === 'directory' || found.kind === 'special') {
      throw new PathRefused(`${declared}: is a ${found.kind} on this host; move it away, or choose another path`);
    }
    for (const folder of parentsOf(place)) {
      if ((await this.found(folder)).kind === 'absent') this.folders.add(folder);
    }
    this.files.set(place, { declared, original: await this.store.store(found) });
  }

  async write(place: string, { path, source, mode, contents }: CertificateFile): Promise<void> {
    const kept = this.files.get(place);
    if (contents === undefined || kept === undefined) return;
    const owner = this.host.ownerOnDisk({ uid: 0, gid: 0 });
    const state: FileState = { kind: 'file', contents, mode, ...owner };
    const wrote = printOf(state);
    const difference = differenceOf(state, await this.found(place));
    if (difference !== undefined) {
      await this.host.beforeStep(`writing ${path} from ${source}`);
      for (const folder of parentsOf(place)) {
        if ((await this.found(folder)).kind !== 'absent') continue;
        await putPath(this.host, folder, { kind: 'directory', mode: 0o755, ...owner });
      }
      await putPath(this.host, place, state);
      this.written.push({ path, source, ...(kept.wrote === wrote ? { spoilt: difference.words } : {}) });
    }
    this.files.set(place, { ...kept, wrote });
  }

  /** Files of entries that are gone, or that lie elsewhere now. */
  async putBackOthers(declared: ReadonlySet<string>, places: Places): Promise<void> {
    const moved = new Set([...places.values()].map(({ path }) => path));
    for (const [place, kept] of [...this.files]) {
      if (places.has(place) || (declared.has(kept.declared) && !moved.has(kept.declared))) continue;
      await this.attempt(place, async () => {
        await this.host.beforeStep(`putting back ${place}`);
        if (kept.original.kind === 'absent' || (await this.found(dirname(place))).kind === 'directory') {
          await putPath(this.host, place, await this.store.load(kept.original));
        }
        this.forget(place);
        this.putBack.push(place);
      });
    }
  }

  /** Folders that were made for files that are gone; what others put there keeps them. */
  async finish(): Promise<void> {
    for (const folder of [...this.folders].sort().reverse()) {
      if ([...this.files.keys()].some((place) => place.startsWith(`${folder}/`))) continue;
      await this.attempt(folder, async () => {
        if ((await this.found(folder)).kind === 'directory') await putPath(this.host, folder, ABSENT);
        this.folders.delete(folder);
      });
    }
    await this.save();
    if (this.isForgotten) await this.store.collectGarbage();
  }

  async attempt(path: string, step: () => Promise<void>): Promise<void> {
    try {
      await step();
    } catch (error) {
      const text = error instanceof Error ? error.message.replace(/\s*\n\s*/gu, ' ') : String(error);
      this.problems.push(text.startsWith(`${path}: `) ? text : `${path}: ${text}`);
    }
  }

  private forget(place: string): void {
    this.files.delete(place);
    this.isForgotten = true;
  }

  private found(path: string): Promise<PathState> {
    return readState(join(this.host.root, path));
  }

  private async save(): Promise<void> {
    const files = Object.fromEntries([...this.files].sort(([one], [other]) => (one < other ? -1 : 1)));
    const record: CertificateRecord = { files, folders: [...this.folders].sort() };
    const text = JSON.stringify(record);
    if (text === this.onDisk) return;
    await this.store.writeCertificates(record);
    this.onDisk = text;
  }
}

interface Place {
  readonly file: CertificateFile;
  readonly managed: ReadonlySet<string>;
  readonly protectedPaths: readonly string[];
  readonly other: CertificateFile | undefined;
}

/** Why a file may not be written where it would lie. */
function whyNot(place: string, { file, managed, protectedPaths, other }: Place): string | undefined {
  if (managed.has(place) || managed.has(file.path)) {
    return 'the rendered config of this node manages it, which wins; take it out of the MachineConfigs or out of spec.certificates';
  }
  const own = protectedPaths.find((path) =>
    [place, file.path].some((each) => each === path || each.startsWith(`${path}/`)),
  );
  if (own !== undefined) return `${own} is what this node or its worker depends on; use another path`;
  if (other !== undefined) return `is the same path as ${other.path} on this host; keep one`;
  return undefined;
}

function printOf({ contents, mode }: FileState): string {
  return createHash('sha256').update(`${mode} `).update(contents).digest('hex');
}
