import { ApplicationFailure } from '@temporalio/common';
import { Agent, ProxyAgent, request, type Dispatcher } from 'undici';
import { ConnectionReader, type ClusterSource, type Connection } from './kubeconfig.js';
import { refusedCall, unansweredCall, type FailedCall, type StatusBody } from './failures.js';

/** Files of credentials are looked at again after this time; a 401 looks at once. */
const RECHECK_MILLISECONDS = 60_000;

export interface Call extends FailedCall {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Path and query. */
  readonly path: string;
  readonly body?: object;
  readonly contentType?: string;
  readonly signal?: AbortSignal;
}

export interface Answer {
  readonly status: number;
  readonly text: string;
  readonly retryAfterSeconds?: number;
}

interface Limits {
  readonly signal: AbortSignal;
  /** Longest silence within the body, in milliseconds. */
  readonly bodyTimeout?: number;
}

interface Open {
  readonly connection: Connection;
  readonly dispatcher: Dispatcher;
}

export interface TransportOptions {
  /** Longest wait for the whole answer of a call; a watch has it for the headers only. */
  readonly timeoutSeconds: number;
  readonly userAgent: string;
}

/** HTTP to one API server: keeps connections, reads rotated credentials again, knows nothing of kinds. */
export class Transport {
  private readonly reader: ConnectionReader;
  private readonly options: TransportOptions;
  private open: Promise<Open> | undefined;
  private checkedAt = 0;

  constructor(source: ClusterSource, options: TransportOptions) {
    this.reader = new ConnectionReader(source);
    this.options = options;
  }

  /** Any answer, errors too. Throws ApiUnavailable when there is none in time. */
  async send(call: Call): Promise<Answer> {
    const open = await this.opened(call);
    const timeout = AbortSignal.timeout(this.options.timeoutSeconds * 1000);
    const signal = call.signal === undefined ? timeout : AbortSignal.any([timeout, call.signal]);
    try {
      const response = await this.dispatch(open, call, { signal });
      return { status: response.statusCode, text: await response.body.text(), ...retryAfter(response) };
    } catch (error) {
      throw this.unanswered(open, call, error, timeout.aborted);
    }
  }

  /** The body of an answer that goes on until the server or the signal ends it; throws for every answer but 200. */
  async stream(call: Call & { signal: AbortSignal }, silenceSeconds: number): Promise<AsyncIterable<Buffer>> {
    const open = await this.opened(call);
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), this.options.timeoutSeconds * 1000);
    const signal = AbortSignal.any([late.signal, call.signal]);
    try {
      const response = await this.dispatch(open, call, { signal, bodyTimeout: silenceSeconds * 1000 });
      if (response.statusCode === 200) return response.body;
      const body = parseStatus(await response.body.text());
      throw refusedCall(call, { status: response.statusCode, body, ...retryAfter(response) });
    } catch (error) {
      throw error instanceof ApplicationFailure ? error : this.unanswered(open, call, error, late.signal.aborted);
    } finally {
      clearTimeout(timer);
    }
  }

  async close(): Promise<void> {
    const open = await this.open?.catch(() => undefined);
    this.open = undefined;
    await open?.dispatcher.destroy();
  }

  /** A plugin that asks a person to log in may take its time: no limit yet. */
  private async opened(call: FailedCall): Promise<Open> {
    try {
      return await this.current();
    } catch (error) {
      throw unansweredCall(call, `no way to the cluster: ${reasonOf(error)}`, error);
    }
  }

  private async dispatch(open: Open, call: Call, limits: Limits): Promise<Dispatcher.ResponseData> {
    const response = await this.attempt(open, call, limits);
    const renewed = response.statusCode === 401 ? await this.renew(open) : undefined;
    if (renewed === undefined) return response;
    await response.body.dump();
    return this.attempt(renewed, call, limits);
  }

  private attempt({ connection, dispatcher }: Open, call: Call, limits: Limits): Promise<Dispatcher.ResponseData> {
    const { authorization } = connection;
    return request(connection.server + call.path, {
      ...limits,
      dispatcher,
      method: call.method,
      headers: {
        accept: 'application/json',
        'user-agent': this.options.userAgent,
        ...(call.body === undefined ? {} : { 'content-type': call.contentType ?? 'application/json' }),
        ...(authorization === undefined ? {} : { authorization }),
      },
      ...(call.body === undefined ? {} : { body: JSON.stringify(call.body) }),
    });
  }

  private current(): Promise<Open> {
    const now = Date.now();
    if (this.open !== undefined && now - this.checkedAt > RECHECK_MILLISECONDS) {
      this.checkedAt = now;
      if (this.reader.isStale()) this.forget();
    }
    this.open ??= this.connect();
    return this.open;
  }

  private async connect(): Promise<Open> {
    this.checkedAt = Date.now();
    try {
      const connection = await this.reader.read();
      return { connection, dispatcher: makeDispatcher(connection) };
    } catch (error) {
      this.open = undefined;
      throw error;
    }
  }

  /** Reads the credentials again; absent if they are still those that were used. */
  private async renew(used: Open): Promise<Open | undefined> {
    const current = await this.current();
    if (current !== used) return current;
    const connection = await this.reader.read();
    if (JSON.stringify(connection) === JSON.stringify(used.connection)) return undefined;
    this.forget();
    const renewed = { connection, dispatcher: makeDispatcher(connection) };
    this.open = Promise.resolve(renewed);
    return renewed;
  }

  /** Lets running calls of the old connection finish. */
  private forget(): void {
    const old = this.open;
    this.open = undefined;
    old?.then(({ dispatcher }) => dispatcher.close()).catch(() => undefined);
  }

  private unanswered({ connection }: Open, call: Call, error: unknown, late: boolean): ApplicationFailure {
    const aborted = call.signal?.aborted === true;
    // A server may refuse an outdated certificate before it answers anything: the next call looks at the files first.
    if (!aborted) this.checkedAt = Number.NEGATIVE_INFINITY;
    const why = late ? `no answer within ${this.options.timeoutSeconds} s` : aborted ? 'aborted' : reasonOf(error);
    return unansweredCall(call, `the API server ${connection.server} could not be reached: ${why}`, error);
  }
}

/** undici wraps the interesting error. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  if (cause instanceof Error && cause.message !== '') return cause.message;
  if (error instanceof AggregateError && error.errors[0] instanceof Error) return error.errors[0].message;
  return error.message === '' ? error.name : error.message;
}

function makeDispatcher({ tls, proxyUrl }: Connection): Dispatcher {
  const connect = { ...tls, keepAlive: true, keepAliveInitialDelay: 30_000 };
  return proxyUrl === undefined ? new Agent({ connect }) : new ProxyAgent({ uri: proxyUrl, requestTls: connect });
}

function retryAfter(response: Dispatcher.ResponseData): { retryAfterSeconds?: number } {
  const seconds = Number(response.headers['retry-after']);
  return Number.isFinite(seconds) && seconds > 0 ? { retryAfterSeconds: seconds } : {};
}

/** A proxy in between may answer in plain text. */
export function parseStatus(body: string): StatusBody {
  try {
    const value: unknown = JSON.parse(body);
    if (typeof value === 'object' && value !== null) return value;
  } catch {
    // Falls through: the text is the message.
  }
  return { message: body };
}
