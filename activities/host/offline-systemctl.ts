import { mkdir, readFile, rmdir } from 'node:fs/promises';
import { basename, dirname, join, posix } from 'node:path';
import { isErrno } from './durable.js';
import type { Host, Systemctl } from './host.js';
import { ABSENT, MASK_TARGET, putState, readState } from './path-state.js';
import { resolveInRoot } from './root-path.js';
import { enablementLinks, findUnitFile, UNIT_FOLDER, type EnablementLink } from './units.js';

/** What a unit file asks for when it is enabled. */
export interface InstallSection {
  readonly links: readonly { readonly folder: string }[];
  readonly aliases: readonly string[];
  /** Units that are enabled and disabled with it. */
  readonly also: readonly string[];
}

const FOLDERS: Readonly<Record<string, string>> = { WantedBy: 'wants', RequiredBy: 'requires', UpheldBy: 'upholds' };

/** Reads [Install] as systemd does: an empty value forgets the earlier ones of that key. */
export function parseInstallSection(text: string): InstallSection {
  const values = new Map<string, string[]>();
  let section = '';
  for (const line of text
    .replace(/\\\r?\n/g, ' ')
    .split(/\r?\n/)
    .map((raw) => raw.trim())) {
    if (line === '' || /^[#;]/.test(line)) continue;
    const header = /^\[(.+)\]$/.exec(line);
    if (header !== null) section = header[1] ?? '';
    const [key = '', value = ''] = line.split(/=(.*)/s).map((part) => part.trim());
    if (section !== 'Install' || header !== null) continue;
    values.set(key, value === '' ? [] : [...(values.get(key) ?? []), ...value.split(/\s+/)]);
  }
  return {
    links: Object.entries(FOLDERS).flatMap(([key, folder]) =>
      (values.get(key) ?? []).map((target) => ({ folder: `${UNIT_FOLDER}/${target}.${folder}` })),
    ),
    aliases: values.get('Alias') ?? [],
    also: values.get('Also') ?? [],
  };
}

/**
 * `systemctl` for a root folder in which no systemd runs: enabling and disabling are only links, which it makes and
 * removes itself.
 */
export function offlineSystemctl(
  root: string,
  ownerOnDisk: Host['ownerOnDisk'],
): Pick<Systemctl, 'enablement' | 'enable' | 'disable' | 'reload'> {
  const owner = ownerOnDisk({ uid: 0, gid: 0 });

  async function wanted(unit: string): Promise<{ links: EnablementLink[]; also: readonly string[] } | undefined> {
    const file = await findUnitFile(root, unit);
    if (file === undefined) return undefined;
    const state = await readState(join(root, file));
    if (state.kind === 'link' && state.target === MASK_TARGET) return undefined;
    const body =
      state.kind === 'link' ? await resolveInRoot(root, posix.resolve(posix.dirname(file), state.target)) : file;
    const install = parseInstallSection(await readFile(join(root, body), 'utf8'));
    const links = [
      ...install.links.map(({ folder }) => ({ path: `${folder}/${unit}`, target: file })),
      ...install.aliases.map((alias) => ({ path: `${UNIT_FOLDER}/${alias}`, target: file })),
    ];
    return { links, also: install.also };
  }

  async function enablement(unit: string): Promise<string> {
    const file = await findUnitFile(root, unit);
    if (file === undefined) return 'not-found';
    const state = await readState(join(root, file));
    if (state.kind === 'link' && state.target === MASK_TARGET) return 'masked';
    if ((await enablementLinks(root, unit)).length > 0) return 'enabled';
    const install = await wanted(unit);
    return install === undefined || (install.links.length === 0 && install.also.length === 0) ? 'static' : 'disabled';
  }

  async function enable(units: readonly string[], seen = new Set<string>()): Promise<void> {
    for (const unit of units.filter((name) => !seen.has(name))) {
      seen.add(unit);
      const install = await wanted(unit);
      if (install === undefined) throw new Error(`${unit}: cannot be enabled: it does not exist, or is masked`);
      for (const link of install.links) {
        await mkdir(dirname(join(root, link.path)), { recursive: true, mode: 0o755 });
        await putState(join(root, link.path), { kind: 'link', target: link.target, ...owner });
      }
      await enable(install.also, seen);
    }
  }

  async function disable(units: readonly string[], seen = new Set<string>()): Promise<void> {
    for (const unit of units.filter((name) => !seen.has(name))) {
      seen.add(unit);
      const also = (await wanted(unit))?.also ?? [];
      for (const link of await enablementLinks(root, unit)) {
        await putState(join(root, link.path), ABSENT);
        await removeIfEmpty(dirname(join(root, link.path)));
      }
      await disable(also, seen);
    }
  }

  return {
    enablement,
    enable: (units) => enable(units),
    disable: (units) => disable(units),
    reload: () => Promise.resolve(),
  };
}

/** systemd removes a `*.wants` folder with its last link, too. */
export async function removeIfEmpty(folder: string): Promise<void> {
  if (basename(folder) === basename(UNIT_FOLDER)) return;
  try {
    await rmdir(folder);
  } catch (error) {
    if (!isErrno(error, 'ENOTEMPTY', 'EEXIST', 'ENOENT')) throw error;
  }
}
