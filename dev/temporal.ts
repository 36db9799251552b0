import { isAbsolute, join } from 'node:path';
import { Connection } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import type { Supervisor, LabProcess } from './processes/supervisor.js';
import { findFreePorts, isPortFree } from './processes/free-ports.js';
import { waitUntil } from './processes/wait-until.js';
import type { TemporalDevConfig } from './temporal-config.js';

export interface LabTemporal {
  /** `127.0.0.1:41234`, for `Connection.connect` and TEMPORAL_ADDRESS. */
  readonly address: string;
  /** Undefined where temporal-dev.yaml turns the UI off. */
  readonly uiUrl: string | undefined;
  readonly namespace: string;
  readonly databaseFile: string;
  readonly pid: number | undefined;
  readonly logFile: string;
  /** For crash tests; resolves when the server has ended (SIGSTOP and SIGCONT: at once). */
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** Starts it again on the same ports and the same database; resolves when workflows can be started. */
  restart(): Promise<void>;
  /** Resolves when a workflow can be started. */
  waitUntilReady(): Promise<void>;
}

export interface TemporalStart {
  readonly supervisor: Supervisor;
  readonly program: string;
  readonly config: TemporalDevConfig;
}

/** A just-started server on a busy machine. */
const READY_TIMEOUT_MS = 60_000;

/** Starts `temporal server start-dev` as the config says and waits until workflows can be started on it. */
export async function startTemporal({ supervisor, program, config }: TemporalStart): Promise<LabTemporal> {
  const { ip, namespace } = config.server;
  const databaseFile = isAbsolute(config.server.databaseFile)
    ? config.server.databaseFile
    : join(supervisor.directory, config.server.databaseFile);
  await assertFree('server.port', ip, config.server.port);
  if (config.ui.enabled) await assertFree('ui.port', ip, config.ui.port);
  const [freePort = 0, freeUiPort = 0, httpPort = 0, metricsPort = 0] = await findFreePorts(4, ip);
  const port = config.server.port || freePort;
  const uiPort = config.ui.port || freeUiPort;
  const args = temporalArguments(config, { databaseFile, port, uiPort, httpPort, metricsPort });
  const server = await supervisor.run({ id: 'temporal', command: program, args });
  const host = ip.includes(':') ? `[${ip}]` : ip;
  const address = `${host}:${port}`;
  const waitUntilReady = () => waitForTemporal(server, address, config);
  await waitUntilReady();
  await setRetention(address, config);
  return {
    address,
    uiUrl: config.ui.enabled ? `http://${host}:${uiPort}` : undefined,
    namespace,
    databaseFile,
    logFile: server.logFile,
    get pid() {
      return server.pid;
    },
    kill: (signal) => server.kill(signal),
    waitUntilReady,
    async restart() {
      await server.kill('SIGKILL');
      await server.restart();
      await waitUntilReady();
    },
  };
}

/**
 * A taken port must be found before: the server that holds it may be a Temporal server too, whose answers would pass for
 * those of the one that is about to fail.
 */
async function assertFree(field: string, ip: string, port: number): Promise<void> {
  if (port === 0 || (await isPortFree(port, ip))) return;
  throw new Error(
    `${field} ${port} of temporal-dev.yaml is in use on ${ip}: stop what listens there, or write 0 for a free port`,
  );
}

interface Places {
  readonly databaseFile: string;
  readonly port: number;
  readonly uiPort: number;
  readonly httpPort: number;
  readonly metricsPort: number;
}

/** Every port is named, so that a restart comes back on the same ones. */
function temporalArguments(config: TemporalDevConfig, places: Places): string[] {
  const pairs = (option: string, values: object, format: (value: unknown) => string) =>
    Object.entries(values).flatMap(([key, value]) => [option, `${key}=${format(value)}`]);
  return [
    ...['server', 'start-dev', '--log-level', 'warn', '--log-format', 'json', '--ip', config.server.ip],
    ...['--port', String(places.port), '--http-port', String(places.httpPort)],
    ...['--metrics-port', String(places.metricsPort), '--db-filename', places.databaseFile],
    ...['--namespace', config.server.namespace],
    ...(config.ui.enabled ? ['--ui-port', String(places.uiPort), '--ui-disable-news-fetch'] : ['--headless']),
    ...pairs('--search-attribute', config.searchAttributes, String),
    ...pairs('--sqlite-pragma', config.sqlitePragmas, String),
    ...pairs('--dynamic-config-value', config.dynamicConfig, (value) => JSON.stringify(value)),
  ];
}

/**
 * A server whose port answers may still say `Namespace not found` for seconds, and search attributes come later than
 * that. So all parts that a start needs are asked: frontend and history (a workflow that does not exist must be reported
 * as exactly that), matching, and visibility with our attributes. Nothing is left behind in the namespace.
 */
async function waitForTemporal(server: LabProcess, address: string, config: TemporalDevConfig): Promise<void> {
  await waitUntil(
    async () => {
      const connection = await Connection.connect({ address, connectTimeout: 1_000 });
      try {
        return await connection.withDeadline(Date.now() + 2_000, () => answersAsReady(connection, config));
      } finally {
        await connection.close();
      }
    },
    { what: `Temporal to be ready on ${address}`, timeoutMs: READY_TIMEOUT_MS, check: () => server.assertRunning() },
  );
  server.assertRunning();
}

async function answersAsReady({ workflowService }: Connection, config: TemporalDevConfig): Promise<boolean> {
  const { namespace } = config.server;
  await workflowService.describeNamespace({ namespace });
  const probe = { workflowId: 'drydock-lab-readiness-probe' };
  const answer = await workflowService.describeWorkflowExecution({ namespace, execution: probe }).then(
    () => '',
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
  if (!/workflow(?: execution)? not found/i.test(answer)) throw new Error(answer);
  await workflowService.describeTaskQueue({ namespace, taskQueue: { name: 'drydock-lab-readiness-probe' } });
  const attributes = Object.entries(config.searchAttributes).filter(([, type]) => type === 'Keyword');
  const query = attributes.map(([name]) => `${name} = "probe"`).join(' AND ');
  await workflowService.countWorkflowExecutions({ namespace, query });
  return true;
}

async function setRetention(address: string, config: TemporalDevConfig): Promise<void> {
  const connection = await Connection.connect({ address });
  try {
    await connection.workflowService.updateNamespace({
      namespace: config.server.namespace,
      config: { workflowExecutionRetentionTtl: msToTs(config.server.retention * 1000) },
    });
  } finally {
    await connection.close();
  }
}
