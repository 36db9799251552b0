import { createServer, type Server } from 'node:http';
import { METRICS_CONTENT_TYPE } from '../activities/cluster/metrics-text.js';

export interface StatusSource {
  /** The metrics of now, in the text format of Prometheus. */
  metrics(): string;
  /** Why the process has to be started again; undefined: it has not. */
  whyNotAlive(): string | undefined;
  /** Why it does not see or do its work at the moment; undefined: it does. */
  whyNotReady(): string | undefined;
}

export interface StatusServer {
  /** `http://host:port`, with the port that was chosen if 0 was asked for. */
  readonly url: string;
  close(): void;
}

const HOST_AND_PORT = /^(?:\[(?<v6>[0-9a-fA-F:.]+)\]|(?<host>[^:[\]]*)):(?<port>\d{1,5})$/;

/**
 * Serves `/metrics`, `/healthz` and `/readyz` at `host:port`.
 *
 * @throws where the address is not of that form, or cannot be listened at.
 */
export async function serveStatus(address: string, source: StatusSource): Promise<StatusServer> {
  const { v6, host = '', port = '' } = HOST_AND_PORT.exec(address)?.groups ?? {};
  if (port === '')
    throw new Error(`${address} is no address to serve metrics at: write host:port, such as 0.0.0.0:9100`);
  const server = createServer(({ method = '', url = '' }, response) => {
    const { status, text, type = 'text/plain; charset=utf-8' } = answerTo(source, method, url);
    response.writeHead(status, { 'content-type': type }).end(text);
  });
  const name = v6 ?? (host === '' ? undefined : host);
  await listening(server, { port: Number(port), ...(name === undefined ? {} : { host: name }) }, address);
  const bound = server.address();
  const boundPort = typeof bound === 'object' && bound !== null ? bound.port : Number(port);
  return {
    url: `http://${v6 === undefined ? host || 'localhost' : `[${v6}]`}:${boundPort}`,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function listening(server: Server, at: { port: number; host?: string }, address: string): Promise<void> {
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(at, resolve);
    });
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`metrics cannot be served at ${address}: ${why}; set DRYDOCK_METRICS_ADDRESS to a free one`, {
      cause,
    });
  }
}

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly type?: string;
}

function answerTo(source: StatusSource, method: string, url: string): Answer {
  if (method !== 'GET' && method !== 'HEAD') return { status: 405, text: 'only GET is answered\n' };
  switch (url.split('?')[0]) {
    case '/metrics':
      return { status: 200, text: source.metrics(), type: METRICS_CONTENT_TYPE };
    case '/healthz':
      return health(source.whyNotAlive());
    case '/readyz':
      return health(source.whyNotAlive() ?? source.whyNotReady());
    default:
      return { status: 404, text: 'there are /metrics, /healthz and /readyz\n' };
  }
}

function health(problem: string | undefined): Answer {
  return { status: problem === undefined ? 200 : 503, text: `${problem ?? 'ok'}\n` };
}
