import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Systemctl } from './host.js';
import { removeIfEmpty } from './offline-systemctl.js';
import type { ProgramResult, RunProgram } from './run-program.js';
import { enablementLinks } from './units.js';

/** Reading unit files again takes seconds on a host with thousands of units. */
const MANAGER_TIMEOUT_MS = 120_000;
/** A job: units that need longer to start or stop than this are given up, while systemd goes on with them. */
const JOB_TIMEOUT_MS = 300_000;
/** systemctl's exit code for a unit that is not loaded. */
const NOT_LOADED = 5;
/** Not `--quiet`, which keeps the reason of a failed job to itself. */
const OPTIONS = ['--no-ask-password', '--no-pager'];
/** From `activating` to `deactivating`: a unit that is about to stop does not count as running. */
const ACTIVE_STATES: ReadonlySet<string> = new Set(['active', 'reloading', 'refreshing', 'activating', 'maintenance']);

/** What is not the reason among the lines of systemctl. */
const HINT = /^(See |Hint: |Warning: |\(Reason |Removed |Created symlink )/;

/**
 * `systemctl` of the host in which this process runs. Every error is one line: what was asked, of which unit, and what
 * systemd said; a unit that failed also says with which result and exit status. Nothing of the journal is repeated,
 * since services log what they like.
 */
export function createSystemctl({ root, run }: { readonly root: string; readonly run: RunProgram }): Systemctl {
  const call = (args: readonly string[], timeoutMs: number) => run('systemctl', [...OPTIONS, ...args], { timeoutMs });

  async function manage(...args: readonly string[]): Promise<void> {
    const result = await call(args, MANAGER_TIMEOUT_MS);
    if (result.code !== 0) throw failed(args, result);
  }

  async function job(verb: string, unit: string): Promise<void> {
    const result = await call([verb, '--', unit], JOB_TIMEOUT_MS);
    if (result.code === 0) return;
    throw failed([verb, unit], result, await outcomeOf(unit, call));
  }

  return {
    async enablement(unit) {
      const result = await run('systemctl', ['--no-ask-password', '--no-pager', 'is-enabled', '--', unit]);
      // It prints the state and ends with an exit code for most of them.
      const state = /^[a-z-]+$/m.exec(result.stdout.trim())?.[0];
      if (state !== undefined) return state;
      // systemd before 254 has no word for it.
      if (/No such file or directory|does not exist|not found/.test(result.stderr)) return 'not-found';
      throw failed(['is-enabled', unit], result);
    },
    enable: (units) => (units.length === 0 ? Promise.resolve() : manage('enable', '--', ...units)),
    async disable(units) {
      for (const unit of units) {
        const result = await call(['disable', '--', unit], MANAGER_TIMEOUT_MS);
        if (result.code === 0) continue;
        // Without its file systemd does not know which links are the unit's, and leaves them.
        if ((await removeDanglingLinks(root, unit)) === 0 && !isUnknown(result))
          throw failed(['disable', unit], result);
      }
    },
    reload: () => manage('daemon-reload'),
    async isActive(unit) {
      // A template is no unit that could run.
      if (/@\.[a-z]+$/.test(unit)) return false;
      const result = await call(['show', '--property=ActiveState', '--', unit], MANAGER_TIMEOUT_MS);
      const state = propertiesIn(result.stdout).get('ActiveState');
      // No answer is not the answer that it does not run: what ran has to run again after an undo.
      if (result.code !== 0 || state === undefined) throw failed(['show', unit], result);
      return ACTIVE_STATES.has(state);
    },
    start: (unit) => job('start', unit),
    async stop(unit) {
      const result = await call(['stop', '--', unit], JOB_TIMEOUT_MS);
      if (result.code !== 0 && result.code !== NOT_LOADED) throw failed(['stop', unit], result);
    },
    restart: (unit) => job('restart', unit),
    reloadUnit: (unit) => job('reload', unit),
    async resetFailed(unit) {
      const result = await call(['reset-failed', '--', unit], MANAGER_TIMEOUT_MS);
      if (result.code !== 0 && !result.stderr.includes('not loaded')) throw failed(['reset-failed', unit], result);
    },
  };
}

/** The links by which a unit without a file is enabled; returns how many there were. */
async function removeDanglingLinks(root: string, unit: string): Promise<number> {
  const links = await enablementLinks(root, unit);
  for (const { path } of links) {
    await rm(join(root, path), { force: true });
    await removeIfEmpty(dirname(join(root, path)));
  }
  return links.length;
}

function isUnknown({ stderr }: ProgramResult): boolean {
  return /does not exist|No such file or directory|not found/.test(stderr);
}

/** How a unit came to its end, as words for a message; empty where systemd says nothing of it. */
async function outcomeOf(
  unit: string,
  call: (args: readonly string[], timeoutMs: number) => Promise<ProgramResult>,
): Promise<string> {
  const wanted = ['LoadState', 'Result', 'ExecMainCode', 'ExecMainStatus'];
  const result = await call(['show', `--property=${wanted.join(',')}`, '--', unit], MANAGER_TIMEOUT_MS);
  const values = propertiesIn(result.stdout);
  const outcome = values.get('Result');
  if (result.code !== 0 || values.get('LoadState') !== 'loaded' || outcome === undefined || outcome === 'success') {
    return '';
  }
  const status = values.get('ExecMainStatus') ?? '0';
  // CLD_EXITED is 1; 2 and 3 are a signal.
  const how = values.get('ExecMainCode') === '1' ? `exit status ${status}` : `signal ${status}`;
  return status === '0' ? ` (result ${outcome})` : ` (result ${outcome}, ${how})`;
}

/** Lines of `KEY=value`. */
export function propertiesIn(text: string): Map<string, string> {
  return new Map(
    text.split('\n').flatMap((line) => {
      const at = line.indexOf('=');
      return at < 1 ? [] : [[line.slice(0, at), line.slice(at + 1)] as const];
    }),
  );
}

function failed(asked: readonly string[], result: ProgramResult, outcome = ''): Error {
  const words = asked.filter((word) => word !== '--').join(' ');
  return new Error(`systemctl ${words}: ${reasonIn(result)}${outcome}`);
}

/** What a program of systemd said last, without the hints where to read on. */
export function reasonIn({ code, stdout, stderr }: ProgramResult): string {
  const lines = `${stdout}\n${stderr}`.split('\n').map((line) => line.trim());
  return lines.findLast((line) => line !== '' && !HINT.test(line)) ?? `ended with exit code ${code}`;
}
