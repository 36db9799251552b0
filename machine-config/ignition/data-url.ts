/** Bytes of a data URL, or why it has none; the error is a clause that shows positions, never contents. */
export type Decoded =
  { readonly ok: true; readonly bytes: Uint8Array } | { readonly ok: false; readonly error: string };

const PREFIX = 'data:';

/**
 * Decodes a data URL (RFC 2397) byte by byte. The media type is ignored, `+` is a plus, and what is not exactly
 * right is refused: Node's own base64 and URL decoders skip or rewrite what they do not like, and rubbish would reach the disk.
 */
export function decodeDataUrl(url: string): Decoded {
  if (!url.startsWith(PREFIX)) return failure(describeOtherSource(url));
  const control = findIndex(url, (code) => code < 0x20 || code === 0x7f);
  if (control >= 0) {
    return failure(`has a line break or control character at position ${control}; write the data URL on one line`);
  }
  const comma = commaBeforeData(url);
  if (comma < 0) return failure('is a data URL without a comma before the data; write data:,… or data:;base64,…');
  const data = url.slice(comma + 1);
  return url.slice(PREFIX.length, comma).endsWith(';base64')
    ? decodeBase64(data, comma + 1)
    : decodePercent(data, comma + 1);
}

function failure(error: string): Decoded {
  return { ok: false, error };
}

function describeOtherSource(url: string): string {
  const scheme = /^[A-Za-z][A-Za-z0-9+.-]*(?=:)/.exec(url)?.[0];
  if (url === '') return 'is empty; write "data:," for an empty file';
  if (scheme === undefined) return 'is no URL; write the content as data:,… or data:;base64,…';
  if (scheme.toLowerCase() === 'data') return 'must begin with data: in lower case';
  return `links to remote content (${scheme}:), which a node cannot fetch after first boot; write the content itself as data:;base64,…`;
}

function findIndex(text: string, matches: (code: number) => boolean): number {
  for (let index = 0; index < text.length; index += 1) {
    if (matches(text.charCodeAt(index))) return index;
  }
  return -1;
}

/** A comma inside a quoted parameter of the media type does not end it. */
function commaBeforeData(url: string): number {
  let quoted = false;
  for (let index = PREFIX.length; index < url.length; index += 1) {
    const character = url[index];
    if (character === '"') quoted = !quoted;
    else if (character === ',' && !quoted) return index;
  }
  return url.indexOf(',');
}

function isBase64Code(code: number): boolean {
  return (
    (code >= 0x41 && code <= 0x5a) ||
    (code >= 0x61 && code <= 0x7a) ||
    (code >= 0x30 && code <= 0x39) ||
    code === 0x2b ||
    code === 0x2f
  );
}

function decodeBase64(data: string, offset: number): Decoded {
  const padding = /={0,2}$/.exec(data)?.[0].length ?? 0;
  const digits = data.length - padding;
  const wrong = findIndex(data.slice(0, digits), (code) => !isBase64Code(code));
  if (wrong >= 0) {
    return failure(
      `is not valid base64: character ${JSON.stringify(data[wrong])} at position ${offset + wrong}; encode the file with base64 -w0`,
    );
  }
  if (data.length % 4 !== 0) {
    return failure(
      `is not valid base64: ${data.length} characters, must be a multiple of 4 with = as padding; encode the file with base64 -w0`,
    );
  }
  const bytes = Buffer.from(data, 'base64');
  if (bytes.length !== Math.floor((digits * 3) / 4)) return failure('is not valid base64');
  return { ok: true, bytes: new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length) };
}

function hexDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x61 + 10 : -1;
}

function decodePercent(data: string, offset: number): Decoded {
  const bytes = new Uint8Array(data.length);
  let length = 0;
  for (let index = 0; index < data.length; index += 1) {
    let code = data.charCodeAt(index);
    if (code > 0x7f) {
      return failure(
        `has a non-ASCII character at position ${offset + index}; percent-encode its UTF-8 bytes or use base64`,
      );
    }
    if (code === 0x25) {
      const high = hexDigit(data.charCodeAt(index + 1));
      const low = hexDigit(data.charCodeAt(index + 2));
      if (high < 0 || low < 0) {
        return failure(
          `has a % without two hexadecimal digits at position ${offset + index}; write %25 for a percent sign`,
        );
      }
      code = high * 16 + low;
      index += 2;
    }
    bytes[length] = code;
    length += 1;
  }
  return { ok: true, bytes: bytes.subarray(0, length) };
}

/** A data URL of the bytes: percent-encoded or base64, whichever is shorter. What decodeDataUrl reads back. */
export function encodeDataUrl(bytes: Uint8Array): string {
  const base64 = `;base64,${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64')}`;
  let percent = ',';
  for (const byte of bytes) {
    percent += standsForItself(byte)
      ? String.fromCharCode(byte)
      : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
    if (percent.length > base64.length) return `${PREFIX}${base64}`;
  }
  return `${PREFIX}${percent}`;
}

/** Letters, digits and the signs that RFC 2396 lets stand in every part of a URL. */
function standsForItself(code: number): boolean {
  return /[A-Za-z0-9\-_.!~*'()]/.test(String.fromCharCode(code));
}
