import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Connection } from '@temporalio/client';
import { afterEach, describe, expect, test } from 'vitest';
import { labDown, labStatus, labUp } from '../../dev/background-lab.js';
import { startLab, type Lab } from '../../dev/lab.js';
import { waitUntil } from '../../dev/processes/wait-until.js';
import { call, pidsNaming } from './kubernetes-call.js';
import { PATIENCE } from '../support/patience.js';

const labs: Lab[] = [];
const holders: ChildProcess[] = [];

afterEach(async () => {
  for (const holder of holders.splice(0)) holder.kill('SIGKILL');
  await Promise.all(labs.splice(0).map((lab) => lab.stop()));
});

async function start(options: Parameters<typeof startLab>[0] = {}): Promise<Lab> {
  const lab = await startLab(options);
  labs.push(lab);
  return lab;
}

/** A lab in another process. */
async function startHolder(...args: string[]): Promise<{ holder: ChildProcess; directory: string }> {
  const holder = fork(fileURLToPath(new URL('lab-holder.ts', import.meta.url)), args, {
    execArgv: ['--import', import.meta.resolve('tsx')],
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  holders.push(holder);
  const [directory] = (await once(holder, 'message')) as [string];
  return { holder, directory };
}

async function untilNothingIsLeft(directory: string): Promise<void> {
  await waitUntil(async () => (await pidsNaming(directory)).length === 0 && !existsSync(directory), {
    what: `nothing to be left of ${directory}`,
    timeoutMs: PATIENCE.timeout,
  });
}

describe('of a lab nothing is left', () => {
  test('when it is stopped', async () => {
    const lab = await start({ kubernetes: false });
    expect((await pidsNaming(lab.directory)).length).toBeGreaterThanOrEqual(2);
    await lab.stop();
    expect(await pidsNaming(lab.directory)).toEqual([]);
    expect(existsSync(lab.directory)).toBe(false);
    await lab.stop();
  });

  test('when its process gets SIGKILL', async () => {
    const { holder, directory } = await startHolder('lab');
    // Temporal, the supervisor, and five of Kubernetes.
    expect((await pidsNaming(directory)).length).toBeGreaterThanOrEqual(7);
    holder.kill('SIGKILL');
    await untilNothingIsLeft(directory);
  });

  test('when its process gets Ctrl-C', async () => {
    const { holder, directory } = await startHolder('one-process');
    expect(await pidsNaming(directory)).toHaveLength(2);
    holder.kill('SIGINT');
    await untilNothingIsLeft(directory);
  });

  test('when its process crashes', async () => {
    const { holder, directory } = await startHolder('one-process');
    holder.send('throw');
    await untilNothingIsLeft(directory);
  });

  test('when its supervisor is killed, while its process lives on', async () => {
    const { holder, directory } = await startHolder('one-process');
    process.kill(await supervisorOf(directory), 'SIGKILL');
    await waitUntil(async () => (await pidsNaming(directory)).length === 0, {
      what: 'no process',
      timeoutMs: PATIENCE.timeout,
    });
    expect(holder.exitCode).toBeNull();
  });

  test('after the next lab starts, when its process and its supervisor are killed at once', async () => {
    const { holder, directory } = await startHolder('one-process');
    const supervisor = await supervisorOf(directory);
    // Stopped, it cannot react to the end of the other.
    process.kill(supervisor, 'SIGSTOP');
    holder.kill('SIGKILL');
    await once(holder, 'exit');
    process.kill(supervisor, 'SIGKILL');
    await waitUntil(async () => !(await pidsNaming(directory)).includes(supervisor), {
      what: 'its end',
      timeoutMs: PATIENCE.timeout,
    });
    expect(await pidsNaming(directory)).toHaveLength(1);
    await start({ kubernetes: false });
    await untilNothingIsLeft(directory);
  });
});

async function supervisorOf(directory: string): Promise<number> {
  const recorded: unknown = JSON.parse(await readFile(join(directory, 'processes.json'), 'utf8'));
  return (recorded as { supervisor: { pid: number } }).supervisor.pid;
}

test('two labs run beside each other, and the end of one leaves the other alone', async () => {
  const [first, second] = await Promise.all([start(), start()]);
  await first.kubernetes.createNodes([{ name: 'mine' }]);
  const admin = second.kubernetes.kubeconfigPath;
  expect((await call(admin, 'GET', '/api/v1/nodes/mine')).status).toBe(404);
  expect(second.temporal.address).not.toBe(first.temporal.address);
  await first.stop();
  expect((await call(admin, 'GET', '/readyz')).body).toBe('ok');
  await (await Connection.connect({ address: second.temporal.address })).close();
});

describe('a lab with a directory of its own', () => {
  test('keeps its data there for the next one, and is not started in it twice at once', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'drydock-kept-'));
    try {
      const first = await start({ directory, temporal: false });
      await first.kubernetes.createNodes([{ name: 'kept' }]);
      await expect(startLab({ directory, temporal: false })).rejects.toThrow(/belongs to a lab that is running/);
      await first.stop();
      expect(await pidsNaming(directory)).toEqual([]);
      const second = await start({ directory, temporal: false });
      expect((await call(second.kubernetes.kubeconfigPath, 'GET', '/api/v1/nodes/kept')).status).toBe(200);
      expect(() => second.temporal).toThrow('this lab was started with temporal: false');
      await second.stop();
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  });
});

test('a fixed port that is taken is named, also if another Temporal server answers there', async () => {
  const lab = await start({ kubernetes: false });
  const directory = await mkdtemp(join(tmpdir(), 'drydock-port-'));
  try {
    const file = join(directory, 'temporal-dev.yaml');
    await writeFile(file, `server:\n  port: ${lab.temporal.address.split(':')[1] ?? ''}\n`);
    await expect(startLab({ kubernetes: false, temporalConfigFile: file })).rejects.toThrow(
      /^server\.port \d+ of temporal-dev\.yaml is in use on 127\.0\.0\.1: /,
    );
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

describe('drydock lab', () => {
  test('up leaves a lab in the background that status describes and down ends', async () => {
    const state = await mkdtemp(join(tmpdir(), 'drydock-state-'));
    const before = process.env['XDG_STATE_HOME'];
    process.env['XDG_STATE_HOME'] = state;
    try {
      expect(await labStatus('t')).toMatchObject({ state: 'stopped' });
      expect(await labDown('t')).toBe(false);
      const { lab, alreadyUp } = await labUp({ name: 't', kubernetes: false }, () => undefined);
      expect(alreadyUp).toBe(false);
      expect(lab.kubernetes).toBeNull();
      expect(await labUp({ name: 't', kubernetes: false }, () => undefined)).toEqual({ lab, alreadyUp: true });

      const well = await labStatus('t');
      expect(well).toMatchObject({ state: 'running', problems: [] });
      expect(well.processes.map(({ name }) => name)).toEqual(['temporal']);

      process.kill(well.processes[0]!.pid, 'SIGKILL');
      const ill = await labStatus('t');
      expect(ill.problems).toEqual([expect.stringMatching(/^Temporal does not answer: /)]);

      expect(await labDown('t')).toBe(true);
      expect(await pidsNaming(lab.directory)).toEqual([]);
      expect(existsSync(lab.directory)).toBe(false);
      expect(await labStatus('t')).toMatchObject({ state: 'stopped' });
    } finally {
      await labDown('t');
      if (before === undefined) delete process.env['XDG_STATE_HOME'];
      else process.env['XDG_STATE_HOME'] = before;
      await rm(state, { recursive: true, force: true });
    }
  });
});
