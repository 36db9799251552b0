import type { StoredState } from './state-store.js';
import type { EnablementLink } from './units.js';

/**
 * What was there before Drydock first managed it, and comes back when no config manages it any more: "absent" is
 * remembered too.
 */
export interface Originals {
  readonly paths: Readonly<Record<string, StoredState>>;
  /** Units that a config enabled or disabled: the links they had. */
  readonly units: Readonly<Record<string, readonly EnablementLink[]>>;
}
