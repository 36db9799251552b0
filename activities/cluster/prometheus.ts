import { existsSync, readFileSync } from 'node:fs';
import { rootCertificates } from 'node:tls';
import { Agent, request, type Dispatcher } from 'undici';
import type { Gate } from '../../machine-config/api/rollout-policy.js';
import { queryVerdict, waits, type GateVerdict } from '../../machine-config/pool/gate-verdicts.js';

/** More than that is no answer to a question of yes or no. */
const LARGEST_ANSWER_BYTES = 1_048_576;

/** Where distributions keep the authorities that the host trusts, an organisation's own among them. */
const SYSTEM_AUTHORITIES = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/ssl/cert.pem',
];

export type PrometheusQuery = NonNullable<Gate['prometheus']>;

/** Asks Prometheus servers. One that does not answer, or not with a clear result, does not pass. Never throws. */
export class Prometheus {
  readonly #timeoutMilliseconds: number;
  readonly #authorities: () => string[];
  #dispatcher: Dispatcher | undefined;

  /** `authorities`: whom to trust, in PEM; default: those of Node.js and of the host. */
  constructor(timeoutMilliseconds: number, authorities = systemAuthorities) {
    this.#timeoutMilliseconds = timeoutMilliseconds;
    this.#authorities = authorities;
  }

  async ask({ url, query, passes = 'Empty' }: PrometheusQuery): Promise<GateVerdict> {
    try {
      return await this.#ask(url, query, passes);
    } catch (error) {
      return waits(`${url} could not be asked: ${wordsOf(error, this.#timeoutMilliseconds)}`);
    }
  }

  async #ask(url: string, query: string, wanted: 'Empty' | 'NotEmpty'): Promise<GateVerdict> {
    const signal = AbortSignal.timeout(this.#timeoutMilliseconds);
    // As a form, since a query of several kilobytes is too long for an address.
    const { statusCode, body } = await request(addressOf(url), {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
      body: new URLSearchParams({ query }).toString(),
      dispatcher: this.#connections(),
      signal,
    });
    const answer = parsed(await readBounded(body));
    // A query that is wrong is told with 400 or 422 and a body like any other answer.
    if (statusCode !== 200 && (statusCode < 400 || statusCode >= 500 || answer === undefined)) {
      return waits(`${url} answered ${statusCode}`);
    }
    return queryVerdict(answer, wanted);
  }

  #connections(): Dispatcher {
    // Authorities are read once: a renewed bundle is taken with the next start, as by other programs.
    this.#dispatcher ??= new Agent({ connect: { ca: this.#authorities() } });
    return this.#dispatcher;
  }
}

function addressOf(url: string): URL {
  const address = new URL(url);
  address.pathname = `${address.pathname.replace(/\/+$/u, '')}/api/v1/query`;
  return address;
}

async function readBounded(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > LARGEST_ANSWER_BYTES) throw new Error('its answer is larger than 1 MiB: let the query return less');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function wordsOf(error: unknown, timeoutMilliseconds: number): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'TimeoutError') return `no answer within ${timeoutMilliseconds / 1000} s`;
  const cause = error instanceof AggregateError ? (error.errors[0] as unknown) : error.cause;
  return cause instanceof Error && cause.message !== '' ? cause.message : error.message;
}

function systemAuthorities(): string[] {
  const bundle = SYSTEM_AUTHORITIES.find((file) => existsSync(file));
  return bundle === undefined ? [...rootCertificates] : [...rootCertificates, readFileSync(bundle, 'utf8')];
}
