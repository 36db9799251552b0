import { createHash } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import { decodeDataUrl, type Decoded } from './data-url.js';

/** A file may be no larger than this once it is unpacked, in bytes; what is larger is taken for a decompression bomb. */
export const MAX_UNPACKED_BYTES = 64 * 1024 * 1024;

/** Where bytes come from: `contents` of a file, or any other resource of an Ignition config. */
export interface Resource {
  readonly source?: string;
  readonly compression?: string;
  readonly verification?: { readonly hash?: string };
}

/** `contents` of a file cannot be decoded. Never for a config that was rendered here. */
export class ContentError extends Error {
  override readonly name = 'ContentError';
}

const EMPTY: Decoded = { ok: true, bytes: new Uint8Array(0) };

/** Bytes of a resource: data URL, then gzip, then the hash if one is given. No source is no bytes, not an error. */
export function decodeResource(resource: Resource | undefined): Decoded {
  if (resource?.source === undefined) return EMPTY;
  const packed = decodeDataUrl(resource.source);
  if (!packed.ok) return packed;
  const bytes = resource.compression === 'gzip' ? gunzip(packed.bytes) : packed;
  if (!bytes.ok) return bytes;
  const hash = resource.verification?.hash;
  return hash === undefined || hashMatches(bytes.bytes, hash)
    ? bytes
    : {
        ok: false,
        error:
          'does not have the hash that verification.hash says (of the bytes after unpacking); correct one of the two',
      };
}

/**
 * What a file holds on disk. The one decoder for writing, comparing and looking for drift. A file without contents
 * is an empty file. Throws ContentError.
 */
export function fileContents(file: { readonly path: string; readonly contents?: Resource }): Uint8Array {
  const decoded = decodeResource(file.contents);
  if (!decoded.ok) throw new ContentError(`${file.path}: contents.source ${decoded.error}`);
  return decoded.bytes;
}

function gunzip(packed: Uint8Array): Decoded {
  try {
    const bytes = gunzipSync(packed, { maxOutputLength: MAX_UNPACKED_BYTES });
    return { ok: true, bytes: new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length) };
  } catch (error) {
    const tooLarge = error instanceof RangeError;
    return {
      ok: false,
      error: tooLarge
        ? `unpacks to more than ${MAX_UNPACKED_BYTES / 1024 / 1024} MiB, the limit for one file`
        : 'is not gzip data although compression says gzip; pack the file with gzip or remove compression',
    };
  }
}

function hashMatches(bytes: Uint8Array, hash: string): boolean {
  const [algorithm = '', digest = ''] = hash.split('-', 2);
  return createHash(algorithm).update(bytes).digest('hex') === digest.toLowerCase();
}
