import semver from 'semver';
import { quote } from '../ignition/findings.js';

/** Variants of Butane that are translated. */
export const BUTANE_VARIANTS = ['openshift', 'fcos', 'flatcar'] as const;
export type ButaneVariant = (typeof BUTANE_VARIANTS)[number];

/** One version of one variant, as far as it decides what may be written and what comes out. */
export interface ButaneSpec {
  readonly variant: ButaneVariant;
  readonly version: string;
  /** The Ignition config that comes out has version 3.`minor`.0; what that has, the Butane file may say. */
  readonly minor: number;
}

/** Version of each variant to minor version of Ignition 3, as Butane's own table has them. */
const MINORS: Readonly<Record<ButaneVariant, Readonly<Record<string, number>>>> = {
  openshift: {
    ...versions('4', [8, 13], 2),
    ...versions('4', [14, 18], 4),
    ...versions('4', [19, 22], 5),
  },
  fcos: { '1.0.0': 0, '1.1.0': 1, '1.2.0': 2, '1.3.0': 2, '1.4.0': 3, '1.5.0': 4, '1.6.0': 5 },
  flatcar: { '1.0.0': 3, '1.1.0': 4 },
};

function versions(major: string, [first, last]: readonly [number, number], minor: number): Record<string, number> {
  const count = last - first + 1;
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`${major}.${first + index}.0`, minor]));
}

function isVariant(name: unknown): name is ButaneVariant {
  return (BUTANE_VARIANTS as readonly unknown[]).includes(name);
}

export type SpecLookup =
  | { readonly ok: true; readonly spec: ButaneSpec }
  | { readonly ok: false; readonly field: 'variant' | 'version'; readonly message: string };

/** The spec that a file declares. Exactly: `1.5` is not 1.5.0, and experimental versions are none. */
export function findSpec(variant: string | undefined, version: string | undefined): SpecLookup {
  const known = BUTANE_VARIANTS.join(', ');
  if (variant === undefined) return { ok: false, field: 'variant', message: `is missing; write one of ${known}` };
  if (!isVariant(variant)) {
    return { ok: false, field: 'variant', message: `${quote(variant)} is not translated; write one of ${known}` };
  }
  const all = MINORS[variant];
  const newest = Object.keys(all).at(-1) ?? '';
  const range = `${Object.keys(all)[0] ?? ''} to ${newest}`;
  if (version === undefined) {
    return { ok: false, field: 'version', message: `is missing; write one of ${variant} ${range}` };
  }
  const minor = Object.hasOwn(all, version) ? all[version] : undefined;
  if (minor !== undefined) return { ok: true, spec: { variant, version, minor } };
  const message = `${quote(version)} is no version of ${variant}${whyNot(version, newest)}; known are ${range}`;
  return { ok: false, field: 'version', message };
}

function whyNot(version: string, newest: string): string {
  if (/^\d+\.\d+$/.test(version)) return ` (three numbers are needed, as in ${version}.0)`;
  if (version.includes('-experimental')) return ' that may be relied on';
  return semver.valid(version) !== null && semver.gt(version, newest) ? ' that Drydock knows' : '';
}

/** First version of the variant that has what Ignition 3.`minor` has; undefined: none has. */
export function firstVersionWith(variant: ButaneVariant, minor: number): string | undefined {
  return Object.entries(MINORS[variant]).find(([, has]) => has >= minor)?.[0];
}

/** `openshift` before 4.`minor`. */
export function isOpenshiftBefore(spec: ButaneSpec, minor: number): boolean {
  return spec.variant === 'openshift' && semver.lt(spec.version, `4.${minor}.0`);
}
