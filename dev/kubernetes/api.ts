import { Agent, request } from 'node:https';
import type { Credentials } from './kubeconfig.js';

/** An answer of the API server that is not a success. */
export class ApiStatusError extends Error {
  override readonly name = 'ApiStatusError';
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/**
 * The few plain calls that the lab itself makes (is it ready, create Nodes, switch a kubelet off and on). The product's
 * client is activities/kubernetes; this one stays free of it, so that a fault there cannot hide in the lab.
 */
export class LabApi {
  readonly #server: string;
  readonly #agent: Agent;

  constructor({ server, authority, client }: Credentials) {
    this.#server = server;
    this.#agent = new Agent({ ca: authority, key: client.key, cert: client.certificate, keepAlive: true });
  }

  /** A PATCH is a JSON merge patch. @throws ApiStatusError */
  call(method: Method, path: string, body?: object): Promise<unknown> {
    const payload = body === undefined ? undefined : JSON.stringify(body);
    const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    return new Promise((resolve, reject) => {
      const call = request(
        new URL(path, this.#server),
        {
          method,
          agent: this.#agent,
          timeout: 15_000,
          headers: payload === undefined ? {} : { 'content-type': type, 'content-length': Buffer.byteLength(payload) },
        },
        (response) => {
          const chunks: Buffer[] = [];
          response.on('data', (chunk: Buffer) => chunks.push(chunk));
          response.once('error', reject);
          response.once('end', () => {
            const text = Buffer.concat(chunks).toString('utf8');
            const status = response.statusCode ?? 0;
            if (status >= 200 && status < 300) resolve(parse(text));
            else reject(new ApiStatusError(status, `${method} ${path}: ${status} ${reasonOf(text)}`));
          });
        },
      );
      call.once('timeout', () => call.destroy(new Error(`${method} ${path}: no answer in 15 s`)));
      call.once('error', reject);
      call.end(payload);
    });
  }

  /** Ends the connections that are kept open. */
  close(): void {
    this.#agent.destroy();
  }
}

/** JSON where it is JSON; /readyz answers `ok`. */
function parse(text: string): unknown {
  return text.startsWith('{') ? (JSON.parse(text) as unknown) : text;
}

function reasonOf(text: string): string {
  const answer = parse(text);
  return typeof answer === 'object' && answer !== null && 'message' in answer ? String(answer.message) : text;
}
