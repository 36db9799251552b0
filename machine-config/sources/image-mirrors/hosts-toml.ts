import { stringify, type TomlTable } from 'smol-toml';
import type { IgnitionFile } from '../../ignition/config.js';
import { generatedFile } from '../generated-config.js';
import type { SourceProblem } from '../source.js';
import type { Mirror, MirroredSource } from './merge-mirrors.js';

/** containerd looks here where its `config_path` says so; changes need no restart. */
export const CERTS_DIRECTORY = '/etc/containerd/certs.d';

/**
 * The mirrors as containerd reads them, a file for each registry, or why it cannot have them: it knows mirrors of whole
 * registries only.
 */
export function hostsFiles(sources: readonly MirroredSource[]): IgnitionFile[] | SourceProblem {
  const problem = sources.map(whyNot).find((message) => message !== undefined);
  if (problem !== undefined) return { reason: 'NotInContainerd', message: problem };
  return sources.map((source) =>
    generatedFile(`${CERTS_DIRECTORY}/${source.source}/hosts.toml`, stringify(hostsTable(source))),
  );
}

function whyNot({ source, mirrors, never }: MirroredSource): string | undefined {
  if (source.startsWith('*.')) {
    return `containerd has no mirrors for ${source}, only for one registry each; name the registries`;
  }
  if (source.includes('/')) {
    const [registry] = source.split('/', 1);
    return `containerd has no mirrors for the repository ${source}, only for a whole registry; write source: ${registry ?? ''}`;
  }
  if (never && mirrors.length === 0) {
    return `containerd cannot block ${source} without a mirror in its place; add one, or leave out NeverContactSource`;
  }
  return undefined;
}

function hostsTable({ mirrors, never }: MirroredSource): TomlTable {
  // The registry itself comes last unless another server is named in its place.
  const instead = never ? mirrors.at(-1) : undefined;
  const hosts = instead === undefined ? mirrors : mirrors.slice(0, -1);
  return {
    ...(instead === undefined ? {} : { server: urlOf(instead), ...settingsOf(instead) }),
    ...(hosts.length === 0
      ? {}
      : { host: Object.fromEntries(hosts.map((mirror) => [urlOf(mirror), settingsOf(mirror)])) }),
  };
}

/** A repository as a mirror: all that is asked for is below its path. */
function urlOf({ location }: Mirror): string {
  const [registry = '', ...path] = location.split('/');
  return path.length === 0 ? `https://${registry}` : `https://${registry}/v2/${path.join('/')}`;
}

/**
 * `resolve` is to be asked what a tag means. There is no way to keep digests from a mirror of tags, and no need: their
 * images are the same from anywhere.
 */
function settingsOf(mirror: Mirror): TomlTable {
  return {
    capabilities: mirror.for === 'digest' ? ['pull'] : ['pull', 'resolve'],
    ...(mirror.location.includes('/') ? { override_path: true } : {}),
  };
}
