import semver from 'semver';
import { quote } from './findings.js';

/** Newest minor of spec 3 that is understood, and the model of everything inside. */
export const NEWEST_MINOR = 5;
/** What a rendered config is written in, unless a field needs more. */
export const DEFAULT_OUTPUT_VERSION = '3.4.0';

const SPEC_2 = ['2.0.0', '2.1.0', '2.2.0'];
const SPEC_3 = Array.from({ length: NEWEST_MINOR + 1 }, (_, minor) => `3.${minor}.0`);
const ACCEPTED = '2.0.0 to 2.2.0 and 3.0.0 to 3.5.0';

export type VersionCheck =
  | { readonly accepted: true; readonly major: 2 | 3; readonly minor: number }
  | { readonly accepted: false; readonly message: string };

/** Whether a config may say this in `ignition.version`; the text decides, exactly (no `3.4`, no pre-releases). */
export function checkVersion(version: unknown): VersionCheck {
  if (version === undefined) {
    return { accepted: false, message: `is missing; write version: ${DEFAULT_OUTPUT_VERSION} (accepted: ${ACCEPTED})` };
  }
  if (typeof version !== 'string') {
    return {
      accepted: false,
      message: `is ${quote(version)}, must be a string; write "${DEFAULT_OUTPUT_VERSION}" in quotes`,
    };
  }
  const parsed = semver.parse(version);
  if (parsed === null || parsed.version !== version) {
    return {
      accepted: false,
      message: `${quote(version)} is no version of three numbers such as ${DEFAULT_OUTPUT_VERSION} (accepted: ${ACCEPTED})`,
    };
  }
  if (SPEC_2.includes(version)) return { accepted: true, major: 2, minor: parsed.minor };
  if (SPEC_3.includes(version)) return { accepted: true, major: 3, minor: parsed.minor };
  const newer = semver.gt(version, `3.${NEWEST_MINOR}.0`) ? ' (newer than what Drydock knows)' : '';
  return {
    accepted: false,
    message: `${quote(version)} is not understood${newer}; accepted are ${ACCEPTED}, write ${DEFAULT_OUTPUT_VERSION} if the config needs nothing else`,
  };
}
