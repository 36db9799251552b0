import { setTimeout as sleep } from 'node:timers/promises';
import { loadClientConnectConfig, type ClientConnectConfig } from '@temporalio/envconfig';
import { Connection } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';

export interface TemporalAddress {
  readonly address?: string;
  readonly namespace?: string;
}

export interface TemporalConnection {
  readonly connection: NativeConnection;
  readonly namespace: string;
}

const FIRST_DELAY_MS = 250;
const LONGEST_DELAY_MS = 10_000;

/** Where Temporal is and how to sign in: TOML profile and `TEMPORAL_*`, with what is given here on top. */
export function temporalConfig(override: TemporalAddress = {}): ClientConnectConfig & { namespace: string } {
  const { connectionOptions, namespace } = loadClientConnectConfig();
  return {
    connectionOptions: {
      ...connectionOptions,
      ...(override.address === undefined ? {} : { address: override.address }),
    },
    namespace: override.namespace ?? namespace ?? 'default',
  };
}

/**
 * Connects for workers. A server that is not there yet is waited for, since a node and its Temporal may start in any
 * order; `onRetry` hears of each attempt that failed.
 */
export async function connectTemporal(
  override: TemporalAddress = {},
  options: { readonly signal?: AbortSignal; readonly onRetry?: (error: unknown, delayMs: number) => void } = {},
): Promise<TemporalConnection> {
  const { connectionOptions, namespace } = temporalConfig(override);
  for (let delay = FIRST_DELAY_MS; ; delay = Math.min(delay * 2, LONGEST_DELAY_MS)) {
    try {
      // A native connection that fails takes the SDK's runtime with it, and what is measured there. So it is only tried
      // where a plain one can be made.
      await (await Connection.connect(connectionOptions)).close();
      return { connection: await NativeConnection.connect(connectionOptions), namespace };
    } catch (error) {
      if (options.signal?.aborted) throw error;
      options.onRetry?.(error, delay);
      await sleep(delay, undefined, options.signal === undefined ? {} : { signal: options.signal });
    }
  }
}
