import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { DisruptionAction } from '../../machine-config/api/node-disruption-policy.js';
import type { Host } from './host.js';
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
    await (action === 'reload' ? systemctl.reloadUnit(unit) : systemctl.restart(unit));
    if (wasActive && !(await isOneshot(steps.host.root, unit))) mustRun.push(unit);
  }
  for (const unit of mustRun) {
    await steps.step(`looking whether ${unit} runs`);
    if (!(await systemctl.isActive(unit))) throw new Error(`${unit} ended right after it had the new files`);
  }
}

/**
 * Gives services, last one first, what they had before: those that were stopped run again, those that were acted upon
 * are told of the old files. Returns what could not be done, in sentences: the files are back all the same.
 */
export async function undoServices(host: Host, begun: readonly BegunService[]): Promise<string[]> {
  const problems: string[] = [];
  for (const service of begun.toReversed()) {
    try {
      await undoService(host, service);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      problems.push(`${service.unit} could not get its old files into effect: ${why}`);
    }
  }
  return problems;
}

async function undoService(host: Host, { unit, action, wasActive }: BegunService): Promise<void> {
  const { systemctl } = host;
  if (action === 'stop') {
    await host.beforeStep(`undo: starting ${unit}`);
    return systemctl.start(unit);
  }
  if (action === 'reload') {
    await host.beforeStep(`undo: reloading ${unit}`);
    // Where it failed so that it ended, it has to come back.
    return (await systemctl.isActive(unit)) ? systemctl.reloadUnit(unit) : systemctl.start(unit);
  }
  if (wasActive || (await isOneshot(host.root, unit))) {
    await host.beforeStep(`undo: restarting ${unit}`);
    await systemctl.resetFailed?.(unit);
    return systemctl.restart(unit);
  }
  await host.beforeStep(`undo: stopping ${unit}`);
  return systemctl.stop(unit);
}

/** It does its work and ends: that it does not run says nothing, and its work is to be done again with the old files. */
async function isOneshot(root: string, unit: string): Promise<boolean> {
  const path = await findUnitFile(root, unit);
  if (path === undefined) return false;
  const text = await readFile(join(root, path), 'utf8');
  const types = [...text.matchAll(/^\s*Type\s*=\s*(\S*)/gm)].map(([, type]) => type);
  return types.at(-1) === 'oneshot';
}
