import type { StoredState } from './state-store.js';

/** A file that follows a Secret or ConfigMap, as this host remembers it. */
export interface KeptCertificate {
  /** The path as the ControllerConfig has it; it may lead here through links. */
  readonly declared: string;
  /** What was there before, which comes back when no entry names the file any more. */
  readonly original: StoredState;
  /** SHA-256 of what was written last, to tell news from what others did to the file; absent: nothing yet. */
  readonly wrote?: string;
}

/** All of them, by where they lie. */
export interface CertificateRecord {
  readonly files: Readonly<Record<string, KeptCertificate>>;
  /** That were made for them, and go with the last of them. */
  readonly folders: readonly string[];
}
