import { runProgram, type RunProgram } from '../activities/host/run-program.js';

/** What a service tells systemd of itself; see sd_notify(3). */
export interface ServiceManager {
  /** The start is done: what guards the node runs. */
  ready(): Promise<void>;
  /** A line for `systemctl status`. */
  status(text: string): Promise<void>;
  /** The end has begun. */
  stopping(): Promise<void>;
  /** Ends the signs of life. */
  close(): void;
}

export interface NotifyOptions {
  /** NOTIFY_SOCKET; absent: no service manager listens, and nothing is sent. */
  readonly socket?: string;
  /** WATCHDOG_USEC; absent: no signs of life are asked for. */
  readonly watchdogMicroseconds?: number;
  readonly run?: RunProgram;
  /** Hears that a message did not get out. */
  readonly onError: (error: unknown) => void;
}

const NOTIFY_TIMEOUT_MS = 10_000;
/** Signs of life a watchdog period: one may be late, and one may be lost. */
const SIGNS_A_PERIOD = 3;

/**
 * Tells systemd how the service is, through `systemd-notify`, since Node.js has no datagram sockets of the file system.
 * A sign of life is sent by the event loop, and only if the loop was on time: a process that only just crawls is
 * restarted like one that hangs. No failure of a message is a failure of the service.
 */
export function notifyServiceManager(options: NotifyOptions): ServiceManager {
  const { socket, watchdogMicroseconds, run = runProgram, onError } = options;
  if (socket === undefined) return SILENT;
  const send = async (...assignments: readonly string[]) => {
    try {
      const environment = { NOTIFY_SOCKET: socket };
      const result = await run('systemd-notify', assignments, { environment, timeoutMs: NOTIFY_TIMEOUT_MS });
      if (result.code !== 0) throw new Error(`systemd-notify: ended with exit code ${result.code}`);
    } catch (error) {
      onError(error);
    }
  };
  const stop = watchdogMicroseconds === undefined ? () => undefined : signsOfLife(watchdogMicroseconds / 1000, send);
  return {
    ready: () => send('READY=1'),
    status: (text) => send(`STATUS=${text.replace(/\s+/g, ' ')}`),
    stopping: () => send('STOPPING=1'),
    close: stop,
  };
}

const SILENT: ServiceManager = {
  ready: () => Promise.resolve(),
  status: () => Promise.resolve(),
  stopping: () => Promise.resolve(),
  close: () => undefined,
};

function signsOfLife(periodMs: number, send: (message: string) => Promise<void>): () => void {
  const everyMs = periodMs / SIGNS_A_PERIOD;
  let due = performance.now() + everyMs;
  const timer = setInterval(() => {
    const now = performance.now();
    const isOnTime = now - due < everyMs;
    due = now + everyMs;
    if (isOnTime) void send('WATCHDOG=1');
  }, everyMs);
  return () => clearInterval(timer);
}
