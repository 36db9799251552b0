import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { startRealNodes, WORKER_UNIT, type RealNode } from '../../dev/real-nodes/real-node.js';
import { waitUntil } from '../../dev/processes/wait-until.js';
import { getNode } from '../lab/kubernetes-call.js';
import { describeRealNodes, useLab } from '../support/real-node.js';
import { asVersion, unpackedPackage } from '../support/node-package.js';

/** Enough for a good version on a busy machine, and for one that never serves. */
const PATIENT_SECONDS = 200;
const IMPATIENT_SECONDS = 5;
const ENDED_TIMEOUT_MS = 240_000;

/** Starts, is well as far as systemd sees, and never serves its queue. */
const DEAF_WORKER = `
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
if (process.argv.includes('--version')) {
  process.stdout.write(JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).version + '\\n');
} else {
  execFileSync('systemd-notify', ['--ready']);
  setInterval(() => execFileSync('systemd-notify', ['WATCHDOG=1']), 5000);
}
`;

/** Runs the real program, and kills the installation after its n-th call that changes something: how often it looks depends on the machine. */
const KILLING_SHIM = `#!/bin/sh
PATH=/usr/sbin:/usr/bin:/sbin:/bin
"\${0##*/}" "$@"
code=$?
case "\${0##*/} $*" in
'mv '* | 'systemctl start'* | 'systemctl restart'* | 'systemctl daemon-reload'*)
  echo "\${0##*/} $*" >>/root/shim/changes
  [ "$(wc -l </root/shim/changes)" -ne "$(cat /root/shim/kill-after)" ] || kill -KILL "$(cat /root/shim/pid)"
  ;;
esac
exit "$code"
`;
const NEVER = 0;

describeRealNodes('an upgrade of the node worker on a real machine', () => {
  const lab = useLab();
  let node: RealNode;
  let ours: string;
  let first: string;
  let settings: string;

  beforeAll(async () => {
    [node] = (await startRealNodes(lab(), { nodes: [{ name: 'node-1' }] })) as [RealNode];
    settings = await readFile(join(node.root, 'etc/drydock/node.env'), 'utf8');
    await limit(PATIENT_SECONDS);
    ours = await unpackedPackage('node', join(node.root, 'root/packages'));
    first = (await readFile(join(ours, 'VERSION'), 'utf8')).trim();
    await mkdir(join(node.root, 'root/shim'));
    for (const program of ['mv', 'systemctl']) {
      await writeFile(join(node.root, 'root/shim', program), KILLING_SHIM, { mode: 0o755 });
    }
    await pack('1.0.0');
    await pack('1.1.0');
    await serves(first);
  });

  const limit = async (seconds: number) => {
    const file = join(node.root, 'etc/drydock/node.env');
    await writeFile(file, `${settings}DRYDOCK_UPGRADE_LIMIT_SECONDS=${seconds}\n`, { mode: 0o600 });
  };
  const inMachine = (version: string) => `/root/packages/${version}`;
  const pack = (version: string, files: Record<string, string> = {}) =>
    asVersion(ours, join(node.root, inMachine(version)), { version, files });
  const install = (version: string, ...more: string[]) =>
    node.exec([`${inMachine(version)}/install.sh`, ...more], { timeoutMs: 240_000 });
  const current = async () => (await node.succeed(['readlink', '/opt/drydock/current'])).trim();
  const installed = async () =>
    (await node.succeed(['ls', '/opt/drydock'])).split('\n').filter((name) => /^\d/.test(name));
  const show = async (property: string) =>
    (await node.succeed(['systemctl', 'show', `--property=${property}`, '--value', WORKER_UNIT])).trim();
  const running = async () => {
    const exe = await node.succeed(['readlink', `/proc/${await show('MainPID')}/exe`]);
    return exe.trim().split('/').at(-3);
  };
  const serves = (version: string) =>
    waitUntil(
      async () =>
        (await running()) === version && (await node.succeed(['cat', '/run/drydock/polling'])).trim() === version,
      { what: `version ${version} to serve its queue`, timeoutMs: ENDED_TIMEOUT_MS },
    );
  const isThere = async (path: string) => (await node.exec(['test', '-e', path])).code === 0;
  const isOver = () =>
    waitUntil(async () => !(await isThere('/var/lib/drydock/upgrade')), {
      what: 'the upgrade to end',
      timeoutMs: ENDED_TIMEOUT_MS,
    });

  it('puts the new version into service and keeps the previous one', async () => {
    const environment = await readFile(join(node.root, 'etc/drydock/node.env'), 'utf8');
    const upgraded = await install('1.0.0');
    expect(upgraded).toMatchObject({ code: 0, stdout: 'drydock: version 1.0.0 is in service\n' });
    await serves('1.0.0');
    expect(await installed()).toEqual([first, '1.0.0']);
    expect(await install('1.1.0')).toMatchObject({ code: 0 });
    await serves('1.1.0');
    expect(await installed()).toEqual(['1.0.0', '1.1.0']);
    expect(await readFile(join(node.root, 'etc/drydock/node.env'), 'utf8')).toBe(environment);
    const { annotations = {} } = (await getNode(lab().kubernetes.kubeconfigPath, 'node-1')).metadata;
    expect(Object.values(annotations)).toContain('1.1.0');
  });

  it('does not touch a version that is in service already', async () => {
    const started = await show('ExecMainStartTimestampMonotonic');
    expect(await install('1.1.0')).toMatchObject({ code: 0, stdout: 'drydock: version 1.1.0 is in service already\n' });
    expect(await show('ExecMainStartTimestampMonotonic')).toBe(started);
  });

  it('does not restart while a step is at work on the host', async () => {
    const started = await show('ExecMainStartTimestampMonotonic');
    await node.succeed(['systemd-run', '--unit=holder', 'sleep', 'infinity']);
    const lock = `
      pid=$(systemctl show --property=MainPID --value holder)
      printf '{"id":"x","pid":%s,"processStarted":"%s","bootId":"%s","doing":"apply"}' \\
        $pid "$(cut -d ' ' -f 22 /proc/$pid/stat)" "$(cat /proc/sys/kernel/random/boot_id)" >/var/lib/drydock/lock`;
    await node.succeed(['sh', '-c', lock]);
    const busy = await install('1.0.0', '--wait', '0');
    expect(busy).toMatchObject({ code: 1, stderr: expect.stringMatching(/apply is at work on this host/) as string });
    await node.succeed(['systemctl', 'stop', 'holder']);
    // What a worker leaves between two steps of an update.
    await writeFile(join(node.root, 'var/lib/drydock/journal.json'), '{}');
    const open = await install('1.0.0', '--wait', '0');
    await rm(join(node.root, 'var/lib/drydock/journal.json'));
    expect(open).toMatchObject({ code: 1, stderr: expect.stringMatching(/an update .* is not finished/) as string });
    expect(await current()).toBe('1.1.0');
    expect(await show('ExecMainStartTimestampMonotonic')).toBe(started);
    expect(await isThere('/var/lib/drydock/lock')).toBe(false);
  });

  it.for([
    ['never serves its queue', '2.0.0', { 'lib/workers/node.js': DEAF_WORKER }],
    ['has a unit that systemd refuses', '2.1.0', { 'unit/drydock-node.service': '[Service]\nExecStart=none\n' }],
  ] as const)('goes back from a version that %s', async ([, version, files]) => {
    await pack(version, files);
    await limit(IMPATIENT_SECONDS);
    const going = install(version);
    await waitUntil(async () => (await current()) === version, { what: 'the switch', timeoutMs: ENDED_TIMEOUT_MS });
    // What watches over the upgrade may be killed as well.
    await node.exec(['systemctl', 'kill', '--signal=KILL', 'drydock-upgrade-check.service']);
    const gone = await going;
    expect(gone.stderr).toContain('1.1.0 is in service; see');
    expect(gone.code).toBe(1);
    await serves('1.1.0');
    expect(await current()).toBe('1.1.0');
    await node.succeed(['rm', '-r', `/opt/drydock/${version}`, inMachine(version)]);
  });

  it('goes back from a version that never serves its queue after the power was lost', async () => {
    await limit(IMPATIENT_SECONDS);
    await pack('3.0.0', { 'lib/workers/node.js': DEAF_WORKER });
    const going = install('3.0.0');
    await waitUntil(async () => (await running()) === '3.0.0', { what: 'the start', timeoutMs: ENDED_TIMEOUT_MS });
    await node.powerLoss();
    await going.catch(() => undefined);
    await node.powerOn();
    await node.waitUntilUp();
    await isOver();
    await serves('1.1.0');
    expect(await current()).toBe('1.1.0');
  });

  it('keeps a good version though the power was lost between the switch and the restart', async () => {
    await limit(PATIENT_SECONDS);
    const going = install('1.0.0');
    await waitUntil(async () => (await current()) === '1.0.0', {
      what: 'the switch',
      timeoutMs: ENDED_TIMEOUT_MS,
      intervalMs: 10,
    });
    await node.powerLoss();
    await going.catch(() => undefined);
    await node.powerOn();
    await node.waitUntilUp();
    await isOver();
    await serves('1.0.0');
    expect(await node.succeed(['cat', '/var/lib/drydock/last-upgrade'])).toContain('outcome=kept');
  });

  it(
    'ends whole wherever the installation is killed, and completes when it is run again',
    { timeout: 900_000 },
    async () => {
      await limit(PATIENT_SECONDS);
      const killedAfter = async (version: string, calls: number) => {
        await rm(join(node.root, 'root/shim/changes'), { force: true });
        await writeFile(join(node.root, 'root/shim/kill-after'), String(calls));
        const script = `echo $$ >/root/shim/pid; PATH=/root/shim:$PATH exec ${inMachine(version)}/install.sh`;
        return node.exec(['sh', '-c', script], { timeoutMs: 240_000 });
      };
      // What has to be unpacked first would be a change more the first time.
      for (const version of ['1.0.0', '1.1.0']) {
        if (!(await installed()).includes(version)) expect(await install(version)).toMatchObject({ code: 0 });
      }
      let target = (await current()) === '1.1.0' ? '1.0.0' : '1.1.0';
      expect(await killedAfter(target, NEVER)).toMatchObject({ code: 0 });
      const changes = (await readFile(join(node.root, 'root/shim/changes'), 'utf8')).trimEnd().split('\n');
      expect(changes.length).toBeGreaterThanOrEqual(5);
      for (let call = 1; call <= changes.length; call += 1) {
        const before = await current();
        target = before === '1.1.0' ? '1.0.0' : '1.1.0';
        expect(await killedAfter(target, call)).toMatchObject({ code: 137 });
        // Nobody looks after it: whichever version is current comes into service.
        await serves(await current());
        expect(await install(target)).toMatchObject({ code: 0 });
        await serves(target);
        expect(await current()).toBe(target);
      }
    },
  );

  it('is removed by its own script, which keeps what it remembers, and comes back', async () => {
    const version = await current();
    const removed = await node.succeed(['/opt/drydock/current/uninstall.sh']);
    expect(removed).toContain('stay as they are');
    expect(await show('LoadState')).toBe('not-found');
    for (const path of ['/opt/drydock', '/run/drydock', '/etc/systemd/system/drydock-upgrade-check.service']) {
      expect(await isThere(path)).toBe(false);
    }
    expect(await isThere('/var/lib/drydock/last-upgrade')).toBe(true);
    expect(await install(version)).toMatchObject({ code: 0, stdout: `drydock: version ${version} is in service\n` });
    await serves(version);
  });
});
