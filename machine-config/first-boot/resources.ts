import { gzipSync } from 'node:zlib';
import type { IgnitionFile, IgnitionResource } from '../ignition/config.js';

/** Below this, packing does not pay. */
const PACK_FROM_BYTES = 512;

/** The text as it stands in an Ignition document. */
export function resourceOf(text: string): IgnitionResource {
  const bytes = Buffer.from(text);
  const source = (contents: Buffer) => `data:;base64,${contents.toString('base64')}`;
  if (bytes.length < PACK_FROM_BYTES) return { source: source(bytes) };
  return { source: source(gzipSync(bytes)), compression: 'gzip' };
}

export function fileOf(path: string, text: string, mode: number): IgnitionFile {
  return { path, mode, overwrite: true, contents: resourceOf(text) };
}
