import { createHash } from 'node:crypto';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { MachineConfig } from '../../machine-config/api/machine-config.js';
import type { CertificateRecord } from './certificate-record.js';
import { namesIn, readIfThere, removeUnfinished, writeDurably } from './durable.js';
import type { Journal, Rollback } from './journal.js';
import type { Originals } from './originals.js';
import type { PathState } from './path-state.js';

/** Drydock's memory on a host, within the root: only root may read it, since it holds copies of files. */
export const STATE_FOLDER = '/var/lib/drydock';
export const CURRENT_CONFIG_FILE = `${STATE_FOLDER}/currentconfig`;
export const ORIGINALS_FILE = `${STATE_FOLDER}/originals.json`;
export const JOURNAL_FILE = `${STATE_FOLDER}/journal.json`;
export const ROLLBACK_FILE = `${STATE_FOLDER}/rollback.json`;
const CERTIFICATES_FILE = `${STATE_FOLDER}/certificates.json`;
const RECORDS = [CURRENT_CONFIG_FILE, ORIGINALS_FILE, JOURNAL_FILE, ROLLBACK_FILE, CERTIFICATES_FILE];
const BLOB_FOLDER = `${STATE_FOLDER}/blobs`;

/** A PathState with the contents kept aside, by their SHA-256. */
export type StoredState =
  Exclude<PathState, { kind: 'file' }> | (Omit<PathState & { kind: 'file' }, 'contents'> & { readonly blob: string });

/** What a host remembers across restarts of the worker and reboots. */
export interface StateStore {
  /** The config that the disk is at; undefined: Drydock never applied one here. */
  currentConfig(): Promise<MachineConfig | undefined>;
  originals(): Promise<Originals>;
  writeOriginals(originals: Originals): Promise<void>;
  /** The files that follow Secrets and ConfigMaps; they belong to no config. */
  certificates(): Promise<CertificateRecord>;
  writeCertificates(record: CertificateRecord): Promise<void>;
  /** The open update; undefined: none. */
  journal(): Promise<Journal | undefined>;
  writeJournal(journal: Journal): Promise<void>;
  removeJournal(): Promise<void>;
  /** An update that was taken back after its boot and is not told to the cluster yet; undefined: none. */
  rollback(): Promise<Rollback | undefined>;
  writeRollback(rollback: Rollback): Promise<void>;
  removeRollback(): Promise<void>;
  /** Keeps a state so that it survives a crash. */
  store(state: PathState): Promise<StoredState>;
  load(state: StoredState): Promise<PathState>;
  /** Removes what writes left here that were cut short. With the host's lock held, under which all of this is written. */
  removeUnfinished(): Promise<void>;
  /** Forgets contents that neither the journal nor the originals nor the certificates name. */
  collectGarbage(): Promise<void>;
}

const sha256 = (contents: Buffer): string => createHash('sha256').update(contents).digest('hex');

export function openStateStore(root: string): StateStore {
  const at = (path: string) => join(root, path);
  const blob = (hash: string) => join(root, BLOB_FOLDER, hash);

  async function readJson<T>(path: string): Promise<T | undefined> {
    const text = await readIfThere(at(path));
    if (text === undefined) return undefined;
    try {
      return JSON.parse(text) as T;
    } catch (cause) {
      throw new Error(
        `${path}: is not JSON; it was damaged by something else than Drydock: restore it or reinstall the node`,
        {
          cause,
        },
      );
    }
  }

  async function blobsInUse(): Promise<Set<string>> {
    const records = [JOURNAL_FILE, ORIGINALS_FILE, CERTIFICATES_FILE];
    const texts = await Promise.all(records.map((path) => readIfThere(at(path))));
    return new Set(
      texts.flatMap((text) => [...(text ?? '').matchAll(/"blob":"([0-9a-f]{64})"/g)].map(([, hash]) => hash ?? '')),
    );
  }

  return {
    currentConfig: () => readJson<MachineConfig>(CURRENT_CONFIG_FILE),
    originals: async () => (await readJson<Originals>(ORIGINALS_FILE)) ?? { paths: {}, units: {} },
    writeOriginals: (originals) => writeDurably(at(ORIGINALS_FILE), JSON.stringify(originals)),
    certificates: async () => (await readJson<CertificateRecord>(CERTIFICATES_FILE)) ?? { files: {}, folders: [] },
    writeCertificates: (record) => writeDurably(at(CERTIFICATES_FILE), JSON.stringify(record)),
    journal: () => readJson<Journal>(JOURNAL_FILE),
    writeJournal: (journal) => writeDurably(at(JOURNAL_FILE), JSON.stringify(journal)),
    removeJournal: () => rm(at(JOURNAL_FILE), { force: true }),
    rollback: () => readJson<Rollback>(ROLLBACK_FILE),
    writeRollback: (rollback) => writeDurably(at(ROLLBACK_FILE), JSON.stringify(rollback)),
    removeRollback: () => rm(at(ROLLBACK_FILE), { force: true }),
    async store(state) {
      if (state.kind !== 'file') return state;
      const { contents, ...rest } = state;
      const hash = sha256(contents);
      if ((await readIfThere(blob(hash))) === undefined) await writeDurably(blob(hash), contents);
      return { ...rest, blob: hash };
    },
    async load(state) {
      if (state.kind !== 'file') return state;
      const { blob: hash, ...rest } = state;
      const contents = await readFile(blob(hash));
      if (sha256(contents) !== hash) throw new Error(`${BLOB_FOLDER}/${hash}: the kept copy of a file is damaged`);
      return { ...rest, contents };
    },
    async removeUnfinished() {
      for (const path of RECORDS) await removeUnfinished(at(path));
    },
    async collectGarbage() {
      const used = await blobsInUse();
      for (const name of await namesIn(join(root, BLOB_FOLDER))) {
        if (!used.has(name)) await rm(blob(name), { force: true });
      }
    },
  };
}
