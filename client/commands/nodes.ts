import type { ExitName } from '../exit-codes.js';
import { nodeReports, type NodeReport } from '../node-report.js';
import { getPool } from '../rollouts.js';
import type { Session } from '../session.js';
import { ageOf, renderTable, shortConfig, type Column } from '../table.js';
import type { Colour } from '../terminal.js';

export async function nodes(session: Session, { pool }: { pool?: string | undefined }): Promise<ExitName> {
  const cluster = await session.cluster();
  if (pool !== undefined) await getPool(cluster, pool);
  const reports = await nodeReports(cluster, pool);
  session.print({ nodes: reports }, () => {
    if (reports.length === 0) return 'No nodes.';
    return renderTable(columns(session.format === 'wide', session.world.now()), reports, session.paint);
  });
  return 'ok';
}

const STATE_COLOURS: Readonly<Record<string, Colour>> = {
  Done: 'green',
  Working: 'yellow',
  Degraded: 'red',
  Unreconcilable: 'red',
};
/** A reason is up to 2,000 characters; a table shows its beginning. */
const REASON_LENGTH = 100;

function columns(wide: boolean, now: Date): Column<NodeReport>[] {
  const config = wide ? (name: string | null): string => name ?? '' : shortConfig;
  const clip = (text: string): string =>
    wide || text.length <= REASON_LENGTH ? text : `${text.slice(0, REASON_LENGTH - 1)}…`;
  const problem = (wrong: boolean): Colour | undefined => (wrong ? 'red' : undefined);
  return [
    { title: 'NAME', value: ({ name }) => name },
    { title: 'POOL', value: ({ pool }) => pool ?? '' },
    { title: 'STATE', value: ({ state }) => state, colour: ({ state }) => STATE_COLOURS[state] },
    { title: 'CURRENT', value: ({ current }) => config(current) },
    { title: 'DESIRED', value: ({ desired }) => config(desired) },
    { title: 'READY', value: ({ ready }) => (ready ? 'True' : 'False'), colour: ({ ready }) => problem(!ready) },
    {
      title: 'SCHEDULABLE',
      value: ({ schedulable }) => (schedulable ? 'True' : 'False'),
      colour: ({ schedulable }) => (schedulable ? undefined : 'yellow'),
    },
    { title: 'WORKER', value: ({ worker }) => worker ?? '' },
    { title: 'AGE', value: ({ createdAt }) => ageOf(createdAt, now) },
    { title: 'REASON', value: ({ reason }) => clip(reason.replace(/\s+/g, ' ')) },
  ];
}
