import { mkdtemp, rename, rm, symlink, writeFile, mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  identityFromFiles,
  identityFromSecret,
  type IdentityWatch,
  type ServerIdentity,
} from '../../../ignition-server/certificates.js';
import { nodeEnvironment } from '../../../ignition-server/node-environment.js';
import type { KubernetesObject } from '../../../activities/kubernetes/client.js';
import { FakeCluster } from '../../support/fake-cluster.js';
import { SECRET, selfSignedIdentity, writeIdentity } from '../../support/served-first-boot.js';
import { PATIENCE } from '../../support/patience.js';

describe('the certificate of the server', () => {
  let folder: string;
  let one: ServerIdentity;
  let other: ServerIdentity;
  const seen: ServerIdentity[] = [];
  const errors: string[] = [];
  let watch: IdentityWatch;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'drydock-tls-'));
    [one, other] = await Promise.all([selfSignedIdentity(), selfSignedIdentity()]);
    seen.length = errors.length = 0;
    const stopping = new AbortController();
    onTestFinished(() => stopping.abort());
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    watch = {
      signal: stopping.signal,
      everyMs: 10,
      onChange: (identity) => void seen.push(identity),
      onError: ({ message }) => void errors.push(message),
    };
  });
  const files = (at = folder) => ({
    certificateFile: `${at}/tls.crt`,
    keyFile: `${at}/tls.key`,
    authorityFile: `${at}/tls.crt`,
  });

  it('is read again when a mounted Secret is exchanged, as the kubelet does it', async () => {
    for (const [name, identity] of [
      ['v1', one],
      ['v2', other],
    ] as const) {
      await mkdir(join(folder, name));
      await writeIdentity(join(folder, name), identity);
    }
    await symlink('v1', join(folder, '..data'));
    expect(await identityFromFiles(files(join(folder, '..data')), watch)).toEqual(one);
    await symlink('v2', join(folder, '..tmp'));
    await rename(join(folder, '..tmp'), join(folder, '..data'));
    await vi.waitFor(() => expect(seen.at(-1)).toEqual(other), PATIENCE);
    await symlink('v1', join(folder, '..tmp'));
    await rename(join(folder, '..tmp'), join(folder, '..data'));
    await vi.waitFor(() => expect(seen.at(-1)).toEqual(one), PATIENCE);
    // Each was told once.
    expect(seen).toEqual([other, one]);
    expect(errors).toEqual([]);
  });

  it('stays what it was while what is on disk cannot be used', async () => {
    await writeIdentity(folder, one);
    await identityFromFiles(files(), watch);
    await writeFile(join(folder, 'tls.key'), other.key);
    await vi.waitFor(() => expect(errors[0]).toContain('tls.crt: certificate and key cannot be used'), PATIENCE);
    await rm(join(folder, 'tls.crt'));
    await vi.waitFor(() => expect(errors.at(-1)).toContain('tls.crt cannot be read'), PATIENCE);
    expect(seen).toEqual([]);
    await writeIdentity(folder, other);
    await vi.waitFor(() => expect(seen).toEqual([other]), PATIENCE);
  });

  it('fails at the start where there is none', async () => {
    await expect(identityFromFiles(files(), watch)).rejects.toThrow(/tls\.(?:crt|key) cannot be read/);
    await writeIdentity(folder, { ...one, key: other.key });
    await expect(identityFromFiles(files(), watch)).rejects.toThrow(/cannot be used/);
  });

  it('comes from a Secret as soon as that is there, and follows it', async () => {
    const cluster = new FakeCluster();
    const base64 = (text: string) => Buffer.from(text).toString('base64');
    const data = ({ certificate, key, authority }: ServerIdentity) => ({
      'tls.crt': base64(certificate),
      'tls.key': base64(key),
      'ca.crt': base64(authority),
    });
    const reading = identityFromSecret(cluster, 'drydock/ignition-tls', watch);
    const metadata = { name: 'ignition-tls', namespace: 'drydock' };
    cluster.add(SECRET, { metadata: { name: 'another', namespace: 'drydock' }, data: data(other) } as KubernetesObject);
    cluster.add(SECRET, { metadata, data: {} } as KubernetesObject);
    await vi.waitFor(() => expect(errors[0]).toContain('Secret drydock/ignition-tls: certificate and key'), PATIENCE);
    await cluster.patch(SECRET, metadata, { data: data(one) });
    expect(await reading).toEqual(one);
    await cluster.patch(SECRET, metadata, { data: data(other) });
    await vi.waitFor(() => expect(seen).toEqual([other]), PATIENCE);
    await cluster.delete(SECRET, metadata);
    await vi.waitFor(() => expect(errors.at(-1)).toContain('is gone'), PATIENCE);
  });
});

describe('the settings of the node workers', () => {
  const cluster = { clusterUid: 'uid-1', flavour: 'alauda' };
  it('have what the server knows of the cluster, unless somebody wrote it', () => {
    expect(nodeEnvironment('TEMPORAL_ADDRESS=t:7233\n\n', cluster)).toBe(
      'TEMPORAL_ADDRESS=t:7233\nDRYDOCK_CLUSTER_UID=uid-1\nDRYDOCK_FLAVOUR=alauda\n',
    );
    expect(nodeEnvironment('DRYDOCK_FLAVOUR=openshift\n# DRYDOCK_CLUSTER_UID=no\n', cluster)).toBe(
      'DRYDOCK_FLAVOUR=openshift\n# DRYDOCK_CLUSTER_UID=no\nDRYDOCK_CLUSTER_UID=uid-1\n',
    );
    expect(nodeEnvironment('', cluster)).toBe('DRYDOCK_CLUSTER_UID=uid-1\nDRYDOCK_FLAVOUR=alauda\n');
  });
});
