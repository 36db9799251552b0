/**
 * Two tokens take turns: a machine that was given one has as long to join as the other is new, and whoever watches them
 * needs to read two Secrets of known names and no others.
 */
export const BOOTSTRAP_TOKEN_IDS = ['drydka', 'drydkb'] as const;
export type BootstrapTokenId = (typeof BOOTSTRAP_TOKEN_IDS)[number];

export const BOOTSTRAP_TOKEN_NAMESPACE = 'kube-system';
export const BOOTSTRAP_TOKEN_TYPE = 'bootstrap.kubernetes.io/token';

export function bootstrapTokenSecretName(id: BootstrapTokenId): string {
  return `bootstrap-token-${id}`;
}

/** A Secret of that type, as the API has it: values in base64. */
export interface BootstrapTokenSecret {
  readonly type?: string;
  readonly data?: Readonly<Record<string, string>>;
}

export interface BootstrapToken {
  /** `id.secret` */
  readonly token: string;
  /** Epoch milliseconds. */
  readonly expiresAt: number;
}

/** The token of a Secret; undefined: it has none that a kubelet could use. */
export function bootstrapTokenOf({ type, data = {} }: BootstrapTokenSecret): BootstrapToken | undefined {
  const value = (key: string) => Buffer.from(data[key] ?? '', 'base64').toString();
  const [id, secret, expiration] = [value('token-id'), value('token-secret'), value('expiration')];
  const expiresAt = Date.parse(expiration);
  const isWhole = /^[a-z0-9]{6}$/u.test(id) && /^[a-z0-9]{16}$/u.test(secret) && !Number.isNaN(expiresAt);
  if (type !== BOOTSTRAP_TOKEN_TYPE || value('usage-bootstrap-authentication') !== 'true' || !isWhole) return undefined;
  return { token: `${id}.${secret}`, expiresAt };
}

/** The one that lasts longest; undefined: there is none. */
export function newestToken(secrets: readonly BootstrapTokenSecret[]): BootstrapToken | undefined {
  const tokens = secrets.flatMap((secret) => bootstrapTokenOf(secret) ?? []);
  return tokens.toSorted((one, other) => other.expiresAt - one.expiresAt)[0];
}

export interface TokenTimes {
  /** How long the newest one is given out. */
  readonly renewAfterMs: number;
  /** From when it is made. Longer than two renewals, so that one is never made anew while it still counts. */
  readonly lastsMs: number;
}

const HOUR_MS = 60 * 60_000;
export const TOKEN_TIMES: TokenTimes = { renewAfterMs: 12 * HOUR_MS, lastsMs: 36 * HOUR_MS };

export interface TokenRenewal {
  /** The one to be made now; undefined: none is due. */
  readonly renew: BootstrapTokenId | undefined;
  /** Until the next one is due, after that. */
  readonly dueInMs: number;
}

/** Which token is to be made anew: the one that is not the newest, once the newest has been given out long enough. */
export function tokenRenewal(
  secrets: Readonly<Record<BootstrapTokenId, BootstrapTokenSecret>>,
  now: number,
  { renewAfterMs, lastsMs }: TokenTimes = TOKEN_TIMES,
): TokenRenewal {
  const expiries = BOOTSTRAP_TOKEN_IDS.map((id) => ({ id, expiresAt: bootstrapTokenOf(secrets[id])?.expiresAt ?? 0 }));
  const [newest, older] = expiries.toSorted((one, other) => other.expiresAt - one.expiresAt);
  const dueInMs = (newest?.expiresAt ?? 0) - lastsMs + renewAfterMs - now;
  // One that lasts longer than any that is made here was written by somebody else.
  const isOurs = (newest?.expiresAt ?? 0) <= now + lastsMs;
  if (isOurs && dueInMs > 0) return { renew: undefined, dueInMs };
  return { renew: isOurs ? older?.id : newest?.id, dueInMs: renewAfterMs };
}

/** What a new token is in its Secret; `secret` are 16 letters and digits that nobody can guess. */
export function tokenFields(id: BootstrapTokenId, secret: string, expiresAt: number): Readonly<Record<string, string>> {
  return {
    'token-id': id,
    'token-secret': secret,
    expiration: new Date(expiresAt).toISOString().replace(/\.\d+Z$/u, 'Z'),
    'usage-bootstrap-authentication': 'true',
  };
}
