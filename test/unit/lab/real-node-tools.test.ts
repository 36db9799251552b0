import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { whyNoRealNodes } from '../../../dev/real-nodes/availability.js';
import { readLabSettings } from '../../../dev/settings.js';
import { ensureRealNodeTools } from '../../../dev/tools/debian-tools.js';

let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'drydock-tools-test-'));
});

afterEach(async () => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
  await rm(directory, { recursive: true });
});

const said: string[] = [];
const log = (line: string) => void said.push(line);

async function putOnPath(...programs: string[]): Promise<void> {
  for (const program of programs) await symlink('/bin/true', join(directory, program));
  vi.stubEnv('PATH', directory);
}

describe('the programs that real nodes need', () => {
  test('are not installed where that is forbidden: one line names each missing package once, and how to get it', async () => {
    await putOnPath('ip', 'setpriv', 'unshare');
    const settings = readLabSettings({ DRYDOCK_INSTALL_TOOLS: 'no' });
    const packages = 'systemd-container debootstrap e2fsprogs util-linux debian-archive-keyring';
    expect(await ensureRealNodeTools(settings, log)).toBe(
      `missing on this host: ${packages}; install them with apt-get install ${packages}`,
    );
    expect(said).toEqual([]);
  });

  test('are not installed by anybody but root', async () => {
    await putOnPath();
    vi.spyOn(process, 'getuid').mockReturnValue(1000);
    expect(await ensureRealNodeTools(readLabSettings({}), log)).toMatch(/^missing on this host: systemd-container /);
    expect(said).toEqual([]);
  });

  test('are enough when they are all there', async () => {
    await putOnPath('systemd-nspawn', 'debootstrap', 'ip', 'mkfs.ext4', 'setpriv', 'unshare', 'nsenter');
    expect(await ensureRealNodeTools(readLabSettings({}), log)).toBeUndefined();
  });
});

test('why there can be no real nodes is said in one line', async () => {
  const platform = vi.spyOn(process, 'platform', 'get').mockReturnValue('darwin');
  expect(await whyNoRealNodes(log)).toBe('systemd-nspawn needs Linux, this is darwin');
  platform.mockReturnValue('linux');
  vi.spyOn(process, 'getuid').mockReturnValue(1000);
  expect(await whyNoRealNodes(log)).toBe('systemd-nspawn needs root');
});
