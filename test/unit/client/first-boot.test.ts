import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { KINDS } from '../../../activities/kubernetes/client.js';
import { FakeTerminal } from '../../support/command-run.js';
import { selfSignedIdentity } from '../../support/served-first-boot.js';

describe('drydock first-boot', () => {
  let folder: string;
  let words: string[];
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'drydock-first-boot-'));
    await writeFile(join(folder, 'ca.crt'), (await selfSignedIdentity()).authority);
    await writeFile(join(folder, 'token'), 'only-for-machines\n');
    words = ['first-boot', 'worker', '--server', 'https://boot.example:22623', '--ca', join(folder, 'ca.crt')];
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  it('prints what a machine is given, with the token that it has to send', async () => {
    const { code, out } = await new FakeTerminal().run(...words, '--token-file', join(folder, 'token'));
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({
      ignition: {
        version: '3.1.0',
        config: {
          merge: [
            {
              source: 'https://boot.example:22623/config/worker',
              httpHeaders: [{ name: 'Authorization', value: 'Bearer only-for-machines' }],
            },
          ],
        },
        security: { tls: { certificateAuthorities: [{ source: expect.stringMatching(/^data:/) as string }] } },
      },
    });
  });

  it('knows the older form', async () => {
    const { out } = await new FakeTerminal().run(...words, '--spec', '2');
    expect(JSON.parse(out)).toMatchObject({ ignition: { version: '2.2.0', config: { append: [{}] } } });
  });

  it.each([
    ['no https', () => words.with(3, 'http://boot.example'), /is no https URL/],
    ['no certificate', () => words.with(5, join(folder, 'token')), /is no certificate in PEM/],
    ['no file', () => words.with(5, '/nowhere/ca.crt'), /cannot be read/],
    ['a token for spec 2', () => [...words, '--spec', '2', '--token-file', join(folder, 'token')], /can send no token/],
  ])('refuses %s', async (_, wrong, why) => {
    const { code, out, err } = await new FakeTerminal().run(...wrong());
    expect([code, out]).toEqual([2, '']);
    expect(err).toMatch(why);
  });
});

describe('drydock install --first-boot', () => {
  it('lets an Ignition server read what it gives out, also at the next installation without that word', async () => {
    const terminal = new FakeTerminal();
    const CRDS = KINDS.customResourceDefinition;
    terminal.cluster.observe(CRDS, (type, { metadata: { name } }) => {
      const status = { conditions: [{ type: 'Established', status: 'True' }] };
      if (type === 'ADDED') void terminal.cluster.patch(CRDS, { name }, { status }, 'status');
    });
    const tokens = async () => (await terminal.cluster.list(KINDS.secret)).map(({ metadata }) => metadata.name);
    await terminal.run('install');
    expect(await tokens()).toEqual([]);
    await terminal.run('install', '--first-boot', 'somebody');
    expect(await tokens()).toEqual(['bootstrap-token-drydka', 'bootstrap-token-drydkb']);
    const again = await terminal.run('install', '--output', 'json');
    expect(JSON.parse(again.out)).toMatchObject({ changed: false });
    const binding = { name: 'drydock:openshift:ignition-server' };
    expect(await terminal.cluster.get(KINDS.clusterRoleBinding, binding)).toMatchObject({
      subjects: [{ kind: 'User', name: 'somebody' }],
    });
  });
});
