import { createServer } from 'node:http';
import { METRICS_CONTENT_TYPE } from '../activities/cluster/metrics-text.js';
import { formatAddress, listenAt } from '../activities/process/listen.js';

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

/**
 * Serves `/metrics`, `/healthz` and `/readyz` at `host:port`.
 *
 * @throws where the address is not of that form, or cannot be listened at.
 */
export async function serveStatus(address: string, source: StatusSource): Promise<StatusServer> {
  const server = createServer(({ method = '', url = '' }, response) => {
    const { status, text, type = 'text/plain; charset=utf-8' } = answerTo(source, method, url);
    response.writeHead(status, { 'content-type': type }).end(text);
  });
  const bound = await listenAt(server, { address, purpose: 'metrics', variable: 'DRYDOCK_METRICS_ADDRESS' });
  return {
    url: `http://${formatAddress(bound)}`,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
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
