import { mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { RebootInhibited, type Host } from '../../activities/host/host.js';
import { passiveBackend } from '../../activities/host/os/none.js';
import type { RunProgram } from '../../activities/host/run-program.js';
import { undoServices } from '../../activities/host/services.js';
import { createSystemdHost } from '../../activities/host/systemd-host.js';
import { waitUntil } from '../../dev/processes/wait-until.js';
import { startMachines, type Machine } from '../../dev/real-nodes/real-node.js';
import { describeRealNodes, useLab } from '../support/real-node.js';
import { PATIENCE } from '../support/patience.js';

/*
 * What the host asks of systemd, asked of a real one: the host's code runs here, its programs run in the machine.
 */

const UNITS = '/etc/systemd/system';
const SLEEPER = '[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n';

describeRealNodes('a systemd host', () => {
  const lab = useLab({ temporal: false, kubernetes: false });
  let machine: Machine;
  let host: Host;

  /** The machine's `/` as its own processes see it, with /proc and /run. */
  async function liveHost(): Promise<Host> {
    const state = JSON.parse(await readFile(join(dirname(machine.root), 'state.json'), 'utf8')) as {
      leader: { pid: number };
    };
    const root = `/proc/${state.leader.pid}/root`;
    const run: RunProgram = (program, args, options = {}) =>
      machine.exec([program, ...args], options.input === undefined ? {} : { input: options.input });
    return createSystemdHost({
      root,
      run,
      os: passiveBackend({ name: 'none', root, refusals: {} }),
      sshKeyPlace: () => Promise.reject(new Error('not asked here')),
    });
  }

  async function put(path: string, text: string, mode = 0o644): Promise<void> {
    await mkdir(join(machine.root, dirname(path)), { recursive: true });
    await writeFile(join(machine.root, path), text, { mode });
  }

  const unit = async (name: string, text: string) => {
    await put(`${UNITS}/${name}`, text);
    await host.systemctl.reload();
  };

  beforeAll(async () => {
    [machine] = (await startMachines(lab(), [{ name: 'systemd' }])) as [Machine];
    host = await liveHost();
  }, 240_000);

  it('says of every kind of unit how it is enabled', async () => {
    await unit('disabled.service', SLEEPER);
    await unit('static.service', '[Service]\nExecStart=/bin/true\n');
    await unit('template@.service', SLEEPER);
    await rm(join(machine.root, UNITS, 'masked.service'), { force: true });
    await symlink('/dev/null', join(machine.root, UNITS, 'masked.service'));
    await host.systemctl.enable(['template@one.service']);
    const { systemctl } = host;
    expect(await systemctl.enablement('disabled.service')).toBe('disabled');
    expect(await systemctl.enablement('static.service')).toBe('static');
    expect(await systemctl.enablement('masked.service')).toBe('masked');
    expect(await systemctl.enablement('nowhere.service')).toBe('not-found');
    expect(await systemctl.enablement('template@one.service')).toBe('enabled');
    expect(await systemctl.enablement('template@two.service')).toBe('disabled');
  });

  it('enables and disables again and again, also when the file is gone', async () => {
    await unit('sleeper.service', SLEEPER);
    const { systemctl } = host;
    for (let round = 0; round < 2; round++) {
      await systemctl.enable(['sleeper.service']);
      expect(await systemctl.enablement('sleeper.service')).toBe('enabled');
    }
    await rm(join(machine.root, UNITS, 'sleeper.service'));
    for (let round = 0; round < 2; round++) await systemctl.disable(['sleeper.service']);
    await unit('sleeper.service', SLEEPER);
    expect(await systemctl.enablement('sleeper.service')).toBe('disabled');
  });

  it('starts, reloads, restarts and stops, and waits for the result', async () => {
    await unit('reloading.service', SLEEPER.replace('\n[', '\nExecReload=/bin/touch /run/reloaded\n['));
    const { systemctl } = host;
    const pid = async () => (await machine.succeed(['systemctl', 'show', '-P', 'MainPID', 'reloading.service'])).trim();
    await systemctl.start('reloading.service');
    expect(await systemctl.isActive('reloading.service')).toBe(true);
    const first = await pid();
    await systemctl.reloadUnit('reloading.service');
    await machine.succeed(['test', '-e', '/run/reloaded']);
    expect(await pid()).toBe(first);
    await systemctl.restart('reloading.service');
    expect(await pid()).not.toBe(first);
    await systemctl.stop('reloading.service');
    expect(await systemctl.isActive('reloading.service')).toBe(false);
    await systemctl.stop('nowhere.service');
  });

  it('says why a unit does not start, with result and exit status and nothing of its output', async () => {
    await unit(
      'failing.service',
      '[Service]\nType=oneshot\nExecStart=/bin/sh -c "echo pa55word; echo pa55word >&2; exit 7"\n',
    );
    const error = await host.systemctl.start('failing.service').catch((thrown: unknown) => thrown);
    expect(String(error)).toMatch(
      /systemctl start failing\.service: Job for failing\.service failed .*\(result exit-code, exit status 7\)$/,
    );
    expect(String(error)).not.toContain('pa55word');
    await expect(host.systemctl.start('masked.service')).rejects.toThrow('Unit masked.service is masked');
    await expect(host.systemctl.start('nowhere.service')).rejects.toThrow('Unit nowhere.service not found');
    await expect(host.systemctl.reloadUnit('static.service')).rejects.toThrow('systemctl reload static.service:');
  });

  it('lets a unit that failed too often be started again', async () => {
    const limit = '[Unit]\nStartLimitBurst=2\nStartLimitIntervalSec=1h\n';
    await unit('often.service', `${limit}[Service]\nType=oneshot\nExecStart=/bin/test -e /run/mended\n`);
    for (let round = 0; round < 2; round++) await host.systemctl.start('often.service').catch(() => undefined);
    await machine.succeed(['touch', '/run/mended']);
    await expect(host.systemctl.start('often.service')).rejects.toThrow('often.service');
    await host.systemctl.resetFailed?.('often.service');
    await host.systemctl.start('often.service');
    await host.systemctl.resetFailed?.('nowhere.service');
  });

  it('has a service that an undone update stopped run again, however often it was started within a while', async () => {
    await unit('limited.service', `[Unit]\nStartLimitBurst=2\nStartLimitIntervalSec=1h\n${SLEEPER}`);
    await host.systemctl.start('limited.service');
    for (let round = 0; round < 3; round++) {
      await host.systemctl.stop('limited.service');
      expect(await undoServices(host, [{ unit: 'limited.service', action: 'stop', wasActive: true }])).toEqual([]);
      expect(await host.systemctl.isActive('limited.service')).toBe(true);
    }
  });

  it('has a service that ended right after it was restarted run again', async () => {
    // Its first process after `ending` is made ends by itself, without an error.
    const script = 'if test -e /run/ending; then rm /run/ending; exit 0; fi; exec sleep infinity';
    await unit(
      'ending.service',
      `[Service]\nExecStart=/bin/sh -c "${script}"\n[Install]\nWantedBy=multi-user.target\n`,
    );
    await host.systemctl.start('ending.service');
    await machine.succeed(['touch', '/run/ending']);
    const begun = { unit: 'ending.service', action: 'restart', wasActive: true } as const;
    const after = {
      ...host,
      systemctl: {
        ...host.systemctl,
        async restart(name: string) {
          await host.systemctl.restart(name);
          await waitUntil(async () => !(await host.systemctl.isActive(name)), {
            what: 'its end',
            timeoutMs: PATIENCE.timeout,
          });
        },
      },
    };
    expect(await undoServices(after, [begun])).toEqual([]);
    expect(await host.systemctl.isActive('ending.service')).toBe(true);
  });

  it('knows what it is', async () => {
    expect(host.facts).toEqual({
      os: expect.stringContaining('Debian GNU/Linux 12') as string,
      arch: process.arch === 'x64' ? 'amd64' : process.arch,
    });
    expect(await host.bootId()).toBe(await machine.bootId());
  });

  describe('asked for a reboot', () => {
    it('names who blocks it, and does not reboot', async () => {
      const holding = machine.exec([
        'systemd-inhibit',
        '--what=shutdown',
        '--mode=block',
        '--who=backup',
        '--why=it runs',
        'sleep',
        '30',
      ]);
      const bootId = await host.bootId();
      const error = await waitUntil(
        async () => {
          const { stdout } = await machine.exec(['systemd-inhibit', '--list', '--no-legend']);
          if (!stdout.includes('backup')) return undefined;
          return host.reboot({ bootId, reason: 'test' }).catch((thrown: unknown) => thrown);
        },
        { what: 'the inhibitor to be there', timeoutMs: PATIENCE.timeout },
      );
      expect(error).toBeInstanceOf(RebootInhibited);
      expect(String(error)).toMatch(/backup \(process \d+\) .*: it runs/);
      await machine.exec(['pkill', '-x', 'sleep']);
      await holding;
      expect(await machine.boots()).toBe(1);
    });

    it('twice and three times, reboots once; asked for the old boot again, it does nothing', async () => {
      const bootId = await host.bootId();
      const asked = [1, 2, 3].map(() => host.reboot({ bootId, reason: 'a test → of “reboots”' }));
      // The first has taken the machine down already, perhaps: then nothing runs in it any more to answer the others.
      const [first, ...others] = await Promise.allSettled(asked);
      expect(first?.status === 'fulfilled' || others.some(({ status }) => status === 'fulfilled')).toBe(true);
      await waitUntil(async () => (await machine.boots()) > 1, { what: 'the second boot', timeoutMs: 60_000 });
      await machine.waitUntilUp();
      host = await liveHost();
      expect(await host.bootId()).not.toBe(bootId);
      await host.reboot({ bootId, reason: 'late' });
      expect(
        (await machine.exec(['systemctl', 'show', '-P', 'LoadState', `drydock-reboot-${bootId}`])).stdout.trim(),
      ).toBe('not-found');
      expect(await machine.boots()).toBe(2);
    });
  });
});
