import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import type { Artifact } from '../machine-config/first-boot/compose.js';

/** The package of the node worker, as a file that is not changed while the server runs. */
export interface ServedPackage extends Artifact {
  readonly file: string;
  readonly bytes: number;
}

/** @throws when it cannot be read. */
export async function readNodePackage(file: string): Promise<ServedPackage> {
  const [sha256, sha512] = [createHash('sha256'), createHash('sha512')];
  try {
    for await (const piece of createReadStream(file)) {
      sha256.update(piece as Buffer);
      sha512.update(piece as Buffer);
    }
    return { file, bytes: (await stat(file)).size, sha256: sha256.digest('hex'), sha512: sha512.digest('hex') };
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`the package of the node worker, ${file}, cannot be read: ${why}; set DRYDOCK_NODE_PACKAGE`, {
      cause,
    });
  }
}
