import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { ContentError, fileContents, MAX_UNPACKED_BYTES } from '../../../machine-config/ignition/contents.js';

const packed = (bytes: Uint8Array) => `data:;base64,${Buffer.from(bytes).toString('base64')}`;
const sha256 = (text: string) => `sha256-${createHash('sha256').update(text).digest('hex')}`;
const text = (file: Parameters<typeof fileContents>[0]) => Buffer.from(fileContents(file)).toString('utf8');

describe('the contents of a file', () => {
  it('are unpacked after decoding', () => {
    const source = 'data:;base64,H4sIAAAAAAACA0vkAgAHoerdAgAAAA==';
    expect(text({ path: '/a', contents: { source, compression: 'gzip' } })).toBe('a\n');
  });

  it('stay packed where compression is not said', () => {
    const source = packed(gzipSync('a'));
    expect(fileContents({ path: '/a', contents: { source, compression: '' } })).toEqual(new Uint8Array(gzipSync('a')));
  });

  it.each([{ path: '/a' }, { path: '/a', contents: {} }])('are empty where none are given: %j', (file) => {
    expect(fileContents(file)).toHaveLength(0);
  });

  it('must be gzip where compression says so', () => {
    expect(() => text({ path: '/a', contents: { source: 'data:,plain', compression: 'gzip' } })).toThrow(
      new ContentError(
        '/a: contents.source is not gzip data although compression says gzip; pack the file with gzip or remove compression',
      ),
    );
  });

  it('may not unpack to more than the limit', () => {
    const bomb = packed(gzipSync(Buffer.alloc(MAX_UNPACKED_BYTES + 1)));
    expect(() => text({ path: '/a', contents: { source: bomb, compression: 'gzip' } })).toThrow(/more than 64 MiB/);
  });

  it('must have the hash that is given, of the unpacked bytes', () => {
    const source = packed(gzipSync('hello'));
    const verified = (hash: string) =>
      text({ path: '/a', contents: { source, compression: 'gzip', verification: { hash } } });
    expect(verified(sha256('hello'))).toBe('hello');
    expect(() => verified(sha256('other'))).toThrow(/does not have the hash/);
  });
});
