import { gzipSync } from 'node:zlib';
import { encodeDataUrl } from '../ignition/data-url.js';

interface EmbeddedContents {
  readonly source: string;
  readonly compression?: 'gzip' | '';
}

const GZIP_SYSTEM_BYTE = 9;
const UNKNOWN_SYSTEM = 0xff;

/**
 * Contents as they stand in a config: of text with percent signs, base64 and packed base64 the shortest, as Butane
 * chooses. Packed only where that is shorter with the word `gzip` counted. `packs` false: never packed, and nothing said of it.
 */
export function embedContents(bytes: Uint8Array, packs: boolean): EmbeddedContents {
  const plain = encodeDataUrl(bytes);
  if (!packs) return { source: plain };
  const packed = gzipSync(bytes, { level: 9 });
  // Which system packed it would otherwise make the config of one person differ from that of another.
  packed[GZIP_SYSTEM_BYTE] = UNKNOWN_SYSTEM;
  const source = `data:;base64,${packed.toString('base64')}`;
  return source.length + 'gzip'.length < plain.length
    ? { source, compression: 'gzip' }
    : { source: plain, compression: '' };
}
