import type { IgnitionConfig } from './config.js';
import { isList, isRecord } from './findings.js';

type Fields = Readonly<Record<string, unknown>>;

/**
 * How a list or an object is merged. `keyed`: entries with the same key become one, field by field, at the place of the
 * first. `union`: each value once. `append`: one after the other. `whole`: the later one replaces the earlier one.
 */
type Rule =
  | { readonly how: 'keyed'; readonly key: (entry: Fields) => string; readonly fields: Rules }
  | { readonly how: 'fields'; readonly fields: Rules }
  | { readonly how: 'union' | 'append' | 'whole' };
type Rules = Readonly<Record<string, Rule>>;

const union: Rule = { how: 'union' };
const append: Rule = { how: 'append' };
const whole: Rule = { how: 'whole' };
const fields = (rules: Rules): Rule => ({ how: 'fields', fields: rules });
const by = (name: string, rules: Rules = {}): Rule => ({
  how: 'keyed',
  key: (entry) => JSON.stringify(entry[name]),
  fields: rules,
});

/** A resource (source, compression, hash) is one thing, and so is an owner (id or name): never mixed from two configs. */
const NODE: Rules = { contents: whole, append, user: whole, group: whole };

const RULES: Rules = {
  ignition: fields({
    config: fields({ merge: by('source'), replace: whole }),
    proxy: fields({ noProxy: union }),
    security: fields({ tls: fields({ certificateAuthorities: by('source', { verification: whole }) }) }),
    timeouts: fields({}),
  }),
  kernelArguments: fields({ shouldExist: union, shouldNotExist: union }),
  passwd: fields({
    users: by('name', { sshAuthorizedKeys: union, groups: union }),
    groups: by('name'),
  }),
  storage: fields({
    disks: by('device', {
      partitions: {
        how: 'keyed',
        key: ({ number, label }) =>
          number === undefined || number === 0 ? JSON.stringify(label) : `#${JSON.stringify(number)}`,
        fields: {},
      },
    }),
    raid: by('name', { devices: union, options: append }),
    luks: by('name', {
      keyFile: whole,
      options: append,
      openOptions: union,
      clevis: fields({ tang: by('url'), custom: fields({}) }),
      cex: fields({}),
    }),
    filesystems: by('device', { options: append, mountOptions: append }),
    files: by('path', NODE),
    directories: by('path', NODE),
    links: by('path', NODE),
  }),
  systemd: fields({ units: by('name', { dropins: by('name') }) }),
};

/** Lists that share one space of keys: what a later config has in one of them goes from the others of earlier ones. */
const NODE_LISTS = ['files', 'directories', 'links'] as const;
const ARGUMENT_LISTS = ['shouldExist', 'shouldNotExist'] as const;

/**
 * Merges a later config over an earlier one, as Ignition merges configs: entries are known by path, name or device,
 * earlier entries keep their place, fields that the later config does not set stay. Files, directories and links share the
 * paths. Differs from Ignition in that contents and owners are replaced as a whole. Associative as long as no path changes
 * its kind and no kernel argument its sign.
 */
export function mergeConfigs(earlier: IgnitionConfig, later: IgnitionConfig): IgnitionConfig {
  return mergeFields(withoutReplaced(earlier, later), later, RULES) as IgnitionConfig;
}

function withoutReplaced(earlier: IgnitionConfig, later: IgnitionConfig): IgnitionConfig {
  const result: IgnitionConfig = { ...earlier };
  if (earlier.storage !== undefined && later.storage !== undefined) {
    const paths = (list: (typeof NODE_LISTS)[number]) => (later.storage?.[list] ?? []).map(({ path }) => path);
    result.storage = withoutKeys(earlier.storage, NODE_LISTS, paths, ({ path }) => path);
  }
  if (earlier.kernelArguments !== undefined && later.kernelArguments !== undefined) {
    const values = (list: (typeof ARGUMENT_LISTS)[number]) => later.kernelArguments?.[list] ?? [];
    result.kernelArguments = withoutKeys(earlier.kernelArguments, ARGUMENT_LISTS, values, (argument) => argument);
  }
  return result;
}

/** Drops from each list of `section` the entries whose key the later config has in another one of the lists. */
function withoutKeys<K extends string, T, S extends Readonly<Partial<Record<K, readonly T[]>>>>(
  section: S,
  lists: readonly K[],
  laterKeys: (list: K) => readonly string[],
  key: (entry: NonNullable<S[K]>[number]) => string,
): S {
  const result: Record<string, unknown> = { ...section };
  for (const list of lists) {
    const entries: readonly NonNullable<S[K]>[number][] | undefined = section[list];
    if (entries === undefined) continue;
    const elsewhere = new Set(lists.filter((other) => other !== list).flatMap((other) => laterKeys(other)));
    const kept = entries.filter((entry) => !elsewhere.has(key(entry)));
    result[list] = kept.length === 0 ? undefined : kept;
  }
  return Object.fromEntries(Object.entries(result).filter(([, value]) => value !== undefined)) as S;
}

function mergeFields(earlier: Fields, later: Fields, rules: Rules): Fields {
  const result: Record<string, unknown> = { ...earlier };
  for (const [name, value] of Object.entries(later)) {
    result[name] = mergeValue(result[name], value, rules[name] ?? whole);
  }
  return result;
}

function mergeValue(earlier: unknown, later: unknown, rule: Rule): unknown {
  if (earlier === undefined) return later;
  if (rule.how === 'fields' && isRecord(earlier) && isRecord(later)) return mergeFields(earlier, later, rule.fields);
  if (!isList(earlier) || !isList(later)) return later;
  if (rule.how === 'keyed') return mergeKeyed(earlier, later, rule.key, rule.fields);
  if (rule.how === 'union') return [...new Set([...earlier, ...later])];
  return rule.how === 'append' ? [...earlier, ...later] : later;
}

function mergeKeyed(
  earlier: readonly unknown[],
  later: readonly unknown[],
  key: (entry: Fields) => string,
  rules: Rules,
): unknown[] {
  const entries = new Map<string, Fields>();
  for (const entry of [...earlier, ...later]) {
    if (!isRecord(entry)) continue;
    const name = key(entry);
    const present = entries.get(name);
    entries.set(name, present === undefined ? entry : mergeFields(present, entry, rules));
  }
  return [...entries.values()];
}
