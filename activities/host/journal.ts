import type { EntryOrigin } from './entry.js';
import type { PartKind } from './file-part.js';
import type { OsState } from './host.js';
import type { StoredState } from './state-store.js';
import type { EnablementLink } from './units.js';

/** What a path was before. */
export interface KeptState {
  readonly path: string;
  readonly before: StoredState;
  /** Only a part of the file was changed: only that is put back, into the file as it is then. */
  readonly part?: PartKind;
}

/** How to get back: the state before, of everything that the update touches. Written before anything is touched. */
export interface UndoRecord {
  readonly changes: readonly KeptState[];
  /** Links of every unit that is enabled or disabled. */
  readonly links: Readonly<Record<string, readonly EnablementLink[]>>;
  /** Present if the update stages others. */
  readonly os?: OsState;
  /** Whether systemd has to read its unit files again; absent in journals of earlier versions: it has. */
  readonly daemonReload?: boolean;
  /** What was begun with services, in order; only in the same boot there is anything to undo about it. */
  readonly services?: readonly BegunService[];
}

/** Something that an update has begun to do to a service, and perhaps done. */
export interface BegunService {
  readonly unit: string;
  readonly action: 'stop' | 'reload' | 'restart';
  /** It ran before. */
  readonly wasActive: boolean;
}

/**
 * The open update of a host. `applying`: the disk may be anything in between, and is brought back before anything else
 * happens. `applied`: the disk is at `target`; what is left is a reboot, or the word that all is well, which removes the
 * journal.
 */
export interface Journal {
  readonly version: 1;
  readonly phase: 'applying' | 'applied';
  readonly target: string;
  /** What the node ran when all was last well. */
  readonly from: string;
  /** The boot in which it is applied. */
  readonly bootId: string;
  readonly needsReboot: boolean;
  /** What `/etc` belonged to then (see OsBackend.deployment); absent in journals of earlier versions. */
  readonly deployment?: string;
  /** The update may have cut the node off: after the reboot, an API server that cannot be reached is a reason to go back. */
  readonly touchesNetwork?: boolean;
  /** ISO 8601. */
  readonly at: string;
  /** When the disk was at the target, ISO 8601; absent in journals of earlier versions. */
  readonly appliedAt?: string;
  readonly filesWritten: number;
  readonly unitsChanged: number;
  readonly undo: UndoRecord;
  /** The update that was applied but not confirmed when this one began; undoing comes back to it. */
  readonly previous?: Journal;
}

/** What is managed on a path besides what a config names. */
export type ChangeOrigin = EntryOrigin | 'enablement' | 'state';

/** An update that was applied, booted, and taken back by the host itself. */
export interface Rollback {
  readonly target: string;
  /** Why, for people. */
  readonly reason: string;
  /** The boot in which it was taken back; the host reboots once out of it. */
  readonly bootId: string;
  /** ISO 8601. */
  readonly at: string;
}
