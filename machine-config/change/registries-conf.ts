/**
 * Reads as much of a containers registries.conf (version 2, TOML) as it takes to tell whether a change of it can make
 * images come from elsewhere: the search list and the tables [[registry]] and [[registry.mirror]] with values that are
 * strings, booleans and lists of strings on one line. Anything else is not understood, and then nobody may call the
 * change harmless.
 */
type Value = string | boolean | readonly string[];
type Table = ReadonlyMap<string, Value>;

interface Registry {
  readonly table: Map<string, Value>;
  readonly mirrors: Map<string, Value>[];
}
interface RegistriesConf {
  readonly top: Map<string, Value>;
  readonly registries: Registry[];
}

const ASSIGNMENT = /^([A-Za-z0-9_-]+)\s*=\s*(.+)$/u;
const STRING = String.raw`"[^"\\]*"|'[^']*'`;
const ONE_STRING = new RegExp(`^(?:${STRING})$`, 'u');
const STRING_LIST = new RegExp(String.raw`^\[\s*(?:(?:${STRING})\s*(?:,\s*(?:${STRING})\s*)*,?\s*)?\]$`, 'u');
const COMMENT = new RegExp(String.raw`^((?:${STRING}|[^"'#])*)#.*$`, 'u');

function readValue(text: string): Value | undefined {
  if (text === 'true' || text === 'false') return text === 'true';
  if (ONE_STRING.test(text)) return text.slice(1, -1);
  if (!STRING_LIST.test(text)) return undefined;
  return (text.match(new RegExp(STRING, 'gu')) ?? []).map((entry) => entry.slice(1, -1));
}

function parse(text: string): RegistriesConf | undefined {
  const conf: RegistriesConf = { top: new Map(), registries: [] };
  let table = conf.top;
  for (const line of text.split(/\r?\n/u)) {
    const content = line.replace(COMMENT, '$1').trim();
    if (content === '') continue;
    if (content === '[[registry]]') {
      table = new Map();
      conf.registries.push({ table, mirrors: [] });
      continue;
    }
    if (content === '[[registry.mirror]]') {
      const registry = conf.registries.at(-1);
      if (registry === undefined) return undefined;
      table = new Map();
      registry.mirrors.push(table);
      continue;
    }
    const [, key, written] = ASSIGNMENT.exec(content) ?? [];
    const value = written === undefined ? undefined : readValue(written);
    if (key === undefined || value === undefined || table.has(key)) return undefined;
    table.set(key, value);
  }
  return conf;
}

const textOf = (table: Table, key: string): string => {
  const value = table.get(key);
  return typeof value === 'string' ? value : '';
};
const isSet = (table: Table, key: string): boolean => table.get(key) === true;
const keyOf = ({ table }: Registry): string => textOf(table, 'prefix') || textOf(table, 'location');
const BY_DIGEST = 'mirror-by-digest-only';
const isDigestOnly = (mirror: Table): boolean => textOf(mirror, 'pull-from-mirror') === 'digest-only';

/** What else a registry or mirror says must stay as it is. */
function sameBut(a: Table, b: Table, ignored: readonly string[]): boolean {
  const rest = (table: Table) =>
    JSON.stringify([...table].filter(([key]) => !ignored.includes(key)).sort(([x], [y]) => (x < y ? -1 : 1)));
  return rest(a) === rest(b);
}

/** Mirrors that serve by digest only, and nothing blocked, sent elsewhere or left unverified. */
function isNewRegistryHarmless({ table, mirrors }: Registry): boolean {
  const redirects = textOf(table, 'prefix') !== '' && textOf(table, 'prefix') !== textOf(table, 'location');
  if (redirects || isSet(table, 'blocked') || isSet(table, 'insecure')) return false;
  const allByDigest = isSet(table, BY_DIGEST);
  return mirrors.length === 0 ? allByDigest : allByDigest || mirrors.every(isDigestOnly);
}

function isMirrorChangeHarmless(old: Table, next: Table): boolean {
  return sameBut(old, next, []) || (sameBut(old, next, ['pull-from-mirror']) && isDigestOnly(next));
}

function isRegistryChangeHarmless(old: Registry, next: Registry): boolean {
  const widened = isSet(old.table, BY_DIGEST) && !isSet(next.table, BY_DIGEST);
  if (widened || !sameBut(old.table, next.table, [BY_DIGEST])) return false;
  const find = (registry: Registry, location: string) =>
    registry.mirrors.find((mirror) => textOf(mirror, 'location') === location);
  if (old.mirrors.some((mirror) => find(next, textOf(mirror, 'location')) === undefined)) return false;
  return next.mirrors.every((mirror) => {
    const before = find(old, textOf(mirror, 'location'));
    if (before === undefined) return isDigestOnly(mirror) || isSet(next.table, BY_DIGEST);
    return isMirrorChangeHarmless(before, mirror);
  });
}

function onlyAppended(old: Value | undefined, next: Value | undefined): boolean {
  const [before, after] = [old ?? [], next ?? []];
  return Array.isArray(before) && Array.isArray(after) && before.every((entry, index) => entry === after[index]);
}

/**
 * Whether running pods cannot notice the change: search registries are only appended, nothing is taken away, blocked or
 * redirected, and whatever is added can only serve images by digest, which are the same from anywhere. Undefined texts
 * are a missing file. False where the file has anything that is not understood.
 */
export function isRegistriesChangeHarmless(old: string | undefined, next: string | undefined): boolean {
  const [a, b] = [parse(old ?? ''), parse(next ?? '')];
  if (a === undefined || b === undefined) return false;
  const search = 'unqualified-search-registries';
  if (!onlyAppended(a.top.get(search), b.top.get(search)) || !sameBut(a.top, b.top, [search])) return false;
  const find = (conf: RegistriesConf, key: string) => conf.registries.filter((registry) => keyOf(registry) === key);
  if (a.registries.some((registry) => find(b, keyOf(registry)).length !== 1)) return false;
  return b.registries.every((registry) => {
    const [before, ...more] = find(a, keyOf(registry));
    if (before === undefined) return isNewRegistryHarmless(registry);
    return more.length === 0 && isRegistryChangeHarmless(before, registry);
  });
}
