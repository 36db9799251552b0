import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import packageJson from '../../package.json' with { type: 'json' };
import { unpackedPackage } from '../support/node-package.js';

const run = promisify(execFile);

/** As an administrator finds it: with nothing of a clone around, by a link, from another folder. */
describe('the command of the package of the control worker', () => {
  let directory: string;
  let link: string;
  const drydock = (...words: string[]) =>
    run(link, words, { env: { PATH: '/usr/bin:/bin', HOME: directory }, cwd: directory });

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'drydock-command-'));
    const folder = await unpackedPackage('control', directory);
    link = join(directory, 'drydock');
    await symlink(join(folder, 'bin/drydock'), link);
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));

  it('says which version it is', async () => {
    expect((await drydock('--version')).stdout).toBe(`${packageJson.version}\n`);
  });

  it('renders MachineConfigs from files', async () => {
    await mkdir(join(directory, 'configs'));
    const config = {
      apiVersion: 'machineconfiguration.openshift.io/v1',
      kind: 'MachineConfig',
      metadata: { name: '50-motd', labels: { 'machineconfiguration.openshift.io/role': 'worker' } },
      spec: {
        config: {
          ignition: { version: '3.4.0' },
          storage: { files: [{ path: '/etc/motd', contents: { source: 'data:,hello' } }] },
        },
      },
    };
    await writeFile(join(directory, 'configs/50-motd.json'), JSON.stringify(config));
    const { stdout } = await drydock('render', '-f', 'configs');
    const { spec } = parse(stdout) as typeof config;
    expect(spec.config.storage.files.map(({ path }) => path)).toEqual(['/etc/motd']);
  });

  it('looks for a cluster and for Temporal as it does from a clone', async () => {
    await expect(drydock('nodes')).rejects.toMatchObject({
      code: 4,
      stderr: expect.stringMatching(/^drydock: no cluster: .*--kubeconfig FILE\n$/) as string,
    });
  });

  it('has no lab, which is made from a clone', async () => {
    expect((await drydock('--help')).stdout).not.toMatch(/^ {2}lab/m);
    await expect(drydock('lab', 'up')).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringContaining("unknown command 'lab'") as string,
    });
  });
});
