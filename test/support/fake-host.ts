import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, readdir, lstat, readlink, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { onTestFinished } from 'vitest';
import { readIfThere, writeDurably } from '../../activities/host/durable.js';
import { applyPlan } from '../../activities/host/apply.js';
import type { Host, OsBackend, OsState, Systemctl } from '../../activities/host/host.js';
import type { Journal } from '../../activities/host/journal.js';
import { planUpdate, type UpdatePlan } from '../../activities/host/plan.js';
import { bootSimulatedHost, createSimulatedHost, seedSimulatedHost } from '../../activities/host/simulated-host.js';
import { openStateStore, type StateStore } from '../../activities/host/state-store.js';
import { DRYDOCK_ANNOTATIONS } from '../../machine-config/api/flavour.js';
import type { MachineConfig } from '../../machine-config/api/machine-config.js';
import type { NodeDisruptionPolicy } from '../../machine-config/api/node-disruption-policy.js';
import { freezePolicies } from '../../machine-config/change/frozen-policies.js';
import { mergePolicies } from '../../machine-config/change/policies.js';

const run = promisify(execFile);

/** A machine in a folder of its own, with everything that a test wants to turn. */
export interface FakeHost {
  readonly root: string;
  /** Replaced by a test that wants the machine to be another one in some way. */
  host: Host;
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

/** The machine with some of its systemctl replaced; `real` is what it had. */
export function replaceSystemctl(fake: FakeHost, change: (real: Systemctl) => Partial<Systemctl>): void {
  const { systemctl } = fake.host;
  fake.host = { ...fake.host, systemctl: { ...systemctl, ...change(systemctl) } };
}

/** A machine whose operating system is an image, with a kernel and extensions to choose; booted by `bootImage`. */
export function imageBackend(root: string): OsBackend {
  const plain: OsState = { kernelArguments: [], osImageURL: '', kernelType: 'default', extensions: [] };
  const read = async (name: string) => {
    const text = await readIfThere(join(root, 'var/lib/drydock-lab', name));
    return text === undefined ? plain : (JSON.parse(text) as OsState);
  };
  return {
    name: 'bootc',
    refusal: () => undefined,
    staged: () => read('os-staged.json'),
    stage: (wanted) => writeDurably(join(root, 'var/lib/drydock-lab/os-staged.json'), JSON.stringify(wanted)),
    booted: () => read('os-booted.json'),
    deployment: () => Promise.resolve(''),
  };
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

const NOW = '2026-11-30T12:00:00.000Z';

/** Plans the machine's update from what it is at. */
export async function planTo({ host, store }: FakeHost, target: MachineConfig): Promise<UpdatePlan> {
  return planUpdate({ host, store, current: await store.currentConfig(), target, sshUser: 'core' });
}

/** Carries a plan out, and leaves its journal. */
export function applyTo({ host, store }: FakeHost, plan: UpdatePlan): Promise<Journal> {
  return applyPlan({ host, store, plan, from: 'before', now: NOW });
}

/** Plans, applies and confirms. */
export async function bring(fake: FakeHost, target: MachineConfig): Promise<{ plan: UpdatePlan; journal: Journal }> {
  const plan = await planTo(fake, target);
  const journal = await applyTo(fake, plan);
  await fake.store.removeJournal();
  await fake.store.collectGarbage();
  return { plan, journal };
}

/** Begins something and loses the machine's power when it comes to a step; what was begun never ends. */
export async function losePowerAt(
  fake: FakeHost,
  isThere: (step: string, index: number) => boolean,
  begin: () => Promise<unknown>,
): Promise<void> {
  fake.steps.length = 0;
  await new Promise<void>((resolve, reject) => {
    fake.onStep = (step, index) => {
      if (!isThere(step, index)) return;
      resolve();
      return new Promise<never>(() => undefined);
    };
    begin().then(() => resolve(), reject);
  });
  fake.onStep = () => undefined;
}

type Spec = NonNullable<MachineConfig['spec']>;

/** A config as a pool renders it, with a name that is only a name. */
export function rendered(name: string, ignition: object, spec: Partial<Spec> = {}): MachineConfig {
  return { metadata: { name }, spec: { config: { ignition: { version: '3.4.0' }, ...ignition }, ...spec } };
}

/** The config with the disruption policies that a pool's render freezes into it. */
export function withPolicies(config: MachineConfig, own: NodeDisruptionPolicy): MachineConfig {
  const annotations = { [DRYDOCK_ANNOTATIONS.disruptionPolicies]: freezePolicies(mergePolicies(own), 1) };
  return { ...config, metadata: { ...config.metadata, annotations } };
}

export const reload = (serviceName: string) => ({ type: 'Reload' as const, reload: { serviceName } });
export const restart = (serviceName: string) => ({ type: 'Restart' as const, restart: { serviceName } });

export const file = (path: string, text: string, more: object = {}): object => ({
  path,
  contents: { source: `data:;base64,${Buffer.from(text).toString('base64')}` },
  ...more,
});
