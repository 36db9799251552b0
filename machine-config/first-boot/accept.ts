import semver from 'semver';

/** The versions in which a config is served, oldest first. */
export const SERVED_VERSIONS = ['2.2.0', '3.1.0', '3.2.0', '3.3.0', '3.4.0', '3.5.0'] as const;
export type ServedVersion = (typeof SERVED_VERSIONS)[number];

/** Of a client that does not say which it takes: it is too old to know how. */
const UNSAID: ServedVersion = '2.2.0';
const NEWEST: ServedVersion = '3.5.0';
const SUBTYPE = 'vnd.coreos.ignition+json';

export type Negotiated =
  | { readonly outcome: 'serve'; readonly version: ServedVersion }
  | { readonly outcome: 'refuse'; readonly reason: string };

/**
 * Which version a client of Ignition gets, by its Accept header. The first entry, by preference, that is of Ignition and
 * has a version decides alone: a client that prefers what is not served is told so instead of being given its second
 * choice. A header that says nothing of that kind is the one of an old client.
 */
export function negotiateVersion(accept: string | undefined): Negotiated {
  const asked = byPreference(entriesOf(accept ?? '')).find(
    ({ subtype, version }) => subtype === SUBTYPE && version !== undefined,
  )?.version;
  if (asked === undefined) return { outcome: 'serve', version: UNSAID };
  const { major, minor } = asked;
  if (major === 2 && minor >= 2) return { outcome: 'serve', version: '2.2.0' };
  if (major === 3 && minor >= 1) {
    const same = SERVED_VERSIONS.find((version) => version === `3.${minor}.0`);
    return { outcome: 'serve', version: same ?? NEWEST };
  }
  return {
    outcome: 'refuse',
    reason: `Ignition ${asked.version} is not served; accept one of ${SERVED_VERSIONS.join(', ')}`,
  };
}

interface AcceptEntry {
  readonly subtype: string;
  readonly version: semver.SemVer | undefined;
  readonly quality: number;
}

function entriesOf(header: string): AcceptEntry[] {
  return header.split(',').flatMap((entry) => {
    const [media = '', ...parameters] = entry.split(';').map((part) => part.trim());
    const slash = media.indexOf('/');
    if (slash < 0) return [];
    const values = new Map(parameters.map((parameter) => keyAndValue(parameter)));
    return [
      {
        subtype: media.slice(slash + 1),
        version: fullVersion(values.get('version')),
        quality: qualityOf(values.get('q')),
      },
    ];
  });
}

function keyAndValue(parameter: string): readonly [string, string] {
  const [key = '', ...rest] = parameter.split('=');
  return [key.trim(), rest.join('=').trim()];
}

/** Three numbers and perhaps a pre-release; neither quotes nor a leading v. */
function fullVersion(text: string | undefined): semver.SemVer | undefined {
  if (text === undefined || !/^\d/u.test(text)) return undefined;
  return semver.parse(text) ?? undefined;
}

function qualityOf(text: string | undefined): number {
  const quality = text === undefined || text === '' ? Number.NaN : Number(text);
  return Number.isNaN(quality) ? 1 : quality;
}

/** Entries of equal preference stay in the order in which they were written. */
function byPreference(entries: readonly AcceptEntry[]): AcceptEntry[] {
  return entries.toSorted((one, other) => other.quality - one.quality);
}
