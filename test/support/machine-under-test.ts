import { copyFile, rm, writeFile, mkdir, chmod } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import type { Lab } from '../../dev/lab.js';
import type { CommandOptions, Machine } from '../../dev/real-nodes/real-node.js';
import { installNodeWorker, unpackNodePackage } from '../../dev/real-nodes/worker-package.js';
import { waitUntil } from '../../dev/processes/wait-until.js';
import type { MachineConfig } from '../../machine-config/api/machine-config.js';

const DRIVER = fileURLToPath(new URL('host-driver.mjs', import.meta.url));
const DRIVER_IN_MACHINE = '/srv/host-driver.mjs';
const NODE = '/opt/drydock/current/bin/node';
const LIBRARY = '/opt/drydock/current/lib';
const HOLDING = '/run/host-driver-holding';
const GO_ON = '/run/host-driver-go-on';
const FILLER = '/srv/filler';
const DRIVE_TIMEOUT_MS = 60_000;

/** See host-driver.mjs. */
export interface DriverRequest {
  readonly do: 'apply' | 'recover' | 'forget' | 'check';
  readonly target?: MachineConfig;
  readonly dieAt?: number;
  readonly failAt?: number;
  readonly holdAt?: number;
  readonly booted?: boolean;
  readonly sshAccount?: string;
}

export interface DriverEnd {
  readonly code: number;
  readonly answers: readonly Readonly<Record<string, unknown>>[];
}

/** What the driver says of an apply that succeeded. */
export interface AppliedAnswer {
  readonly steps: number;
  readonly cost: string;
  readonly warnings: readonly string[];
}

/** A real machine without Kubernetes and Temporal, on which a test runs what the packaged node worker is made of. */
export class MachineUnderTest {
  readonly machine: Machine;
  readonly root: string;

  private constructor(machine: Machine) {
    this.machine = machine;
    this.root = machine.root;
  }

  /** Puts the package's program onto a machine; the service itself is not configured and does not start. */
  static async prepare(lab: Lab, machine: Machine): Promise<MachineUnderTest> {
    const packageFolder = await unpackNodePackage(lab, () => undefined);
    await installNodeWorker({ root: machine.root, packageFolder });
    return MachineUnderTest.withPackage(machine);
  }

  /** A machine on which the package is installed already. */
  static async withPackage(machine: Machine): Promise<MachineUnderTest> {
    await copyFile(DRIVER, join(machine.root, DRIVER_IN_MACHINE));
    return new MachineUnderTest(machine);
  }

  succeed(command: readonly string[], options?: CommandOptions): Promise<string> {
    return this.machine.succeed(command, options);
  }

  /** A file as somebody else than Drydock puts it there. */
  async write(path: string, contents: string, mode = 0o644): Promise<void> {
    const place = join(this.root, path);
    await mkdir(dirname(place), { recursive: true });
    await writeFile(place, contents);
    await chmod(place, mode);
  }

  async drive(request: DriverRequest, prefix: readonly string[] = []): Promise<DriverEnd> {
    const { code, stdout, stderr } = await this.machine.exec([...prefix, NODE, DRIVER_IN_MACHINE], {
      input: JSON.stringify({ library: LIBRARY, ...request }),
      timeoutMs: DRIVE_TIMEOUT_MS,
    });
    if (code !== 0 && code !== 137) throw new Error(`the driver ended with exit code ${code}: ${stderr}`);
    const lines = stdout.split('\n').filter((line) => line !== '');
    return { code, answers: lines.map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>) };
  }

  /** Applies and confirms; it must succeed. */
  async apply(target: MachineConfig, more: Pick<DriverRequest, 'sshAccount'> = {}): Promise<AppliedAnswer> {
    const { answers } = await this.drive({ do: 'apply', target, ...more });
    const last = answers.at(-1);
    expect(last).toMatchObject({ applied: target.metadata.name });
    await this.drive({ do: 'forget' });
    return last as unknown as AppliedAnswer;
  }

  /** Kills the driver after so many milliseconds, unless it has ended before. */
  driveAndKill(request: DriverRequest, afterMs: number): Promise<DriverEnd> {
    return this.drive(request, ['timeout', '--signal=KILL', (afterMs / 1000).toFixed(3)]);
  }

  /** Starts the driver, which stops at `holdAt` until `goOn`, or until the machine loses its power. */
  async driveAndHold(request: DriverRequest): Promise<{ goOn(): Promise<void>; ended: Promise<DriverEnd | Error> }> {
    await this.succeed(['rm', '-f', HOLDING, GO_ON]);
    const ended = this.drive(request).catch((error: unknown) => error as Error);
    await waitUntil(async () => (await this.machine.exec(['test', '-e', HOLDING])).code === 0, {
      what: `the driver to hold at step ${request.holdAt ?? 0}`,
      timeoutMs: DRIVE_TIMEOUT_MS,
    });
    return {
      ended,
      goOn: async () => {
        await this.succeed(['touch', GO_ON]);
      },
    };
  }

  /** What is not as the config on the disk says. */
  async drift(): Promise<unknown> {
    return (await this.drive({ do: 'check' })).answers.at(-1)?.['drift'];
  }

  /** Leaves so many MiB free on the machine's disk. */
  async fill(leaveMebibytes: number): Promise<void> {
    const left = async () => Number((await this.succeed(['df', '--output=avail', '-B1M', '/'])).split('\n')[1]);
    const size = (await left()) - leaveMebibytes;
    if (leaveMebibytes > 0) await this.succeed(['fallocate', '-l', `${size}M`, FILLER]);
    // To the last block, also those that are kept for root.
    else await this.machine.exec(['dd', 'if=/dev/zero', `of=${FILLER}`, 'bs=64k', 'status=none']);
  }

  async unfill(): Promise<void> {
    await rm(join(this.root, FILLER), { force: true });
  }
}
