import type { KubeletConfigSpec } from '../../api/kubelet-config.js';
import type { Problem } from '../../api/parse.js';

export const TLS_VERSIONS = ['VersionTLS10', 'VersionTLS11', 'VersionTLS12', 'VersionTLS13'] as const;
export type TlsVersion = (typeof TLS_VERSIONS)[number];

/** The suites that the kubelet's TLS library can do, by the name that the kubelet reads to the one that OpenSSL has. */
const SUITES: Readonly<Record<string, string>> = {
  TLS_AES_128_GCM_SHA256: 'TLS_AES_128_GCM_SHA256',
  TLS_AES_256_GCM_SHA384: 'TLS_AES_256_GCM_SHA384',
  TLS_CHACHA20_POLY1305_SHA256: 'TLS_CHACHA20_POLY1305_SHA256',
  TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256: 'ECDHE-ECDSA-AES128-GCM-SHA256',
  TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256: 'ECDHE-RSA-AES128-GCM-SHA256',
  TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384: 'ECDHE-ECDSA-AES256-GCM-SHA384',
  TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384: 'ECDHE-RSA-AES256-GCM-SHA384',
  TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256: 'ECDHE-ECDSA-CHACHA20-POLY1305',
  TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256: 'ECDHE-RSA-CHACHA20-POLY1305',
  TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256: 'ECDHE-ECDSA-AES128-SHA256',
  TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256: 'ECDHE-RSA-AES128-SHA256',
  TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA: 'ECDHE-ECDSA-AES128-SHA',
  TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA: 'ECDHE-RSA-AES128-SHA',
  TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA: 'ECDHE-ECDSA-AES256-SHA',
  TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA: 'ECDHE-RSA-AES256-SHA',
  TLS_RSA_WITH_AES_128_GCM_SHA256: 'AES128-GCM-SHA256',
  TLS_RSA_WITH_AES_256_GCM_SHA384: 'AES256-GCM-SHA384',
  TLS_RSA_WITH_AES_128_CBC_SHA256: 'AES128-SHA256',
  TLS_RSA_WITH_AES_128_CBC_SHA: 'AES128-SHA',
  TLS_RSA_WITH_AES_256_CBC_SHA: 'AES256-SHA',
  TLS_RSA_WITH_3DES_EDE_CBC_SHA: 'DES-CBC3-SHA',
  TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA: 'ECDHE-RSA-DES-CBC3-SHA',
  TLS_RSA_WITH_RC4_128_SHA: 'RC4-SHA',
  TLS_ECDHE_RSA_WITH_RC4_128_SHA: 'ECDHE-RSA-RC4-SHA',
  TLS_ECDHE_ECDSA_WITH_RC4_128_SHA: 'ECDHE-ECDSA-RC4-SHA',
};

/** Older names that the kubelet still reads. */
const OLD_NAMES = ['TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305', 'TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305'];

const names = Object.keys(SUITES);
const SUITE_NAMES: ReadonlySet<string> = new Set([...names, ...OLD_NAMES]);
const BY_OPENSSL_NAME: ReadonlyMap<string, string> = new Map(names.map((name) => [SUITES[name] ?? name, name]));

export function isCipherSuite(name: string): boolean {
  return SUITE_NAMES.has(name);
}

/** Of these one must be there for HTTP/2, without which the kubelet's server does not start. */
export const HTTP2_SUITES = ['TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256', 'TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256'];

/** The profiles are Mozilla's, in its order; of theirs, the suites that the kubelet can do. */
const TLS13_SUITES = names.slice(0, 3);
const INTERMEDIATE_SUITES = names.slice(0, 9);
const OLD_SUITES = names.slice(0, 21);

interface TlsSettings {
  readonly tlsMinVersion: TlsVersion;
  readonly tlsCipherSuites: string[];
}

const PROFILES: Readonly<Record<'Old' | 'Intermediate' | 'Modern', TlsSettings>> = {
  Old: { tlsMinVersion: 'VersionTLS10', tlsCipherSuites: OLD_SUITES },
  Intermediate: { tlsMinVersion: 'VersionTLS12', tlsCipherSuites: INTERMEDIATE_SUITES },
  Modern: { tlsMinVersion: 'VersionTLS13', tlsCipherSuites: TLS13_SUITES },
};

/** What a TLS profile means in the kubelet's fields, and what is wrong with it. */
export function tlsSettings(profile: KubeletConfigSpec['tlsSecurityProfile'] | null): {
  settings: Partial<TlsSettings>;
  problems: Problem[];
} {
  if (profile === undefined || profile === null) return { settings: {}, problems: [] };
  const { type, custom } = profile;
  if (type !== 'Custom')
    return { settings: PROFILES[type === undefined || type === '' ? 'Intermediate' : type], problems: [] };
  const path = 'spec.tlsSecurityProfile.custom';
  if (custom === undefined || custom === null) {
    return {
      settings: {},
      problems: [{ path, message: 'is missing, and type is Custom; list ciphers and minTLSVersion' }],
    };
  }
  const ciphers = (custom.ciphers ?? []).map((cipher) =>
    isCipherSuite(cipher) ? cipher : BY_OPENSSL_NAME.get(cipher),
  );
  const problems = ciphers.flatMap((cipher, index): Problem[] => {
    if (cipher !== undefined) return [];
    const message = 'is no cipher suite that the kubelet can do; write a name such as ECDHE-RSA-AES128-GCM-SHA256';
    return [{ path: `${path}.ciphers[${index}]`, message }];
  });
  const settings = {
    tlsMinVersion: custom.minTLSVersion ?? 'VersionTLS12',
    ...(ciphers.length === 0 ? {} : { tlsCipherSuites: ciphers.filter((cipher) => cipher !== undefined) }),
  };
  return { settings, problems };
}
