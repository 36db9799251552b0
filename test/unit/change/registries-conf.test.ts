import { describe, expect, it } from 'vitest';
import { isRegistriesChangeHarmless } from '../../../machine-config/change/registries-conf.js';

const search = (...names: string[]) =>
  `unqualified-search-registries = [${names.map((name) => `"${name}"`).join(', ')}]\n`;
const registry = (fields: string, ...mirrors: string[]) =>
  `[[registry]]\n${fields}\n${mirrors.map((mirror) => `  [[registry.mirror]]\n  ${mirror}\n`).join('')}`;
const A = 'location = "a.example/x"';
const MIRROR = 'location = "m.example"';
const BY_DIGEST = `${MIRROR}\npull-from-mirror = "digest-only"`;

describe('isRegistriesChangeHarmless', () => {
  it.each<[string, string | undefined, string | undefined]>([
    ['nothing changes', search('a'), search('a')],
    ['only comments and blanks change', search('a'), `# x\n\nunqualified-search-registries=['a'] # "y"\n`],
    ['a search registry is appended', search('a'), search('a', 'b')],
    ['a registry with mirrors by digest comes', undefined, registry(`prefix = ""\n${A}`, BY_DIGEST)],
    ['a registry comes that has all its mirrors by digest', '', registry(`${A}\nmirror-by-digest-only = true`, MIRROR)],
    ['a mirror by digest comes', registry(A, BY_DIGEST), registry(A, BY_DIGEST, BY_DIGEST.replace('m.', 'n.'))],
    ['a mirror is narrowed to digests', registry(A, MIRROR), registry(A, BY_DIGEST)],
    ['a registry is narrowed to digests', registry(A, MIRROR), registry(`${A}\nmirror-by-digest-only = true`, MIRROR)],
  ])('is true when %s', (_, old, next) => {
    expect(isRegistriesChangeHarmless(old, next)).toBe(true);
  });

  it.each<[string, string | undefined, string | undefined]>([
    ['a search registry is put first', search('a'), search('b', 'a')],
    ['a search registry goes', search('a', 'b'), search('a')],
    ['the file goes', registry(A, BY_DIGEST), undefined],
    ['a registry with a mirror for tags comes', '', registry(A, MIRROR)],
    ['a registry comes that sends requests elsewhere', '', registry(`prefix = "b.example"\n${A}`, BY_DIGEST)],
    ['a registry is blocked', registry(A), registry(`${A}\nblocked = true`)],
    ['a blocked registry comes', '', registry(`${A}\nblocked = true`, BY_DIGEST)],
    ['a registry is no longer verified', registry(A), registry(`${A}\ninsecure = true`)],
    ['a mirror goes', registry(A, BY_DIGEST), registry(A)],
    ['a mirror for tags comes', registry(A, BY_DIGEST), registry(A, BY_DIGEST, 'location = "n.example"')],
    ['a mirror is opened to tags', registry(A, BY_DIGEST), registry(A, MIRROR)],
    ['a registry is opened to tags', registry(`${A}\nmirror-by-digest-only = true`, MIRROR), registry(A, MIRROR)],
    ['a registry is listed twice', registry(A, BY_DIGEST), registry(A, BY_DIGEST) + registry(A, MIRROR)],
    ['a short-name table comes, which is not understood', '', '[aliases]\n"x" = "y"\n'],
    ['it is no TOML', '', 'x'],
    ['a mirror comes before any registry', '', '[[registry.mirror]]\nlocation = "m"\n'],
    ['another setting changes', '', 'short-name-mode = "permissive"\n'],
  ])('is false when %s', (_, old, next) => {
    expect(isRegistriesChangeHarmless(old, next)).toBe(false);
  });
});
