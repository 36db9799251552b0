import { stopReason } from '../../activities/cluster/stop-switch.js';
import { machineConfiguration } from '../pool-outlook.js';
import { progressLines } from '../rollout-progress.js';
import { rolloutReports, type RolloutReport } from '../rollout-reports.js';
import { getPool, startRollout } from '../rollouts.js';
import type { ExitName } from '../exit-codes.js';
import type { Session } from '../session.js';
import { renderTable, shortConfig, type Column } from '../table.js';
import type { Colour } from '../terminal.js';
import { watchRollout, type RolloutChange, type WatchEnd } from '../watch-rollout.js';

export async function rolloutStart(session: Session, pool: string): Promise<ExitName> {
  const cluster = await session.cluster();
  await getPool(cluster, pool);
  const started = await startRollout(cluster, await session.engine(), pool);
  session.print(started, () => `${pool}: yes: ${started.answer}`);
  if (started.paused) session.note(`${pool} is paused: no node update starts before drydock pool resume ${pool}`);
  const stop = stopReason(await machineConfiguration(cluster));
  if (stop !== undefined) session.note(`everything is stopped (${stop}): no node update starts before drydock go`);
  return 'ok';
}

export async function rolloutStatus(session: Session, pool?: string): Promise<ExitName> {
  const cluster = await session.cluster();
  const engine = await session.engineIfReachable();
  const reports = await rolloutReports(cluster, { engine, name: pool, now: session.world.now() });
  session.print({ pools: reports }, () => {
    if (reports.length === 0) return 'No pools: run drydock install.';
    const table = renderTable(statusColumns(session.format === 'wide'), reports, session.paint);
    const details = reports.flatMap((report) => detailLines(report));
    return details.length === 0 ? table : `${table}\n\n${details.join('\n')}`;
  });
  return 'ok';
}

const yesNo = (value: boolean): string => (value ? 'True' : 'False');

function statusColumns(wide: boolean): Column<RolloutReport>[] {
  const config = wide ? (name: string | null): string => name ?? '' : shortConfig;
  return [
    { title: 'POOL', value: ({ name }) => name },
    { title: 'CONFIG', value: ({ target }) => config(target) },
    {
      title: 'UPDATED',
      value: ({ updated }) => yesNo(updated),
      colour: ({ updated }) => (updated ? 'green' : undefined),
    },
    { title: 'UPDATING', value: ({ updating }) => yesNo(updating) },
    {
      title: 'DEGRADED',
      value: ({ degraded }) => yesNo(degraded),
      colour: ({ degraded }) => (degraded ? 'red' : undefined),
    },
    { title: 'PAUSED', value: ({ paused }) => yesNo(paused), colour: ({ paused }) => (paused ? 'yellow' : undefined) },
    { title: 'MACHINES', value: ({ machineCount }) => String(machineCount) },
    { title: 'READY', value: ({ readyMachineCount }) => String(readyMachineCount) },
    { title: 'DONE', value: ({ updatedMachineCount }) => String(updatedMachineCount) },
    { title: 'FAILED', value: ({ degradedMachineCount }) => String(degradedMachineCount) },
    { title: 'MAXUNAVAILABLE', value: ({ maxUnavailable }) => String(maxUnavailable) },
    { title: 'ROLLOUT', value: ({ engine }) => ROLLOUT_WORDS[engine.rollout] },
  ];
}

const ROLLOUT_WORDS = { running: 'running', notRunning: '', unknown: 'unknown' } as const;

/** At most this many nodes by name in one line. */
const NAMED_NODES = 30;

function detailLines(report: RolloutReport): string[] {
  const { name, message, observed, progress } = report;
  const lines = [
    ...(message === '' ? [] : [message]),
    ...(observed ? [] : ['the status is older than the spec: is the control worker running?']),
    ...waitingLines(report),
    ...(progress === undefined ? [] : progressLines(progress)),
    ...engineLines(report),
  ];
  return lines.map((line) => `${name}: ${line}`);
}

/** What the engine waits for is said by Kubernetes too, as far as it goes. */
function waitingLines({ engine, progress }: RolloutReport): string[] {
  const sentence = engine.status?.turn?.waiting?.sentence ?? progress?.waiting;
  return sentence === undefined ? [] : [`waiting: ${sentence}`];
}

function engineLines({ engine, updates = [] }: RolloutReport): string[] {
  const inFlight = engine.status?.inFlight ?? [];
  const named = inFlight.slice(0, NAMED_NODES).join(', ');
  return [
    ...(inFlight.length === 0 ? [] : [`in work: ${named}${moreThan(inFlight.length)}`]),
    ...updates.map(({ node, step, sentence }) => `${node}: ${step}: ${sentence}`),
    ...(engine.manager === 'notRunning' ? ['nothing looks after it in Temporal: is the control worker running?'] : []),
    ...(engine.problem === undefined ? [] : [engine.problem]),
  ];
}

function moreThan(count: number): string {
  return count > NAMED_NODES ? ` and ${count - NAMED_NODES} more` : '';
}

const ENDS: Record<WatchEnd, ExitName> = {
  updated: 'ok',
  degraded: 'degraded',
  deleted: 'refused',
  timedOut: 'timedOut',
  interrupted: 'interrupted',
};

export async function rolloutWatch(
  session: Session,
  pool: string,
  { timeoutSeconds }: { timeoutSeconds?: number | undefined },
): Promise<ExitName> {
  const { world } = session;
  const signal = world.interruption();
  const cluster = await session.cluster();
  await getPool(cluster, pool);
  const end = await watchRollout({
    cluster,
    engine: session.engineIfReachable(),
    pool,
    signal,
    timeoutSeconds,
    now: () => world.now(),
    onChange: (change) =>
      session.line(session.format === 'json' ? JSON.stringify(change) : changeLine(session, change)),
  });
  if (end === 'deleted') session.note(`drydock: MachineConfigPool ${pool} was deleted`);
  if (end === 'timedOut') session.note(`drydock: pool ${pool} was not Updated within ${timeoutSeconds ?? 0} s`);
  return ENDS[end];
}

function changeLine({ paint }: Session, change: RolloutChange): string {
  const time = change.at.slice(11, 19);
  const name = change.kind === 'pool' || change.kind === 'node' ? change.name : `${change.name} (${change.kind})`;
  const colour = colourOf(change);
  const sentence = colour === undefined ? change.sentence : paint(colour, change.sentence);
  return `${paint('dim', time)}  ${paint('bold', name)}  ${sentence}`;
}

function colourOf({ kind, pool, node }: RolloutChange): Colour | undefined {
  if (kind === 'problem' || pool?.degraded === true || node?.state === 'Degraded') return 'red';
  if (kind === 'waiting' || node?.state === 'Working') return 'yellow';
  return pool?.updated === true || node?.state === 'Done' ? 'green' : undefined;
}
