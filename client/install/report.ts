export type InstallAction = 'created' | 'updated' | 'unchanged';

/** One line of the report. */
export interface InstalledObject {
  readonly kind: string;
  readonly name: string;
  readonly action: InstallAction;
}

/** What install did, in the order in which it did it; fit for a table and for JSON. */
export interface InstallResult {
  readonly flavour: string;
  /** Whether anything was created or updated. */
  readonly changed: boolean;
  readonly objects: readonly InstalledObject[];
  /** Sentences for the person who ran it: what was decided, and what to do next. */
  readonly notes: readonly string[];
}
