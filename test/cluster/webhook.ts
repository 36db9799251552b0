import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { X509Certificate } from 'node:crypto';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { stringify } from 'yaml';
import { KINDS } from '../../activities/kubernetes/client.js';
import { install } from '../../client/install.js';
import { offlineRender } from '../../client/offline-render.js';
import { CertificateAuthority } from '../../dev/kubernetes/certificates.js';
import { serveAdmission, type AdmissionWebhook } from '../../workers/admission-webhook.js';
import type { RealCluster, RealControl } from '../support/real-cluster.js';
import { PATIENCE } from '../support/patience.js';

const API_VERSION = 'machineconfiguration.openshift.io/v1';
const WORKER = { 'machineconfiguration.openshift.io/role': 'worker' };
const SHARED = { 'test.drydock.dev/shared': '' };

const machineConfig = (config: object) => ({
  apiVersion: API_VERSION,
  kind: 'MachineConfig',
  metadata: { name: '96-wrong', labels: WORKER },
  spec: { config: { ignition: { version: '3.4.0' }, ...config } },
});
const withFile = (file: object) =>
  machineConfig({ storage: { files: [{ path: '/etc/a', contents: { source: 'data:,a' }, ...file }] } });
const pool = (name: string, spec: object) => ({
  apiVersion: API_VERSION,
  kind: 'MachineConfigPool',
  metadata: { name },
  spec: { machineConfigSelector: { matchLabels: WORKER }, paused: true, ...spec },
});

/** The real API server asks, of everything that kubectl applies. */
export function describeWebhook(cluster: () => RealCluster, control: () => RealControl): void {
  describe('the validating webhook', () => {
    let directory: string;
    let authority: CertificateAuthority;
    let webhook: AdmissionWebhook;
    const file = (name: string) => join(directory, name);

    async function writeCertificate(): Promise<X509Certificate> {
      const { key, certificate } = authority.issueServer('webhook', { dns: ['localhost'], ip: ['127.0.0.1'] });
      await writeFile(file('tls.key'), key);
      await writeFile(file('tls.crt'), certificate);
      return new X509Certificate(certificate);
    }

    async function apply(object: object): Promise<string> {
      await writeFile(file('object.yaml'), stringify(object));
      return cluster().kubectl('apply', '-f', file('object.yaml'));
    }

    beforeAll(async () => {
      directory = await mkdtemp(join(tmpdir(), 'drydock-webhook-'));
      authority = await CertificateAuthority.open(directory);
      await writeCertificate();
      const { flavour, nodes, pools, configs } = control().dependencies;
      webhook = await serveAdmission({
        address: '127.0.0.1:0',
        keyFile: file('tls.key'),
        certificateFile: file('tls.crt'),
        logger: pino({ level: 'silent' }),
        context: () => ({
          flavour,
          nodes: nodes.list().map(({ metadata }) => ({ name: metadata.name, labels: metadata.labels ?? {} })),
          pools: pools.list(),
          machineConfigs: configs.list(),
        }),
      });
      const place = { url: webhook.url, authority: authority.certificate };
      await install({ client: cluster().admin, flavour, webhook: place });
      await cluster().kubernetes.createNodes([{ name: 'shared-1', labels: SHARED }]);
      await cluster().admin.create(
        flavour.machineConfigPool,
        pool('shared', { nodeSelector: { matchLabels: SHARED } }),
      );
      await control().caughtUp();
      // The API server asks a new webhook a moment later.
      await vi.waitFor(
        async () => {
          const probe = withFile({ contents: { source: 'data:;base64,@@' } });
          await expect(apply(probe)).rejects.toThrow(/admission webhook/);
        },
        { ...PATIENCE, interval: 300 },
      );
    });
    afterAll(async () => {
      webhook.close();
      const name = { name: `drydock-${cluster().flavour.name}` };
      await cluster().admin.delete(KINDS.validatingWebhookConfiguration, name);
      await cluster().admin.delete(cluster().flavour.machineConfigPool, { name: 'shared' });
      await rm(directory, { recursive: true });
    });

    test.each([
      ['a wrong mode', withFile({ mode: 4095 })],
      ['an unknown key', withFile({ contnets: { source: 'data:,b' } })],
      ['bad base64', withFile({ contents: { source: 'data:;base64,YQ=' } })],
      ['a remote source', withFile({ contents: { source: 'https://a.example/b' } })],
      ['a reserved user', machineConfig({ passwd: { users: [{ name: 'root', passwordHash: '*' }] } })],
      ['a path of the worker', withFile({ path: '/var/lib/drydock/journal' })],
      ['an unknown version of Ignition', machineConfig({ ignition: { version: '7.0.0' } })],
      ['a unit without a type', machineConfig({ systemd: { units: [{ name: 'clock', contents: '[Unit]\n' }] } })],
    ])(
      'kubectl apply of a MachineConfig with %s is refused at once, with the reason of drydock render',
      async (_, object) => {
        const message = await apply(object).then(
          (said) => expect.fail(`it was taken: ${said}`),
          (error: unknown) => (error as { stderr: string }).stderr,
        );
        const rendered = await offlineRender({ files: [file('object.yaml')] });
        if (rendered.outcome !== 'refused') throw new Error('drydock render takes it');
        const reason = /MachineConfig 96-wrong: .*$/u.exec(rendered.reason)?.[0] ?? rendered.reason;
        expect(message).toContain('denied');
        expect(message).toContain(reason);
      },
    );

    test.each([
      [
        'two custom pools for one node',
        pool('second', { nodeSelector: { matchLabels: SHARED } }),
        /custom pool shared \(shared-1\)/,
      ],
      ['a limit that is none', pool('second', { maxUnavailable: 'some' }), /spec\.maxUnavailable/],
      [
        'a time zone that does not exist',
        pool('second', {
          rollout: { windows: { timeZone: 'Europe/Berlim', allow: [{ start: '22:00', length: '4h' }] } },
        }),
        /spec\.rollout\.windows\.timeZone: "Europe\/Berlim" is no time zone/,
      ],
    ])('kubectl apply of a pool with %s is refused at once', async (_, object, reason) => {
      await expect(apply(object)).rejects.toThrow(reason);
    });

    test.each([
      ['KubeletConfig', { kubeletConfig: { maxPods: 'many' } }, 'spec.kubeletConfig.maxPods: '],
      [
        'ContainerRuntimeConfig',
        { containerRuntimeConfig: { logLevel: 'loud' } },
        'spec.containerRuntimeConfig.logLevel: ',
      ],
    ])('kubectl apply of a wrong %s is refused at once: %j', async (kind, spec, reason) => {
      const object = { apiVersion: API_VERSION, kind, metadata: { name: 'wrong' }, spec };
      const message = await apply(object).then(
        (said) => expect.fail(`it was taken: ${said}`),
        (error: unknown) => (error as { stderr: string }).stderr,
      );
      expect(message).toContain(`denied the request: ${kind} wrong: ${reason}`);
    });

    test('what is right is stored, and odd things are shown as warnings', async () => {
      const right = { ...withFile({ mode: 420 }), metadata: { name: '96-right', labels: WORKER } };
      await expect(apply(right)).resolves.toContain('96-right created');
      const odd = { ...machineConfig({ storage: { disks: [{ device: '/dev/sdz' }] } }), metadata: { name: '96-odd' } };
      // With warnings taken for errors, kubectl fails although the object is stored.
      await writeFile(file('object.yaml'), stringify(odd));
      await expect(cluster().kubectl('apply', '--warnings-as-errors', '-f', file('object.yaml'))).rejects.toThrow(
        /spec\.config\.storage\.disks: only has an effect at first boot/,
      );
      await expect(cluster().admin.get(cluster().flavour.machineConfig, { name: '96-odd' })).resolves.toBeDefined();
      for (const name of ['96-right', '96-odd'])
        await cluster().admin.delete(cluster().flavour.machineConfig, { name });
    });

    test('a new certificate is taken up without a restart; a broken one is not', async () => {
      const { port, hostname } = new URL(webhook.url);
      const served = () =>
        new Promise<string>((resolve, reject) => {
          const socket = connect({ port: Number(port), host: hostname, ca: authority.certificate }, () => {
            resolve(socket.getPeerX509Certificate()?.fingerprint256 ?? '');
            socket.end();
          }).once('error', reject);
        });
      const next = await writeCertificate();
      await vi.waitFor(async () => expect(await served()).toBe(next.fingerprint256), {
        ...PATIENCE,
        interval: 100,
      });
      await writeFile(file('tls.crt'), 'no certificate');
      await expect(apply(withFile({ contents: { source: 'data:;base64,@@' } }))).rejects.toThrow(/admission webhook/);
      expect(await served()).toBe(next.fingerprint256);
    });

    test('while it is away, changes pass, and the render finds what is wrong', async () => {
      webhook.close();
      const wrong = withFile({ contents: { source: 'data:;base64,@@' } });
      await expect(apply(wrong)).resolves.toContain('96-wrong created');
      const rendered = await offlineRender({ files: [file('object.yaml')] });
      expect(rendered).toMatchObject({ outcome: 'refused', reason: expect.stringContaining('96-wrong') as string });
      await cluster().admin.delete(cluster().flavour.machineConfig, { name: '96-wrong' });
    });
  });
}
