import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { HostBusyError, withHostLock } from '../../../activities/host/lock.js';

const run = promisify(execFile);
const SCRIPT = fileURLToPath(new URL('../../../deploy/node/guard/host-lock.sh', import.meta.url));

/** The shell reads /proc, as the hosts that it is for have it. */
describe.runIf(process.platform === 'linux')("the host's lock, taken by the installation in a shell", () => {
  let root: string;
  let state: string;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'drydock-lock-'));
    state = join(root, 'var/lib/drydock');
    await mkdir(state, { recursive: true });
  });
  afterEach(() => rm(root, { recursive: true, force: true }));

  const bootId = async () => (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim();
  const inWorker = (work: () => Promise<void> = () => Promise.resolve()) =>
    withHostLock({ root, bootId }, 'apply', work);
  const program = (then: string) => `set -eu; STATE=${state}; . ${SCRIPT}; ${then}`;
  const inShell = async (then: string) => (await run('sh', ['-c', program(then)])).stdout.trim();
  const tryInShell = () => inShell('if take_host_lock; then echo taken; release_host_lock; else echo busy; fi');
  /** A shell that has taken it and waits for the end of its input. */
  const holdInShell = async (): Promise<ChildProcess> => {
    const holder = spawn('sh', ['-c', program('take_host_lock && echo taken && read -r _; release_host_lock')], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const [said] = (await once(holder.stdout, 'data')) as [Buffer];
    expect(said.toString()).toBe('taken\n');
    return holder;
  };

  it('is not had while a step of the worker holds it, and is afterwards', async () => {
    await inWorker(async () => expect(await tryInShell()).toBe('busy'));
    expect(await tryInShell()).toBe('taken');
    expect(await readdir(state)).toEqual([]);
  });

  it('keeps the steps of the worker away', async () => {
    const holder = await holdInShell();
    const busy = await inWorker().catch((error: unknown) => error);
    expect(busy).toBeInstanceOf(HostBusyError);
    expect(busy).toMatchObject({ message: expect.stringMatching(/^an upgrade of Drydock is at work/) as string });
    holder.stdin?.end('done\n');
    await once(holder, 'exit');
    await inWorker();
    expect(await readdir(state)).toEqual([]);
  });

  it('is free for the worker when an installation was killed', async () => {
    const holder = await holdInShell();
    holder.kill('SIGKILL');
    await once(holder, 'exit');
    await inWorker();
    expect(await readdir(state)).toEqual([]);
  });

  it('is free for the next installation when one was killed', async () => {
    const holder = await holdInShell();
    holder.kill('SIGKILL');
    await once(holder, 'exit');
    expect(await tryInShell()).toBe('taken');
    expect(await readdir(state)).toEqual([]);
  });

  it('is not quiet while an update is open, and says so', async () => {
    const wait = 'say() { :; }; if wait_for_quiet 0; then echo quiet; else echo "$why"; fi';
    const journal = join(state, 'journal.json');
    await run('touch', [journal]);
    expect(await inShell(wait)).toBe('an update of this node is not finished');
    await inWorker(async () => expect(await inShell(wait)).toBe('apply is at work on this host'));
    await rm(journal);
    expect(await inShell(wait)).toBe('quiet');
  });
});
