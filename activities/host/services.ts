import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { DisruptionAction } from '../../machine-config/api/node-disruption-policy.js';
import type { Host, Systemctl } from './host.js';
import type { BegunService } from './journal.js';
import { findUnitFile } from './units.js';

/** What services need of an update that acts on them: each thing is on the disk before it is begun. */
export interface ServiceSteps {
  readonly host: Host;
  readonly step: (words: string) => Promise<void>;
  readonly begin: (service: BegunService) => Promise<void>;
}

/** Stops units whose files go with the update. One that ended by itself meanwhile is none of ours. */
export async function stopUnits(units: readonly string[], { host, step, begin }: ServiceSteps): Promise<void> {
  for (const unit of units) {
    await step(`stopping ${unit}`);
    if (!(await host.systemctl.isActive(unit))) continue;
    await begin({ unit, action: 'stop', wasActive: true });
    await host.systemctl.stop(unit);
  }
}

/**
 * Reloads and restarts services, in order; what does not run is not reloaded. Throws what systemd says of the first one
 * that fails, and for one that ran and, once all is done, does not run any more.
 *
 * How often a service was started so far counts for nothing here and when it is undone: systemd refuses to start what was
 * started too often within a while, and it is the new files, or the old ones, that may mend it.
 */
export async function actOnServices(actions: readonly DisruptionAction[], steps: ServiceSteps): Promise<void> {
  const { systemctl } = steps.host;
  const mustRun: string[] = [];
  for (const { reload, restart } of actions) {
    const unit = restart?.serviceName ?? reload?.serviceName;
    if (unit === undefined) continue;
    const action = restart === undefined ? 'reload' : 'restart';
    await steps.step(`${action}ing ${unit}`);
    const wasActive = await systemctl.isActive(unit);
    if (action === 'reload' && !wasActive) continue;
    await steps.begin({ unit, action, wasActive });
    await (action === 'reload' ? systemctl.reloadUnit(unit) : restartAfresh(systemctl, unit));
    if (wasActive && !(await isOneshot(steps.host.root, unit))) mustRun.push(unit);
  }
  for (const unit of mustRun) {
    await steps.step(`looking whether ${unit} runs`);
    if (!(await systemctl.isActive(unit))) throw new Error(`${unit} ended right after it had the new files`);
  }
}

/**
 * Gives services, last one first, what they had before: those that were stopped run again, those that were acted upon
 * are told of the old files. One that ran before and does not at the end, although nothing failed, is started once more.
 * Returns what could not be done, in sentences: the files are back all the same.
 */
export async function undoServices(host: Host, begun: readonly BegunService[]): Promise<string[]> {
  const problems: string[] = [];
  const mustRun: string[] = [];
  const attempt = async (unit: string, work: () => Promise<void>) => {
    try {
      await work();
      return true;
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      problems.push(`${unit} could not get its old files into effect: ${why}`);
      return false;
    }
  };
  for (const service of begun.toReversed()) {
    const { unit, wasActive } = service;
    const isDone = await attempt(unit, () => undoService(host, service));
    if (isDone && wasActive) mustRun.push(unit);
  }
  for (const unit of mustRun) await attempt(unit, () => ensureRuns(host, unit));
  return problems;
}

async function undoService(host: Host, { unit, action, wasActive }: BegunService): Promise<void> {
  const { systemctl } = host;
  if (action === 'stop') {
    await host.beforeStep(`undo: starting ${unit}`);
    return startAfresh(systemctl, unit);
  }
  if (action === 'reload') {
    await host.beforeStep(`undo: reloading ${unit}`);
    // Where it failed so that it ended, it has to come back.
    return (await systemctl.isActive(unit)) ? systemctl.reloadUnit(unit) : startAfresh(systemctl, unit);
  }
  if (wasActive || (await isOneshot(host.root, unit))) {
    await host.beforeStep(`undo: restarting ${unit}`);
    return restartAfresh(systemctl, unit);
  }
  await host.beforeStep(`undo: stopping ${unit}`);
  return systemctl.stop(unit);
}

/** A job can succeed and the service be gone: a simple one has started once there is a process, whatever becomes of it. */
async function ensureRuns(host: Host, unit: string): Promise<void> {
  const { systemctl } = host;
  if ((await systemctl.isActive(unit)) || (await isOneshot(host.root, unit))) return;
  await host.beforeStep(`undo: starting ${unit} once more`);
  await startAfresh(systemctl, unit);
  if (!(await systemctl.isActive(unit))) throw new Error('it ended right after it was started with them, twice');
}

async function startAfresh(systemctl: Systemctl, unit: string): Promise<void> {
  await systemctl.resetFailed?.(unit);
  await systemctl.start(unit);
}

async function restartAfresh(systemctl: Systemctl, unit: string): Promise<void> {
  await systemctl.resetFailed?.(unit);
  await systemctl.restart(unit);
}

/** It does its work and ends: that it does not run says nothing, and its work is to be done again with the old files. */
async function isOneshot(root: string, unit: string): Promise<boolean> {
  const path = await findUnitFile(root, unit);
  if (path === undefined) return false;
  const text = await readFile(join(root, path), 'utf8');
  const types = [...text.matchAll(/^\s*Type\s*=\s*(\S*)/gm)].map(([, type]) => type);
  return types.at(-1) === 'oneshot';
}
