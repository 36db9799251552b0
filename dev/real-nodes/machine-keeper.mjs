/**
 * Keeps one machine: a root folder that systemd-nspawn boots, its network, its way to the lab's servers. Plain Node, so
 * that it starts at once. Whatever it makes ends with it, also when it is killed: a watcher (machine-remains.mjs), which
 * is started first, ends the machine's processes, the network has no name and goes with them, and a small disk is mounted
 * in a mount namespace of this process and theirs alone.
 *
 * argv: the file that describes the machine (MachineDescription in machine.ts). What it is doing stands in `state.json`
 * beside that file. SIGUSR1: switch it on, if it is off. SIGUSR2: a power loss. SIGTERM: end it and clean up.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, readlinkSync, renameSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { fileURLToPath } from 'node:url';
import { commandLineOf } from './boot-loader.mjs';
import { makeCgroups, removeRemains, startTime, sweepRemains } from './machine-remains.mjs';
import { Forwarder } from './machine-forwarder.mjs';
import { claimSubnet } from './machine-subnet.mjs';

const run = promisify(execFile);
/** How systemd-nspawn says that the machine asked for a reboot (systemd-nspawn(1), "Exit status"). */
const EXIT_REBOOT = 133;
const LEADER_POLL_MS = 10;

const file = process.argv[2];
const description = JSON.parse(readFileSync(file, 'utf8'));
const { root, base, hostname, forwards, binds, diskMebibytes } = description;
/** Also says whose it is: what is left of a keeper that is gone can be removed. */
const machine = `drydock-${process.pid}-${startTime(process.pid)}`;
const state = { state: 'preparing', keeper: process.pid, boots: 0 };
let nspawn;
let stopping = false;

function tell(change) {
  Object.assign(state, change);
  const path = join(dirname(file), 'state.json');
  writeFileSync(`${path}.new`, JSON.stringify(state));
  renameSync(`${path}.new`, path);
}

async function prepareRoot() {
  if (existsSync(join(root, 'usr'))) return;
  mkdirSync(root, { recursive: true });
  if (diskMebibytes !== undefined) {
    const image = join(dirname(file), 'disk.img');
    writeFileSync(image, '');
    truncateSync(image, diskMebibytes * 1024 * 1024);
    await run('mkfs.ext4', ['-q', '-F', '-m', '0', image]);
    // The loop device is freed with the mount, and the mount with this process: nobody else sees it.
    await run('mount', ['-o', 'loop', image, root]);
  }
  // A plain copy, not an overlay: on overlayfs a folder of the lower layer cannot be renamed, and inotify misses what
  // happens to a file after its first change. It takes about a second.
  await run('cp', ['-a', '--reflink=auto', `${base}/.`, root]);
}

/** A network of the machine's own for this boot: no firewall rule survives the last one. */
async function makeNetwork({ interfaceName, gateway, address }) {
  const holder = spawn('unshare', ['--net', 'sh', '-c', 'echo ready; exec sleep infinity'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(holder.stdout, 'data');
  const inside = ['-t', String(holder.pid), '-n', 'ip'];
  // The last boot's goes with the last of its processes, a moment after them.
  await run('ip', ['link', 'del', interfaceName]).catch(() => undefined);
  await run('ip', ['link', 'add', interfaceName, 'type', 'veth', 'peer', 'name', 'host0', 'netns', String(holder.pid)]);
  await run('ip', ['address', 'add', `${gateway}/30`, 'dev', interfaceName]);
  await run('ip', ['link', 'set', interfaceName, 'up']);
  await run('nsenter', [...inside, 'link', 'set', 'lo', 'up']);
  await run('nsenter', [...inside, 'address', 'add', `${address}/30`, 'dev', 'host0']);
  await run('nsenter', [...inside, 'link', 'set', 'host0', 'up']);
  await run('nsenter', [...inside, 'route', 'add', 'default', 'via', gateway]);
  return holder;
}

function nspawnArguments(network, ownCgroup) {
  return [
    ...['--quiet', `--directory=${root}`, `--machine=${machine}`, `--hostname=${hostname}`, '--register=no'],
    // Where there is no systemd to ask for a scope, we have made the cgroup.
    ...(ownCgroup ? ['--keep-unit'] : []),
    `--network-namespace-path=/proc/${network.pid}/ns/net`,
    ...['--capability=CAP_NET_ADMIN', '--console=read-only', '--link-journal=no'],
    // Files of the machine that are nobody's but its own.
    ...['--timezone=off', '--resolv-conf=off'],
    ...binds.map(([from, to]) => `--bind-ro=${from}:${to}`),
    '--boot',
  ];
}

/** Boots until the machine does not ask for a reboot. */
async function keepBooted(subnet, forwarder) {
  for (;;) {
    const network = await makeNetwork(subnet);
    await forwarder.open();
    writeFileSync(join(dirname(file), 'cmdline'), `${commandLineOf(root)}\n`);
    const cgroups = makeCgroups(machine);
    // The shell puts itself where the machine shall be, and becomes systemd-nspawn.
    const enter = 'for folder in $CGROUPS; do echo $$ > "$folder/cgroup.procs" || exit 1; done; exec "$@"';
    const command = [
      'setpriv',
      '--pdeathsig',
      'KILL',
      'systemd-nspawn',
      ...nspawnArguments(network, cgroups.length > 0),
    ];
    nspawn = spawn('sh', ['-c', enter, 'sh', ...command], {
      stdio: ['ignore', 'inherit', 'inherit'],
      env: { PATH: process.env.PATH, CGROUPS: cgroups.join(' ') },
    });
    const ended = once(nspawn, 'exit');
    const leader = await findLeader(nspawn);
    network.kill('SIGKILL');
    if (leader !== undefined) {
      tell({ state: 'on', leader: { pid: leader, startTime: startTime(leader) }, boots: state.boots + 1 });
    }
    const [code] = await ended;
    nspawn = undefined;
    forwarder.abandon();
    tell({ state: 'off', leader: undefined, lastExit: code });
    if (code !== EXIT_REBOOT || stopping) return;
  }
}

/** The machine's process 1, seen from here, once it is systemd. Undefined if systemd-nspawn has ended. */
async function findLeader(child) {
  while (child.exitCode === null && child.signalCode === null) {
    const leader = childrenOf(child.pid).find(isMachineInit);
    if (leader !== undefined) return leader;
    await sleep(LEADER_POLL_MS);
  }
  return undefined;
}

function childrenOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

function isMachineInit(pid) {
  try {
    const ids = /^NSpid:\t(.*)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1].split('\t') ?? [];
    return ids.length === 2 && ids[1] === '1' && readlinkSync(`/proc/${pid}/exe`).endsWith('/systemd');
  } catch {
    return false;
  }
}

/** Outside our process group: it is not killed with us. It sees our end by that of its standard input. */
function watchForRemains() {
  const program = fileURLToPath(new URL('machine-remains.mjs', import.meta.url));
  const watcher = spawn(process.execPath, [program, machine], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
  watcher.unref();
}

async function stop() {
  if (stopping) return;
  stopping = true;
  nspawn?.kill('SIGKILL');
  if (diskMebibytes !== undefined) await run('umount', ['--lazy', root]).catch(() => undefined);
  await removeRemains(machine);
  process.exit(0);
}

process.on('SIGTERM', () => void stop());
watchForRemains();
await sweepRemains();
const subnet = await claimSubnet();
const forwarder = new Forwarder(subnet.gateway, forwards);
await prepareRoot();
tell({ state: 'off', address: subnet.address, gateway: subnet.gateway });

/** First the network: a process that is killed would still close its connections, and a machine without power does not. */
process.on('SIGUSR2', () => {
  forwarder.abandon();
  void run('ip', ['link', 'set', subnet.interfaceName, 'down']).finally(() => {
    if (state.leader !== undefined) process.kill(state.leader.pid, 'SIGKILL');
  });
});

let booting = false;
process.on('SIGUSR1', () => {
  if (booting || stopping) return;
  booting = true;
  keepBooted(subnet, forwarder)
    .catch((error) => {
      console.error(error);
      tell({ state: 'off', problem: error.message });
    })
    .finally(() => (booting = false));
});
setInterval(() => undefined, 2 ** 30);
