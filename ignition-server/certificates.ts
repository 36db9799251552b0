import { X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { KINDS, type KubernetesClient, type KubernetesObject } from '../activities/kubernetes/client.js';
import { WatchCache } from '../activities/kubernetes/watch-cache.js';
import { watchFiles } from '../activities/process/watched-files.js';

/** What the server shows to its clients. */
export interface ServerIdentity {
  readonly certificate: string;
  readonly key: string;
  /** PEM: by whom machines know the certificate. */
  readonly authority: string;
  /** Epoch milliseconds. */
  readonly expiresAt: number;
}

export interface IdentityWatch {
  readonly signal: AbortSignal;
  readonly onChange: (identity: ServerIdentity) => void;
  /** A new identity that cannot be used, or none at all; the last one still counts. */
  readonly onError: (error: Error) => void;
  readonly everyMs?: number;
}

export interface IdentityFiles {
  readonly certificateFile: string;
  readonly keyFile: string;
  readonly authorityFile: string;
}

/** From files, read again when they change. @throws when they are no identity at first. */
export async function identityFromFiles(files: IdentityFiles, watch: IdentityWatch): Promise<ServerIdentity> {
  const paths = [files.certificateFile, files.keyFile, files.authorityFile];
  const use = ([certificate, key, authority]: readonly Buffer[]) =>
    identityOf({
      certificate: String(certificate),
      key: String(key),
      authority: String(authority),
      source: files.certificateFile,
    });
  return use(await watchFiles(paths, { ...watch, onChange: (contents) => guarded(watch, () => use(contents)) }));
}

type Secret = KubernetesObject & { data?: Readonly<Record<string, string>> };

/** From a Secret with tls.crt, tls.key and ca.crt, `namespace/name`; waits until it is there and can be used. */
export async function identityFromSecret(
  client: KubernetesClient,
  secret: string,
  watch: IdentityWatch,
): Promise<ServerIdentity> {
  const [namespace = '', name = ''] = secret.split('/');
  const cache = new WatchCache<Secret>(client, KINDS.secret, {
    signal: watch.signal,
    scope: { namespace, fieldSelector: `metadata.name=${name}` },
    onError: (error) => watch.onError(error instanceof Error ? error : new Error(String(error))),
  });
  return new Promise((resolve) => {
    let isFirst = true;
    cache.onChange(({ type, object }) => {
      if (type === 'DELETED') {
        watch.onError(new Error(`the Secret ${secret} is gone; create it again`));
        return;
      }
      guarded({ ...watch, onChange: isFirst ? resolve : watch.onChange }, () => {
        const value = (key: string) => Buffer.from(object.data?.[key] ?? '', 'base64').toString();
        const certificate = value('tls.crt');
        const parts = { certificate, key: value('tls.key'), authority: value('ca.crt') || certificate };
        const identity = identityOf({ ...parts, source: `Secret ${secret}` });
        isFirst = false;
        return identity;
      });
    });
  });
}

function guarded(watch: Pick<IdentityWatch, 'onChange' | 'onError'>, read: () => ServerIdentity): void {
  let identity: ServerIdentity;
  try {
    identity = read();
  } catch (error) {
    watch.onError(error instanceof Error ? error : new Error(String(error)));
    return;
  }
  watch.onChange(identity);
}

/** Throws, with one line, where key and certificate do not belong together or are none. */
function identityOf(parts: Omit<ServerIdentity, 'expiresAt'> & { readonly source: string }): ServerIdentity {
  const { certificate, key, authority, source } = parts;
  try {
    createSecureContext({ cert: certificate, key });
    const expiresAt = Date.parse(new X509Certificate(certificate).validTo);
    const authorities = authority.match(/-----BEGIN CERTIFICATE-----[^]*?-----END CERTIFICATE-----/gu) ?? [];
    if (authorities.length === 0) throw new Error('its authority is no PEM certificate');
    return { certificate, key, authority: `${authorities.join('\n')}\n`, expiresAt };
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`${source}: certificate and key cannot be used: ${why}`, { cause });
  }
}
