import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, readdir, lstat, readlink, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { onTestFinished } from 'vitest';
import type { Host } from '../../activities/host/host.js';
import { bootSimulatedHost, createSimulatedHost, seedSimulatedHost } from '../../activities/host/simulated-host.js';
import { openStateStore, type StateStore } from '../../activities/host/state-store.js';
import type { MachineConfig } from '../../machine-config/api/machine-config.js';

const run = promisify(execFile);

/** A machine in a folder of its own, with everything that a test wants to turn. */
export interface FakeHost {
  readonly root: string;
  readonly host: Host;
  readonly store: StateStore;
  /** Steps so far, in words. */
  readonly steps: string[];
  /** Called before each step; throws to fail it, never resolves to lose the power. */
  onStep: (step: string, index: number) => Promise<void> | void;
  /** Reboots that were asked for: the reasons. */
  readonly reboots: string[];
  /** The machine goes through a reboot. */
  boot(): Promise<string>;
  path(path: string): string;
  text(path: string): Promise<string>;
}

/** Memory where there is some: what is written here is synced all the time. */
const FOLDER = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();

/** A new machine, or one that is in every bit like another. Removed when the test ends. */
export async function fakeHost(copyOf?: FakeHost): Promise<FakeHost> {
  const root = await mkdtemp(join(FOLDER, 'drydock-host-'));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  if (copyOf === undefined) await seedSimulatedHost(root);
  else await run('cp', ['-a', `${copyOf.root}/.`, root]);
  const steps: string[] = [];
  const reboots: string[] = [];
  const real = createSimulatedHost({ root, rebootDelayMs: 0, onDown: (why) => reboots.push(why) });
  const fake: FakeHost = {
    root,
    steps,
    reboots,
    onStep: () => undefined,
    store: openStateStore(root),
    host: {
      ...real,
      async beforeStep(step) {
        steps.push(step);
        await fake.onStep(step, steps.length - 1);
      },
    },
    boot: () => bootSimulatedHost(root),
    path: (path) => join(root, path),
    text: (path) => readFile(join(root, path), 'utf8'),
  };
  return fake;
}

/** Everything in a folder: type, mode, owner and contents of each path. What is below `except` is left out. */
export async function treeOf(root: string, except: readonly string[] = []): Promise<Record<string, string>> {
  const tree: Record<string, string> = {};
  async function visit(path: string): Promise<void> {
    if (except.some((prefix) => path.startsWith(prefix))) return;
    const stats = await lstat(join(root, path));
    const attributes = `${(stats.mode & 0o7777).toString(8)} ${stats.uid}:${stats.gid}`;
    if (stats.isSymbolicLink()) tree[path] = `link ${await readlink(join(root, path))} ${stats.uid}:${stats.gid}`;
    else if (stats.isFile()) tree[path] = `file ${attributes} ${await readFile(join(root, path), 'latin1')}`;
    else {
      tree[path] = `directory ${attributes}`;
      for (const name of (await readdir(join(root, path))).sort()) await visit(join(path, name));
    }
  }
  await visit('/');
  return tree;
}

type Spec = NonNullable<MachineConfig['spec']>;

/** A config as a pool renders it, with a name that is only a name. */
export function rendered(name: string, ignition: object, spec: Partial<Spec> = {}): MachineConfig {
  return { metadata: { name }, spec: { config: { ignition: { version: '3.4.0' }, ...ignition }, ...spec } };
}

export const file = (path: string, text: string, more: object = {}): object => ({
  path,
  contents: { source: `data:;base64,${Buffer.from(text).toString('base64')}` },
  ...more,
});
