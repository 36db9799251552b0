import { stringify, type TomlTable, type TomlValue } from 'smol-toml';
import type { IgnitionFile } from '../../ignition/config.js';
import { isList, isRecord } from '../../ignition/findings.js';
import { generatedFile } from '../generated-config.js';
import type { PresentFile } from '../kubelet/present-files.js';
import { readToml, UnreadableTomlError } from '../toml.js';
import type { MirroredSource, PulledBy } from './merge-mirrors.js';

export const REGISTRIES_CONF = '/etc/containers/registries.conf';

const PULL_FROM: Record<PulledBy, string> = { digest: 'digest-only', tag: 'tag-only', any: 'all' };

/**
 * The mirrors as CRI-O reads them. `present` is the file that the pool has already: what it says of other registries,
 * and of how images without a registry are looked for, is kept.
 *
 * @throws UnreadableTomlError
 */
export function registriesConf(sources: readonly MirroredSource[], present: PresentFile | undefined): IgnitionFile {
  const base = present === undefined ? {} : presentSettings(present);
  const tables = sources.map(registryTable);
  const keys = new Set(tables.map(keyOf));
  const others = tablesOf(base['registry']).filter((table) => !keys.has(keyOf(table)));
  return generatedFile(REGISTRIES_CONF, stringify({ ...base, registry: [...others, ...tables] }));
}

/** @throws UnreadableTomlError */
function presentSettings(present: PresentFile): TomlTable {
  const settings = readToml(present, REGISTRIES_CONF);
  if (settings['registries'] === undefined) return settings;
  throw new UnreadableTomlError(
    `${REGISTRIES_CONF} of MachineConfig ${present.machineConfig} is in version 1 of its format, which has no mirrors; write it with [[registry]]`,
  );
}

function tablesOf(value: TomlValue | undefined): TomlTable[] {
  return isList(value) ? value.filter((entry): entry is TomlTable => isRecord(entry)) : [];
}

const textOf = (value: TomlValue | undefined): string => (typeof value === 'string' ? value : '');
/** What a table is for. */
const keyOf = (table: TomlTable): string => textOf(table['prefix']) || textOf(table['location']);

function registryTable({ source, mirrors, never }: MirroredSource): TomlTable {
  return {
    // A wildcard is no place to pull from.
    ...(source.startsWith('*.') ? { prefix: source } : { location: source }),
    ...(never ? { blocked: true } : {}),
    ...(mirrors.length === 0
      ? {}
      : { mirror: mirrors.map((each) => ({ location: each.location, 'pull-from-mirror': PULL_FROM[each.for] })) }),
  };
}
