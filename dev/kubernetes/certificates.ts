import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { signCertificate, type CertificateContent, type DistinguishedName, type ServerNames } from './x509.js';

/** Both as PEM. */
export interface KeyAndCertificate {
  readonly key: string;
  readonly certificate: string;
}

/** A Kubernetes user: the certificate's common name is the user, its organisation the group. */
export interface ClientIdentity {
  readonly user: string;
  readonly group?: string;
}

const HOUR_MS = 3_600_000;
const VALID_FOR_MS = 5 * 365 * 24 * HOUR_MS;
const AUTHORITY_NAME = { commonName: 'drydock-lab' };

/** The lab's own certificate authority. A certificate takes about a millisecond. */
export class CertificateAuthority {
  /** PEM. */
  readonly certificate: string;
  readonly #key: KeyObject;

  private constructor({ key, certificate }: KeyAndCertificate) {
    this.certificate = certificate;
    this.#key = createPrivateKey(key);
  }

  /** The one kept in the directory (ca.crt, ca.key); made first where there is none. */
  static async open(directory: string): Promise<CertificateAuthority> {
    const files = { certificate: join(directory, 'ca.crt'), key: join(directory, 'ca.key') };
    try {
      return new CertificateAuthority({
        certificate: await readFile(files.certificate, 'utf8'),
        key: await readFile(files.key, 'utf8'),
      });
    } catch {
      const made = issue(AUTHORITY_NAME, 'authority');
      await writeFile(files.key, made.key, { mode: 0o600 });
      await writeFile(files.certificate, made.certificate);
      return new CertificateAuthority(made);
    }
  }

  issueClient({ user, group }: ClientIdentity): KeyAndCertificate {
    return issue({ commonName: user, ...(group === undefined ? {} : { organization: group }) }, 'client', this.#key);
  }

  issueServer(name: string, hosts: ServerNames): KeyAndCertificate {
    return issue({ commonName: name }, hosts, this.#key);
  }
}

/** @param authorityKey without one the certificate signs itself */
function issue(
  subject: DistinguishedName,
  usage: CertificateContent['usage'],
  authorityKey?: KeyObject,
): KeyAndCertificate {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  // Valid from an hour ago: clocks in containers and virtual machines differ.
  const notBefore = new Date(Date.now() - HOUR_MS);
  const notAfter = new Date(Date.now() + VALID_FOR_MS);
  const content = { subject, issuer: AUTHORITY_NAME, publicKey, notBefore, notAfter, usage };
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    certificate: signCertificate(content, authorityKey ?? privateKey),
  };
}

/** The key that signs service account tokens; kept in the directory. @returns the file. */
export async function ensureServiceAccountKey(directory: string): Promise<string> {
  const file = join(directory, 'service-account.key');
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const pem = privateKey.export({ type: 'sec1', format: 'pem' });
  await writeFile(file, pem, { mode: 0o600, flag: 'wx' }).catch((error: unknown) => {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
  });
  return file;
}
