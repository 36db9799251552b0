import { beforeEach, describe, expect, it } from 'vitest';
import { renewBootstrapToken } from '../../../activities/cluster/bootstrap-token.js';
import { KINDS, type KubernetesObject } from '../../../activities/kubernetes/client.js';
import { firstBootManifests } from '../../../client/install/first-boot.js';
import { applyManifest } from '../../../client/install/manifest.js';
import { apiFlavour } from '../../../machine-config/api/flavour.js';
import {
  bootstrapTokenOf,
  newestToken,
  type BootstrapTokenSecret,
} from '../../../machine-config/first-boot/bootstrap-token.js';
import { FakeCluster } from '../../support/fake-cluster.js';
import { tokenSecret } from '../../support/served-first-boot.js';

const HOUR = 3_600_000;
const CLUSTER = 'cluster-1';
const USERS = { controlUser: 'control', ignitionUser: 'ignition' };

describe('the bootstrap token', () => {
  let now: number;
  let cluster: FakeCluster;

  beforeEach(async () => {
    now = Date.parse('2026-11-30T12:00:00Z');
    cluster = new FakeCluster({ clusterUid: CLUSTER });
    for (const manifest of firstBootManifests(apiFlavour('openshift'), USERS)) await applyManifest(cluster, manifest);
  });
  const renew = (client = cluster.as('control')) =>
    renewBootstrapToken({ client, cluster: CLUSTER, now: () => now }, { cluster: CLUSTER });
  const secrets = () => cluster.list<KubernetesObject & BootstrapTokenSecret>(KINDS.secret);
  const tokens = async () => (await secrets()).flatMap((secret) => bootstrapTokenOf(secret)?.token ?? []);
  const current = async () => newestToken(await secrets());

  it('is made at once, and then kept for twelve hours', async () => {
    expect(await renew()).toEqual({ outcome: 'renewed', id: expect.any(String) as string, dueInSeconds: 12 * 3600 });
    const made = await current();
    expect(made?.token).toMatch(/^drydk[ab]\.[a-z0-9]{16}$/);
    now += 12 * HOUR - 1000;
    expect(await renew()).toEqual({ outcome: 'kept', dueInSeconds: 1 });
    expect(await current()).toEqual(made);
  });

  it('is another one after twelve hours, while the one before still counts for long enough to join', async () => {
    await renew();
    const first = await current();
    now += 12 * HOUR;
    await renew();
    const second = await current();
    expect(second?.token.slice(0, 6)).not.toBe(first?.token.slice(0, 6));
    expect(first?.expiresAt).toBe(now + 24 * HOUR);
    expect(await tokens()).toHaveLength(2);
    now += 12 * HOUR;
    await renew();
    const third = await current();
    expect(third?.token.slice(0, 6)).toBe(first?.token.slice(0, 6));
    expect(third?.token).not.toBe(first?.token);
  });

  it('is made anew at once where somebody took it away, or wrote one that lasts for ever', async () => {
    await renew();
    const id = (await current())?.token.slice(0, 6);
    const name = { name: `bootstrap-token-${id ?? ''}`, namespace: 'kube-system' };
    await cluster.patch(KINDS.secret, name, { data: { 'token-secret': null } });
    expect(await renew()).toMatchObject({ outcome: 'renewed' });
    const forever = tokenSecret('drydka', 'aaaaaaaaaaaaaaaa', now + 1000 * HOUR) as KubernetesObject &
      BootstrapTokenSecret;
    await cluster.patch(KINDS.secret, forever.metadata, { data: forever.data });
    expect(await renew()).toMatchObject({ outcome: 'renewed', id: 'drydka' });
    expect(await tokens()).not.toContain('drydka.aaaaaaaaaaaaaaaa');
  });

  it('is made once where two control workers find it due', async () => {
    const results = await Promise.allSettled([renew(), renew()]);
    const outcomes = results.map((result) => (result.status === 'fulfilled' ? result.value.outcome : 'conflict'));
    expect(outcomes.sort()).toEqual(['conflict', 'renewed']);
    expect(await renew()).toMatchObject({ outcome: 'kept' });
    expect(await tokens()).toHaveLength(1);
  });

  it('keeps the groups that may join, and is of the type that the API server looks for', async () => {
    await renew();
    for (const { type, data } of await secrets()) {
      expect(type).toBe('bootstrap.kubernetes.io/token');
      expect(Buffer.from(data?.['auth-extra-groups'] ?? '', 'base64').toString()).toContain('system:bootstrappers:');
    }
  });

  it('is not made where no first boots are wanted, and nowhere else than in this cluster', async () => {
    const other = new FakeCluster({ clusterUid: CLUSTER });
    expect(await renew(other)).toEqual({ outcome: 'absent' });
    expect(await renew(other.as('system:node:n1'))).toEqual({ outcome: 'absent' });
    const deps = { client: cluster, cluster: CLUSTER, now: () => now };
    await expect(renewBootstrapToken(deps, { cluster: 'cluster-2' })).rejects.toMatchObject({ type: 'WrongCluster' });
  });

  it('survives another installation', async () => {
    await renew();
    const before = await current();
    for (const manifest of firstBootManifests(apiFlavour('openshift'), USERS)) {
      expect(await applyManifest(cluster, manifest)).toBe('unchanged');
    }
    expect(await current()).toEqual(before);
  });

  it.each([
    ['of another type', { type: 'Opaque' }],
    ['without an end', { data: { expiration: null } }],
    ['that does not sign in', { data: { 'usage-bootstrap-authentication': Buffer.from('false').toString('base64') } }],
    ['of another form', { data: { 'token-secret': Buffer.from('Short').toString('base64') } }],
  ])('is none, %s', async (_, change) => {
    const secret = tokenSecret('drydka', '0123456789abcdef', now) as KubernetesObject & BootstrapTokenSecret;
    expect(bootstrapTokenOf(secret)).toBeDefined();
    const other = new FakeCluster();
    other.add(KINDS.secret, secret);
    const changed = await other.patch<KubernetesObject & BootstrapTokenSecret>(KINDS.secret, secret.metadata, change);
    expect(bootstrapTokenOf(changed)).toBeUndefined();
  });
});
