import { join } from 'node:path';
import type { Host } from './host.js';
import { putState, type PathState } from './path-state.js';

/** Brings a path of the host, within its root, to a state; see putState. What is new there gets its security label. */
export function putPath(host: Host, path: string, state: PathState): Promise<void> {
  return putState(join(host.root, path), state, (written) => host.label(written, path));
}
