import { ignitionSchema, type IgnitionConfig } from '../ignition/config.js';
import { Findings } from '../ignition/findings.js';
import { withKnownKeys } from '../ignition/keys.js';
import type { ServedVersion } from './accept.js';
import { toSpec2 } from './to-spec2.js';

/** An Ignition document in one version, or why that version cannot say it. */
export type Written =
  | { readonly outcome: 'written'; readonly document: Readonly<Record<string, unknown>> }
  | { readonly outcome: 'refused'; readonly reason: string };

const PLAIN_MODE = 0o777;
/** From here on a mode may have the bits above 0777; older clients drop them silently. */
const SPECIAL_MODES_SINCE = 4;

/** Writes a config for a client of that version. Whatever the version lacks is refused, never left out. */
export function writeForVersion(config: IgnitionConfig, version: ServedVersion): Written {
  const reasons = version === '2.2.0' ? [] : missingIn(config, Number(version.split('.')[1]));
  if (reasons[0] !== undefined) {
    return { outcome: 'refused', reason: `${reasons[0]} cannot be said in Ignition ${version}` };
  }
  if (version === '2.2.0') return toSpec2(config);
  const { ignition, ...sections } = config;
  return { outcome: 'written', document: { ignition: { ...ignition, version }, ...sections } };
}

/** Places of the config that its schema marks as newer than the minor version. */
function missingIn(config: IgnitionConfig, minor: number): string[] {
  const findings = new Findings({ config }, ['spec']);
  withKnownKeys(ignitionSchema, config, ['config'], { findings, minor });
  const special = (config.storage?.directories ?? []).filter(({ mode = 0 }) => mode > PLAIN_MODE);
  return [
    ...findings.problems.map(({ path }) => path),
    ...(minor < SPECIAL_MODES_SINCE ? special.map(({ path }) => `the mode of the folder ${path}`) : []),
  ];
}
