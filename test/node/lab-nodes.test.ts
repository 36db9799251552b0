import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeAll, expect, test } from 'vitest';
import { startLab, type Lab } from '../../dev/lab.js';
import { startMachines, type Machine } from '../../dev/real-nodes/real-node.js';
import { waitUntil } from '../../dev/processes/wait-until.js';
import { pidsNaming } from '../lab/kubernetes-call.js';
import { describeRealNodes, treeDifferences, treeOf, useLab } from '../support/real-node.js';
import { findTraces, tracesOf, type MachineTraces } from './machine-traces.js';
import { PATIENCE } from '../support/patience.js';

describeRealNodes('a machine of the lab', () => {
  const lab = useLab({ temporal: false, kubernetes: false });
  let machine: Machine;
  let other: Machine;
  let server: ReturnType<typeof createServer>;
  const connections: Socket[] = [];

  beforeAll(async () => {
    server = createServer((socket) => {
      connections.push(socket);
      socket.on('error', () => undefined);
      socket.write('hello\n');
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const machines = await startMachines(lab(), [{ name: 'one', forwards: [port] }, { name: 'two' }]);
    machine = machines[0]!;
    other = machines[1]!;
    return () => void server.close();
  });

  const greet = () => {
    const { port } = server.address() as AddressInfo;
    const script = `exec 3<>/dev/tcp/${machine.gateway}/${port}; read -t 2 line <&3; echo "$line"`;
    return machine.exec(['timeout', '3', 'bash', '-c', script]);
  };

  test('runs a systemd of its own in which every unit is well', async () => {
    expect((await machine.succeed(['systemctl', 'is-system-running'])).trim()).toBe('running');
    expect((await machine.succeed(['cat', '/proc/1/comm'])).trim()).toBe('systemd');
    expect((await machine.succeed(['hostname'])).trim()).toBe('one');
    const ownBootIds = [await machine.bootId(), await other.bootId()];
    expect(ownBootIds).not.toContain((await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim());
    expect(new Set(ownBootIds).size).toBe(2);
  });

  test('shares neither services nor network with another', async () => {
    await machine.succeed(['systemd-run', '--unit=mine', 'sleep', 'infinity']);
    await other.succeed(['systemd-run', '--unit=mine', 'sleep', 'infinity']);
    await machine.succeed(['systemctl', 'kill', '--signal=KILL', 'mine.service']);
    expect((await other.succeed(['systemctl', 'is-active', 'mine.service'])).trim()).toBe('active');
    expect(other.address).not.toBe(machine.address);
    expect((await other.exec(['ping', '-c1', '-W1', machine.address])).code).not.toBe(0);
  });

  test('runs commands with input, and says how they ended', async () => {
    expect(await machine.exec(['sh', '-c', 'cat; echo bad >&2; exit 7'], { input: 'good' })).toEqual({
      code: 7,
      stdout: 'good',
      stderr: 'bad\n',
    });
    expect((await machine.exec(['sleep', '60'], { timeoutMs: 100 })).code).toBe(137);
    await expect(machine.succeed(['ls', '/nowhere'])).rejects.toThrow(
      /one: ls \/nowhere ended with exit code 2: .*nowhere/,
    );
    expect((await machine.succeed(['pwd'])).trim()).toBe('/');
    expect(await machine.succeed(['env'])).not.toMatch(/npm|VITEST/);
  });

  test('has accounts without passwords and an SSH server with a key of its own', async () => {
    const shadow = await machine.succeed(['getent', 'shadow', 'core', 'admin']);
    expect(
      shadow
        .split('\n')
        .filter(Boolean)
        .map((line) => line.split(':')[1]),
    ).toEqual(['!', '!']);
    expect(await machine.succeed(['id', 'core'])).toMatch(/^uid=1000\(core\) gid=1000\(core\)/);
    const key = '/etc/ssh/ssh_host_ed25519_key.pub';
    expect(await machine.succeed(['cat', key])).not.toBe(await other.succeed(['cat', key]));
    expect((await machine.succeed(['systemctl', 'is-active', 'ssh.service'])).trim()).toBe('active');
  });

  test('has a new boot ID after a reboot, and the same disk', async () => {
    const before = { bootId: await machine.bootId(), boots: await machine.boots() };
    await machine.succeed(['touch', '/etc/kept']);
    await machine.reboot();
    expect(await machine.bootId()).not.toBe(before.bootId);
    expect(await machine.boots()).toBe(before.boots + 1);
    await machine.succeed(['ls', '/etc/kept']);
  });

  test('loses firewall rules in a reboot, and reaches the servers of the lab again', async () => {
    expect((await greet()).stdout).toBe('hello\n');
    const rules = 'table inet closed {\n chain out {\n  type filter hook output priority 0; policy drop;\n }\n}\n';
    await machine.succeed(['nft', '-f', '-'], { input: rules });
    expect((await greet()).code).not.toBe(0);
    await machine.reboot();
    expect(await machine.succeed(['nft', 'list', 'ruleset'])).toBe('');
    expect((await greet()).stdout).toBe('hello\n');
  });

  test('loses all its processes and nothing of its disk with its power', async () => {
    await machine.succeed(['systemd-run', '--unit=writer', 'sh', '-c', 'while :; do echo x >> /var/lib/written; done']);
    await machine.powerLoss();
    expect(await machine.isOn()).toBe(false);
    expect(await pidsNaming('echo x >> /var/lib/written')).toEqual([]);
    await expect(machine.exec(['true'])).rejects.toThrow('machine one is off: true cannot run in it');
    await writeFile(join(machine.root, 'etc/changed-while-off'), 'yes');
    await machine.powerOn();
    await machine.waitUntilUp();
    expect((await machine.exec(['systemctl', 'is-active', 'writer.service'])).stdout.trim()).toBe('inactive');
    expect(await machine.succeed(['cat', '/etc/changed-while-off'])).toBe('yes');
    expect((await machine.succeed(['head', '-c', '2', '/var/lib/written'])).trim()).toBe('x');
  });

  test('that loses its power says goodbye to nobody: its connections end when it is up again', async () => {
    const { port } = server.address() as AddressInfo;
    connections.length = 0;
    const hold = `exec 3<>/dev/tcp/${machine.gateway}/${port}; sleep infinity`;
    await machine.succeed(['systemd-run', '--unit=held', 'bash', '-c', hold]);
    await waitUntil(() => Promise.resolve(connections.length === 1), {
      what: 'a connection',
      timeoutMs: PATIENCE.timeout,
    });
    const [connection] = connections;
    let closed = false;
    connection?.once('close', () => (closed = true));
    await machine.powerLoss();
    // An answer to what is sent now would have to come from the machine.
    connection?.write('are you there?\n');
    await other.succeed(['true']);
    expect(closed).toBe(false);
    await machine.powerOn();
    await machine.waitUntilUp();
    await waitUntil(() => Promise.resolve(closed), { what: 'the connection to end', timeoutMs: PATIENCE.timeout });
  });

  test('that is switched off stays off until it is switched on', async () => {
    await other.powerOff();
    expect(await other.isOn()).toBe(false);
    await other.powerOff();
    const boots = await other.boots();
    await other.powerOn();
    await other.waitUntilUp();
    expect(await other.boots()).toBe(boots + 1);
  });

  test('is booted with the kernel arguments that update-grub has written', async () => {
    expect(await machine.succeed(['cat', '/proc/cmdline'])).toBe(
      'BOOT_IMAGE=/boot/vmlinuz-6.1.0-lab root=/dev/vda1 ro quiet\n',
    );
    const setting = 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX console=ttyS0,115200"\n';
    await machine.succeed(['mkdir', '-p', '/etc/default/grub.d']);
    await machine.succeed(['tee', '/etc/default/grub.d/console.cfg'], { input: setting });
    await machine.succeed(['update-grub']);
    expect(await machine.succeed(['cat', '/proc/cmdline'])).not.toContain('console');
    await machine.reboot();
    expect(await machine.succeed(['cat', '/proc/cmdline'])).toBe(
      'BOOT_IMAGE=/boot/vmlinuz-6.1.0-lab root=/dev/vda1 ro console=ttyS0,115200 quiet\n',
    );
  });

  test('is seen from outside as it sees itself, and an idle one does not change', async () => {
    const before = await treeOf(machine);
    expect(Object.keys(before).length).toBeGreaterThan(500);
    await machine.succeed(['sh', '-c', 'echo -n text > /etc/new; chmod 640 /etc/new; chown core:admin /etc/new']);
    await machine.succeed(['sh', '-c', 'ln -s /etc/new /etc/link; mkdir -m 1777 /etc/folder; chmod 600 /etc/motd']);
    const sum = (await machine.succeed(['sha256sum', '/etc/new'])).split(' ')[0] ?? '';
    const motd = (await machine.succeed(['sha256sum', '/etc/motd'])).split(' ')[0] ?? '';
    expect(treeDifferences(before, await treeOf(machine))).toEqual([
      '/etc/folder: nothing → directory 1777 0:0',
      '/etc/link: nothing → link 0:0 /etc/new',
      `/etc/motd: file 644 0:0 ${motd} → file 600 0:0 ${motd}`,
      `/etc/new: nothing → file 640 1000:1001 ${sum}`,
    ]);
    await machine.succeed(['sh', '-c', 'rm -r /etc/new /etc/link /etc/folder; chmod 644 /etc/motd']);
    await machine.reboot();
    expect(treeDifferences(before, await treeOf(machine))).toEqual([]);
  });
});

describeRealNodes('a machine with a small disk', () => {
  const lab = useLab({ temporal: false, kubernetes: false });

  test('runs out of room, and keeps what it has in a power loss', async () => {
    const [machine] = await startMachines(lab(), [{ name: 'small', diskMebibytes: 300 }]);
    const { code, stderr } = await machine!.exec(['dd', 'if=/dev/zero', 'of=/var/filler', 'bs=1M', 'count=400']);
    expect(code).not.toBe(0);
    expect(stderr).toContain('No space left on device');
    const more = ['dd', 'if=/dev/zero', 'of=/etc/more', 'bs=1M', 'count=1'];
    expect((await machine!.exec(more)).stderr).toContain('No space left on device');
    await machine!.powerLoss();
    await machine!.powerOn();
    await machine!.waitUntilUp();
    expect((await machine!.exec(more)).stderr).toContain('No space left on device');
    await machine!.succeed(['rm', '/var/filler']);
    await machine!.succeed(['sh', '-c', 'echo more > /etc/more']);
    expect(await readFile(join(machine!.root, 'etc/more'), 'utf8')).toBe('more\n');
  });
});

describeRealNodes('of a machine nothing is left', () => {
  const holders: ChildProcess[] = [];
  const labs: Lab[] = [];
  afterEach(async () => {
    for (const holder of holders.splice(0)) holder.kill('SIGKILL');
    await Promise.all(labs.splice(0).map((lab) => lab.stop()));
  });

  async function startHolder(): Promise<{ holder: ChildProcess; traces: MachineTraces }> {
    const holder = fork(fileURLToPath(new URL('machine-holder.ts', import.meta.url)), [], {
      execArgv: ['--import', import.meta.resolve('tsx')],
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    holders.push(holder);
    const [traces] = (await once(holder, 'message')) as [MachineTraces];
    // That it can be seen at all: a small disk shows in every way.
    const found = (await findTraces(traces)).join('\n');
    for (const kind of [/^process/m, /^network interface/m, /^mount/m, /^loop/m]) expect(found).toMatch(kind);
    return { holder, traces };
  }

  async function untilNothingIsLeft(traces: MachineTraces): Promise<void> {
    const left = async () => {
      const found = await findTraces(traces);
      if (found.length > 0) throw new Error(found.join('; '));
      return true;
    };
    await waitUntil(left, { what: 'nothing to be left', timeoutMs: PATIENCE.timeout });
  }

  test('when the lab is stopped', async () => {
    const lab = await startLab({ temporal: false, kubernetes: false });
    labs.push(lab);
    const [machine] = await startMachines(lab, [{ name: 'short' }]);
    const traces = await tracesOf(lab, machine!);
    await lab.stop();
    await untilNothingIsLeft(traces);
  });

  test('when its process gets SIGKILL', async () => {
    const { holder, traces } = await startHolder();
    holder.kill('SIGKILL');
    await untilNothingIsLeft(traces);
  });

  test('when its process gets Ctrl-C', async () => {
    const { holder, traces } = await startHolder();
    holder.kill('SIGINT');
    await untilNothingIsLeft(traces);
  });

  test('when its process crashes', async () => {
    const { holder, traces } = await startHolder();
    holder.send('throw');
    await untilNothingIsLeft(traces);
  });
});
