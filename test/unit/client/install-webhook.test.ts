import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { KINDS, type KubernetesObject } from '../../../activities/kubernetes/client.js';
import { EXIT_CODES } from '../../../client/exit-codes.js';
import { CertificateAuthority } from '../../../dev/kubernetes/certificates.js';
import { FakeTerminal } from '../../support/command-run.js';
import { establishCrds } from '../../support/established-crds.js';

const URL_OF_WEBHOOK = 'https://drydock.example:9443/validate';

type Configuration = KubernetesObject & {
  webhooks: { clientConfig: { url: string; caBundle: string }; matchConditions: { expression: string }[] }[];
};

let folder: string;
let authority: CertificateAuthority;
let terminal: FakeTerminal;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'drydock-install-'));
  authority = await CertificateAuthority.open(folder);
  terminal = new FakeTerminal();
  establishCrds(terminal.cluster);
});
afterEach(() => rm(folder, { recursive: true }));

const told = () =>
  terminal.cluster.peek<Configuration>(KINDS.validatingWebhookConfiguration, 'drydock-openshift')?.webhooks[0];

test('install tells the API server of the webhook, and a later one keeps it and follows the control user', async () => {
  await terminal.run('install');
  expect(told()).toBeUndefined();
  const named = ['--webhook-url', URL_OF_WEBHOOK, '--webhook-ca', join(folder, 'ca.crt')];
  expect(await terminal.run('install', ...named)).toMatchObject({ code: EXIT_CODES.ok.code });
  const { clientConfig } = told() ?? {};
  expect(clientConfig?.url).toBe(URL_OF_WEBHOOK);
  expect(
    Buffer.from(clientConfig?.caBundle ?? '', 'base64')
      .toString()
      .trim(),
  ).toBe(authority.certificate.trim());

  await terminal.run('install', '--control-user', 'robot');
  expect(told()?.clientConfig).toEqual(clientConfig);
  expect(told()?.matchConditions[0]?.expression).toBe('request.userInfo.username != "robot"');
});

test('what is no webhook is refused with what to write, before anything is created', async () => {
  await writeFile(join(folder, 'bad.crt'), 'no certificate');
  const ca = join(folder, 'ca.crt');
  const refused: [string[], string][] = [
    [['--webhook-url', URL_OF_WEBHOOK], 'both --webhook-url and --webhook-ca'],
    [['--webhook-ca', ca], 'both --webhook-url and --webhook-ca'],
    [['--webhook-url', 'http://a.example/validate', '--webhook-ca', ca], 'is no https URL'],
    [['--webhook-url', URL_OF_WEBHOOK, '--webhook-ca', join(folder, 'bad.crt')], 'is no certificate in PEM'],
    [['--webhook-url', URL_OF_WEBHOOK, '--webhook-ca', join(folder, 'absent.crt')], 'is no certificate in PEM'],
  ];
  for (const [options, message] of refused) {
    const { code, err } = await terminal.run('install', ...options);
    expect(code, message).toBe(EXIT_CODES.usage.code);
    expect(err).toContain(message);
  }
  expect(terminal.cluster.peek(KINDS.namespace, 'drydock')).toBeUndefined();
});
