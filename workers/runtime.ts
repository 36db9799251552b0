import { DefaultLogger, makeTelemetryFilterString, Runtime, type LogLevel } from '@temporalio/worker';
import { pino, type Logger } from 'pino';

/** The one shape of logs: JSON lines on standard output. */
export function createLogger(name: string, level: string): Logger {
  return pino({ name, level });
}

const LEVELS = { TRACE: 'trace', DEBUG: 'debug', INFO: 'info', WARN: 'warn', ERROR: 'error' } as const satisfies Record<
  LogLevel,
  string
>;

export interface RuntimeChoices {
  readonly logger: Logger;
  /** Where Prometheus finds the SDK's metrics, `host:port`; absent: nowhere. */
  readonly metricsAddress?: string;
  /** Signals on which every Worker of the process shuts down gracefully; default: the SDK's. */
  readonly shutdownSignals?: NodeJS.Signals[];
}

/** To be called once a process, before the first connection: logs of the SDK, its core and activities go through pino. */
export function installRuntime({ logger, metricsAddress, shutdownSignals }: RuntimeChoices): Runtime {
  const sdkLogger = new DefaultLogger('TRACE', ({ level, message, meta }) => {
    const { error, ...rest } = meta ?? {};
    logger[LEVELS[level]]({ ...rest, ...(error === undefined ? {} : { err: error as unknown }) }, message);
  });
  return Runtime.install({
    logger: sdkLogger,
    telemetryOptions: {
      logging: { forward: {}, filter: makeTelemetryFilterString({ core: 'WARN', other: 'ERROR' }) },
      ...(metricsAddress === undefined ? {} : { metrics: { prometheus: { bindAddress: metricsAddress } } }),
    },
    ...(shutdownSignals === undefined ? {} : { shutdownSignals }),
  });
}
