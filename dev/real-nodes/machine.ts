import { spawn } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import type { Lab, LabProcess } from '../lab.js';
import { isAlive } from '../processes/process-identity.js';
import { waitUntil } from '../processes/wait-until.js';

export interface CommandResult {
  /** 128 + n when a signal ended it, as a shell reports it. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CommandOptions {
  readonly input?: string | Buffer;
  /** After it the command is killed. Default 60,000. */
  readonly timeoutMs?: number;
}

/** A real systemd machine of the lab. It is switched on and off as a person would do it; its disk is kept throughout. */
export interface Machine {
  readonly name: string;
  /**
   * The folder that is its `/`, for tests that look at the disk or change it from outside. Absolute symbolic links in it
   * lead to this host.
   */
  readonly root: string;
  /** Its IPv4 address, and the one by which it reaches this host and the lab's servers. */
  readonly address: string;
  readonly gateway: string;
  /** How often it was booted. */
  boots(): Promise<number>;
  isOn(): Promise<boolean>;
  /** Of the boot that runs now; a new one at each boot. */
  bootId(): Promise<string>;
  /** Runs a program in the machine, as root and with a clean environment. Throws if the machine is off. */
  exec(command: readonly string[], options?: CommandOptions): Promise<CommandResult>;
  /** `exec` that throws unless the exit code is 0. @returns standard output. */
  succeed(command: readonly string[], options?: CommandOptions): Promise<string>;
  /** What the unit has written to the journal, in all boots. */
  journal(unit: string): Promise<string>;
  /** `systemctl reboot`; resolves when it is up again. */
  reboot(): Promise<void>;
  /** `systemctl poweroff`; resolves when it is off. */
  powerOff(): Promise<void>;
  /**
   * Takes its network away and kills all of its processes at once; its disk stays as it is. What was written without
   * fsync is still there: it is in the page cache of this host. The servers' side of its connections stays open until it
   * is up again, as nobody says goodbye.
   */
  powerLoss(): Promise<void>;
  /** Boots a machine that is off; does not wait until it is up. */
  powerOn(): Promise<void>;
  /** Resolves when it is booted and its start jobs are done, whether each of them succeeded or not. */
  waitUntilUp(): Promise<void>;
  /** Ends it for good, with its mounts and its network; its folder stays until the lab ends. */
  stop(): Promise<void>;
}

export interface MachineSpec {
  readonly name: string;
  /** A root to copy. */
  readonly base: string;
  /** Gives `/` a small ext4 file system of its own, to be filled. */
  readonly diskMebibytes?: number | undefined;
  /** Ports of 127.0.0.1 that it reaches at its gateway. */
  readonly forwards: readonly number[];
  /** The Node.js of this host that it sees, read-only. */
  readonly node: { readonly from: string; readonly to: string };
  /** Where it sees the kernel's command line of each boot. */
  readonly commandLine: string;
}

const PREPARED_TIMEOUT_MS = 60_000;
const UP_TIMEOUT_MS = 60_000;
const OFF_TIMEOUT_MS = 60_000;
const COMMAND_TIMEOUT_MS = 60_000;
const POLL_MS = 20;

const identity = z.object({ pid: z.int().positive(), startTime: z.string() });
/** state.json, as machine-keeper.mjs writes it. */
const stateSchema = z.object({
  state: z.enum(['preparing', 'off', 'on']),
  keeper: z.int().positive(),
  boots: z.int(),
  address: z.string().optional(),
  gateway: z.string().optional(),
  leader: identity.optional(),
  problem: z.string().optional(),
});
type State = z.infer<typeof stateSchema>;

/** Makes a machine's disk and keeper. It is off. */
export async function makeMachine(lab: Lab, spec: MachineSpec): Promise<Machine> {
  const directory = join(lab.directory, 'machines', spec.name);
  await mkdir(directory, { recursive: true });
  const description = join(directory, 'machine.json');
  const root = join(directory, 'root');
  const { name: hostname, base, diskMebibytes, forwards, node, commandLine } = spec;
  const binds = [
    [node.from, node.to],
    [join(directory, 'cmdline'), commandLine],
  ];
  await writeFile(description, JSON.stringify({ hostname, root, base, diskMebibytes, forwards, binds }));
  const keeperProgram = [process.execPath, fileURLToPath(new URL('machine-keeper.mjs', import.meta.url)), description];
  const isolated = spec.diskMebibytes !== undefined;
  // util-linux's unshare becomes the program that it is given: the process id stays.
  const [command = '', ...args] = isolated ? ['unshare', '--mount', ...keeperProgram] : keeperProgram;
  const keeper = await lab.run({ id: `machine-${spec.name}`, command, args });
  const readState = async () => stateSchema.parse(JSON.parse(await readFile(join(directory, 'state.json'), 'utf8')));
  const prepared = await waitUntil(
    async () => {
      const state = await readState();
      return state.state !== 'preparing' && state;
    },
    {
      what: `machine ${spec.name} to be made`,
      timeoutMs: PREPARED_TIMEOUT_MS,
      intervalMs: POLL_MS,
      check: () => keeper.assertRunning(),
    },
  );
  const machine = new NspawnMachine({
    name: spec.name,
    // The small disk is mounted for its keeper alone.
    root: isolated ? `/proc/${prepared.keeper}/root${root}` : root,
    address: prepared.address ?? '',
    gateway: prepared.gateway ?? '',
    keeper,
    readState,
  });
  lab.atStop(() => machine.stop());
  return machine;
}

interface Parts extends Pick<Machine, 'name' | 'root' | 'address' | 'gateway'> {
  readonly keeper: LabProcess;
  readonly readState: () => Promise<State>;
}

class NspawnMachine implements Machine {
  readonly name: string;
  readonly root: string;
  readonly address: string;
  readonly gateway: string;
  readonly #keeper: LabProcess;
  readonly #readState: () => Promise<State>;

  constructor({ name, root, address, gateway, keeper, readState }: Parts) {
    this.name = name;
    this.root = root;
    this.address = address;
    this.gateway = gateway;
    this.#keeper = keeper;
    this.#readState = readState;
  }

  async boots(): Promise<number> {
    return (await this.#readState()).boots;
  }

  async isOn(): Promise<boolean> {
    return (await this.#leader()) !== undefined;
  }

  async bootId(): Promise<string> {
    return (await this.succeed(['cat', '/proc/sys/kernel/random/boot_id'])).trim();
  }

  async exec(command: readonly string[], options: CommandOptions = {}): Promise<CommandResult> {
    const leader = await this.#leader();
    if (leader === undefined) throw new Error(`machine ${this.name} is off: ${command.join(' ')} cannot run in it`);
    return runIn(leader, command, options);
  }

  async succeed(command: readonly string[], options: CommandOptions = {}): Promise<string> {
    const { code, stdout, stderr } = await this.exec(command, options);
    if (code === 0) return stdout;
    throw new Error(`machine ${this.name}: ${command.join(' ')} ended with exit code ${code}: ${stderr.trim()}`);
  }

  journal(unit: string): Promise<string> {
    return this.succeed(['journalctl', '--no-pager', '--output=short-precise', `--unit=${unit}`]);
  }

  async reboot(): Promise<void> {
    const before = await this.boots();
    // The machine may be gone before the command has said that it succeeded.
    await this.exec(['systemctl', 'reboot']);
    await this.#wait(async () => (await this.boots()) > before, 'to boot again', OFF_TIMEOUT_MS);
    await this.waitUntilUp();
  }

  async powerOff(): Promise<void> {
    if (!(await this.isOn())) return;
    await this.exec(['systemctl', 'poweroff']);
    await this.#untilOff();
  }

  async powerLoss(): Promise<void> {
    if (!(await this.isOn())) return;
    this.#tellKeeper('SIGUSR2');
    await this.#untilOff();
  }

  async powerOn(): Promise<void> {
    const { state, boots } = await this.#readState();
    if (state === 'on') return;
    this.#tellKeeper('SIGUSR1');
    await this.#wait(async () => (await this.boots()) > boots, 'to boot', UP_TIMEOUT_MS);
  }

  async waitUntilUp(): Promise<void> {
    await this.#wait(
      async () => {
        const { stdout } = await this.exec(['systemctl', 'is-system-running']);
        return ['running', 'degraded'].includes(stdout.trim());
      },
      'to be up',
      UP_TIMEOUT_MS,
    );
  }

  async stop(): Promise<void> {
    await this.#keeper.stop();
  }

  /** The keeper alone: a signal of the lab's supervisor reaches all of its process group. */
  #tellKeeper(signal: NodeJS.Signals): void {
    this.#keeper.assertRunning();
    if (this.#keeper.pid !== undefined) process.kill(this.#keeper.pid, signal);
  }

  #untilOff(): Promise<void> {
    return this.#wait(async () => (await this.#readState()).state === 'off', 'to be off', OFF_TIMEOUT_MS);
  }

  async #wait(condition: () => Promise<boolean>, what: string, timeoutMs: number): Promise<void> {
    await waitUntil(
      async () => {
        const { state, problem } = await this.#readState();
        if (state === 'off' && problem !== undefined) throw new Error(problem);
        return condition();
      },
      {
        what: `machine ${this.name} ${what} (its console: ${this.#keeper.logFile})`,
        timeoutMs,
        intervalMs: POLL_MS,
        check: () => this.#keeper.assertRunning(),
      },
    );
  }

  async #leader(): Promise<number | undefined> {
    const { leader } = await this.#readState();
    return leader !== undefined && isAlive(leader) ? leader.pid : undefined;
  }
}

function runIn(leader: number, command: readonly string[], options: CommandOptions): Promise<CommandResult> {
  const path = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
  const timeoutMs = options.timeoutMs ?? COMMAND_TIMEOUT_MS;
  // Both by a program in the machine: nsenter would take the working directory of this host along, and does not pass on
  // that it was killed.
  const limit = ['timeout', '--signal=KILL', String(timeoutMs / 1000)];
  const environment = ['env', '-i', '--chdir=/', `PATH=${path}`, 'HOME=/root', 'LANG=C.UTF-8'];
  const args = [`--target=${leader}`, '--all', '--', ...environment, ...limit, ...command];
  return new Promise((resolve, reject) => {
    const child = spawn('nsenter', args, { stdio: ['pipe', 'pipe', 'pipe'] });
    const output: Record<'stdout' | 'stderr', Buffer[]> = { stdout: [], stderr: [] };
    child.stdout.on('data', (chunk: Buffer) => output.stdout.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => output.stderr.push(chunk));
    // A program that does not read its input may be gone before all of it is written.
    child.stdin.on('error', () => undefined);
    child.stdin.end(options.input);
    child.once('error', reject);
    child.once('close', (code) => {
      resolve({
        // Without one it was killed together with its machine.
        code: code ?? 137,
        stdout: Buffer.concat(output.stdout).toString('utf8'),
        stderr: Buffer.concat(output.stderr).toString('utf8'),
      });
    });
  });
}
