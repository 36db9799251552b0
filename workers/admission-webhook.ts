import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import type { Logger } from 'pino';
import { watchFiles } from '../activities/process/watched-files.js';
import { answerReview } from '../machine-config/admission/review.js';
import type { AdmissionContext } from '../machine-config/admission/question.js';
import { formatAddress, listenAt } from '../activities/process/listen.js';

export interface AdmissionWebhookOptions {
  /** `host:port`. */
  readonly address: string;
  readonly keyFile: string;
  readonly certificateFile: string;
  /** What objects are judged against, as it is now. */
  readonly context: () => AdmissionContext;
  readonly logger: Logger;
}

export interface AdmissionWebhook {
  /** `https://host:port/validate`, with the port that was chosen if 0 was asked for. */
  readonly url: string;
  close(): void;
}

export const WEBHOOK_PATH = '/validate';

/** An object of the API has at most 1.5 MiB; a change carries the old and the new one. */
const MAX_BODY_BYTES = 8 * 1024 * 1024;
/** The API server gives up before. */
const REQUEST_MILLISECONDS = 15_000;

/**
 * Serves the validating webhook: the API server asks it whether an object may be stored.
 *
 * @throws where the address cannot be listened at, or key and certificate cannot be used.
 */
export async function serveAdmission(options: AdmissionWebhookOptions): Promise<AdmissionWebhook> {
  const { address, keyFile, certificateFile, logger } = options;
  const watching = new AbortController();
  const pair = await watchFiles([keyFile, certificateFile], {
    signal: watching.signal,
    onChange: (contents) => {
      useFor(server, contents, options);
    },
    onError: (err) => logger.warn({ err }, 'The webhook keeps its present certificate'),
  });
  const server: Server = createServer(tlsOptions(pair, options), (request, response) => {
    answer(request, response, options).catch((err: unknown) => {
      logger.error({ err }, 'An admission review was not answered');
      send(response, 500, { error: 'the review failed; the log of the control worker says why' });
    });
  });
  server.requestTimeout = REQUEST_MILLISECONDS;
  try {
    const bound = await listenAt(server, { address, purpose: 'the webhook', variable: 'DRYDOCK_WEBHOOK_ADDRESS' });
    return {
      url: `https://${formatAddress(bound)}${WEBHOOK_PATH}`,
      close: () => {
        watching.abort();
        server.close();
        server.closeAllConnections();
      },
    };
  } catch (error) {
    watching.abort();
    throw error;
  }
}

type Files = Pick<AdmissionWebhookOptions, 'keyFile' | 'certificateFile' | 'logger'>;

function useFor(server: Server, pair: readonly Buffer[], options: Files): void {
  try {
    server.setSecureContext(tlsOptions(pair, options));
    options.logger.info('The webhook uses its new certificate');
  } catch (err) {
    // The two files are written one after the other: in between they are no pair.
    options.logger.warn({ err }, 'The webhook keeps its present certificate');
  }
}

/** @throws one line, where key and certificate are no pair. */
function tlsOptions([key, cert]: readonly Buffer[], { keyFile, certificateFile }: Files): SecureContextOptions {
  const tls: SecureContextOptions = { key, cert, minVersion: 'TLSv1.2' };
  try {
    createSecureContext(tls);
    return tls;
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new Error(
      `${certificateFile} and ${keyFile} cannot serve TLS (${why}): write a certificate in PEM and the key that belongs to it`,
      { cause },
    );
  }
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { context }: AdmissionWebhookOptions,
): Promise<void> {
  const { status, body } = await answerTo(request, context);
  send(response, status, body);
}

async function answerTo(
  request: IncomingMessage,
  context: AdmissionWebhookOptions['context'],
): Promise<{ status: number; body: object }> {
  const refuse = (status: number, error: string) => ({ status, body: { error } });
  if (request.url?.split('?')[0] !== WEBHOOK_PATH) return refuse(404, `there is ${WEBHOOK_PATH}`);
  if (request.method !== 'POST') return refuse(405, 'only POST is answered');
  const body = await readBody(request);
  if (body === undefined) return refuse(413, `the body is larger than ${MAX_BODY_BYTES} bytes`);
  const outcome = answerReview(parseJson(body), context());
  return outcome.ok ? { status: 200, body: outcome.review } : refuse(400, outcome.error);
}

/** Undefined: it is too large. */
async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function send(response: ServerResponse, status: number, body: object): void {
  if (response.headersSent) return;
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
