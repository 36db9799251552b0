import { createPrivateKey, X509Certificate } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CertificateAuthority } from '../../../dev/kubernetes/certificates.js';

let directory: string;
let authority: CertificateAuthority;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'drydock-ca-test-'));
  authority = await CertificateAuthority.open(directory);
});

afterAll(() => rm(directory, { recursive: true, force: true }));

describe('a certificate of the lab', () => {
  test('names the user and the group, and is signed by the authority for its own key', () => {
    const { key, certificate } = authority.issueClient({ user: 'system:node:worker-1', group: 'system:nodes' });
    const issued = new X509Certificate(certificate);
    const signer = new X509Certificate(authority.certificate);
    expect(issued.subject.split('\n').sort()).toEqual(['CN=system:node:worker-1', 'O=system:nodes']);
    expect(issued.verify(signer.publicKey)).toBe(true);
    expect(issued.checkIssued(signer)).toBe(true);
    expect(issued.checkPrivateKey(createPrivateKey(key))).toBe(true);
    expect(issued.ca).toBe(false);
    expect(issued.keyUsage).toEqual(['1.3.6.1.5.5.7.3.2']);
    expect(signer.ca).toBe(true);
    expect(signer.verify(signer.publicKey)).toBe(true);
  });

  test('of a server is valid for its names and addresses and no others', () => {
    const issued = new X509Certificate(
      authority.issueServer('kube-apiserver', { dns: ['localhost', 'kubernetes'], ip: ['127.0.0.1'] }).certificate,
    );
    expect(issued.checkHost('kubernetes')).toBe('kubernetes');
    expect(issued.checkHost('example.org')).toBeUndefined();
    expect(issued.checkIP('127.0.0.1')).toBe('127.0.0.1');
    expect(issued.checkIP('127.0.0.2')).toBeUndefined();
  });

  test('is valid now and for years, with a serial number of its own', () => {
    const certificates = Array.from({ length: 50 }, (_, i) => authority.issueClient({ user: `u${i}` }));
    const issued = certificates.map(({ certificate }) => new X509Certificate(certificate));
    expect(Date.parse(issued[0]!.validFrom)).toBeLessThan(Date.now());
    expect(Date.parse(issued[0]!.validTo)).toBeGreaterThan(Date.now() + 4 * 365 * 86_400_000);
    expect(new Set(issued.map(({ serialNumber }) => serialNumber)).size).toBe(50);
  });

  test('with a name longer than 127 bytes is still well formed', () => {
    const user = `system:node:${'n'.repeat(240)}`;
    expect(new X509Certificate(authority.issueClient({ user }).certificate).subject).toBe(`CN=${user}`);
  });

  test('is signed by the same authority after a restart', async () => {
    const again = await CertificateAuthority.open(directory);
    const { certificate } = again.issueClient({ user: 'someone' });
    const signer = new X509Certificate(authority.certificate);
    expect(new X509Certificate(certificate).verify(signer.publicKey)).toBe(true);
  });
});
