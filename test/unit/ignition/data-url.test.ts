import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeDataUrl, encodeDataUrl } from '../../../machine-config/ignition/data-url.js';

const bytesOf = (url: string) => {
  const decoded = decodeDataUrl(url);
  return decoded.ok ? [...decoded.bytes] : decoded.error;
};
const textOf = (url: string) => {
  const decoded = decodeDataUrl(url);
  return decoded.ok ? Buffer.from(decoded.bytes).toString('utf8') : decoded.error;
};

describe('a percent-encoded data URL', () => {
  it.each([
    ['data:,%FF%00%0A', [0xff, 0x00, 0x0a]],
    ['data:,', []],
    ['data:text/plain;charset=utf8,%c3%a4', [0xc3, 0xa4]],
  ])('%s is decoded byte by byte', (url, bytes) => {
    expect(bytesOf(url)).toEqual(bytes);
  });

  it.each([
    ['data:,100%25+1', '100%+1'],
    ['data:,a%20%0d%0Ab ', 'a \r\nb '],
    ['data:,a,b;base64,c', 'a,b;base64,c'],
    ['data:text/plain;x="a,b",c', 'c'],
    ['data:,#!?&', '#!?&'],
  ])('%s is %j', (url, text) => {
    expect(textOf(url)).toBe(text);
  });

  it.each(['data:,a%2', 'data:,%', 'data:,%zz', 'data:,50% off'])('%s is refused: a lone percent sign', (url) => {
    expect(textOf(url)).toMatch(/% without two hexadecimal digits.*write %25/);
  });

  it('with a letter beyond ASCII is refused', () => {
    expect(textOf('data:,ä')).toMatch(/non-ASCII character at position 6/);
  });
});

describe('a base64 data URL', () => {
  it.each([
    ['data:;base64,aGk=', 'hi'],
    ['data:text/plain;charset=utf8;base64,eA==', 'x'],
    ['data:;base64,', ''],
  ])('%s is %j', (url, text) => {
    expect(textOf(url)).toBe(text);
  });

  it.each([
    ['an unexpanded shell command', 'data:;base64,$(cat /tmp/crio.conf | base64 -w0)', /character "\$" at position 13/],
    ['a placeholder', 'data:;base64,BASE64_ENCODED_PEM_FILE', /character "_" at position 19/],
    ['missing padding', 'data:;base64,YQ', /2 characters, must be a multiple of 4/],
    ['padding in the middle', 'data:;base64,YQ==YQ==', /character "="/],
    ['one digit and padding', 'data:;base64,A===', /character "="/],
    ['a line break', 'data:;base64,YWJj\nYWJj', /line break or control character at position 17/],
  ])('with %s is refused', (_, url, error) => {
    expect(textOf(url)).toMatch(error);
  });

  it('never shows the content in its error', () => {
    expect(textOf('data:;base64,c2VjcmV0LXRva2Vu!')).not.toContain('c2VjcmV0');
  });
});

describe('what is no data URL', () => {
  it.each([
    ['PLACEHOLDER', /no URL/],
    ['', /empty.*data:,/],
    ['https://example.com/file', /remote content \(https:\)/],
    ['s3://bucket/key', /remote content \(s3:\)/],
    ['DATA:,x', /lower case/],
    ['data:text/plain', /without a comma/],
  ])('%j is refused', (source, error) => {
    expect(textOf(source)).toMatch(error);
  });
});

it('any bytes survive both encodings', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
      const hex = [...bytes].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('');
      expect(bytesOf(`data:,${hex}`)).toEqual([...bytes]);
      expect(bytesOf(`data:;base64,${Buffer.from(bytes).toString('base64')}`)).toEqual([...bytes]);
      const url = encodeDataUrl(bytes);
      expect(bytesOf(url)).toEqual([...bytes]);
      expect(url.length).toBeLessThanOrEqual(`data:;base64,${Buffer.from(bytes).toString('base64')}`.length);
    }),
  );
});
