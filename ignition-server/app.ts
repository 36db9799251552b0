import { createReadStream } from 'node:fs';
import type { Server } from 'node:https';
import rateLimit from '@fastify/rate-limit';
import fastify, { LogController, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { negotiateVersion, type ServedVersion } from '../machine-config/first-boot/accept.js';
import { accessControl, type AccessRules } from './access.js';
import type { ServerIdentity } from './certificates.js';
import type { ServerMetrics } from './metrics.js';
import type { ServedPackage } from './node-package.js';
import { lengthOf, streamOf } from './served-body.js';
import type { ServedAnswer } from './served-configs.js';

/** What /readyz says. */
export interface Readiness {
  readonly isReady: boolean;
  /** Why not, or what is to be known although it is. */
  readonly says: string;
  /** The API server is away: what is given out is what was known last. */
  readonly isStale: boolean;
}

export interface IgnitionAppOptions {
  readonly configs: { answer(pool: string, version: ServedVersion): ServedAnswer };
  readonly nodePackage: ServedPackage;
  readonly identity: Pick<ServerIdentity, 'certificate' | 'key'>;
  /** PEM: of client certificates; absent: none is asked for. */
  readonly clientAuthority?: string | undefined;
  readonly access: Omit<AccessRules, 'needsClientCertificate'>;
  /** Of one address, for configs and packages; 0: any number. */
  readonly requestsPerMinute: number;
  readonly readiness: () => Readiness;
  readonly metrics: ServerMetrics;
  readonly logger: Logger;
}

export type IgnitionApp = FastifyInstance<Server>;

/** For the headers of a request. */
const REQUEST_MS = 10_000;
/** A connection on which nothing moves. A package of 50 MB over a slow line moves. */
const SILENCE_MS = 60_000;
/** Ignition tries again for ever after any status from 500 on, and gives up for ever after any other. */
const TRY_AGAIN = 503;
const TRY_AGAIN_SECONDS = '5';
const METHODS = ['GET', 'HEAD'];
/** Kubernetes names are no longer. */
const LONGEST_POOL = 253;

/**
 * The server's routes. What is given out to whom is decided here; every refusal has a body that says why. Nothing of a
 * request is logged but which pool and version an address asked for.
 */
export async function makeApp(options: IgnitionAppOptions): Promise<IgnitionApp> {
  const { identity, clientAuthority, metrics, logger, readiness } = options;
  const app: IgnitionApp = fastify<Server>({
    https: {
      cert: identity.certificate,
      key: identity.key,
      minVersion: 'TLSv1.2',
      ...(clientAuthority === undefined ? {} : { ca: clientAuthority, requestCert: true, rejectUnauthorized: false }),
    },
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true }),
    exposeHeadRoutes: false,
    requestTimeout: REQUEST_MS,
    connectionTimeout: SILENCE_MS,
    forceCloseConnections: 'idle',
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: LONGEST_POOL },
  });
  await app.register(rateLimit, { global: false, errorResponseBuilder: tooMany });
  const asked = new WeakMap<FastifyRequest, Asked>();
  app.addHook('onRequest', onlyReading);
  app.addHook('onResponse', (request, reply, done) => {
    const { pool = '', version = '' } = asked.get(request) ?? {};
    const route = request.routeOptions.url ?? 'none';
    const status = reply.statusCode;
    metrics.answered({ route, pool: isKnown(status) ? pool : '', version, status, seconds: reply.elapsedTime / 1000 });
    if (pool !== '') logger.info({ pool, version, status, address: request.ip }, 'asked for a config');
    done();
  });
  app.setNotFoundHandler((_, reply) =>
    refuse(reply, 404, 'there are /config/<pool>, /artifact/<sha256>, /healthz, /readyz and /metrics'),
  );
  app.setErrorHandler((error: Error & { statusCode?: number }, request, reply) => {
    const status = error.statusCode ?? 500;
    if (status >= 500 && status !== TRY_AGAIN)
      logger.error({ err: error, url: request.routeOptions.url }, 'a request failed');
    return refuse(reply, status, status === 500 ? 'the server failed; its log says why' : error.message);
  });
  app.route({ method: METHODS, url: '/healthz', handler: (_, reply) => reply.send({ status: 200 }) });
  app.route({
    method: METHODS,
    url: '/readyz',
    handler(_, reply) {
      const { isReady, says, isStale } = readiness();
      return reply.status(isReady ? 200 : 503).send({ ready: isReady, stale: isStale, reason: says });
    },
  });
  app.route({
    method: METHODS,
    url: '/metrics',
    handler: async (_, reply) => reply.type(metrics.registry.contentType).send(await metrics.registry.metrics()),
  });
  guardedRoutes(app, options, asked);
  return app;
}

interface Asked {
  readonly pool?: string;
  readonly version?: string;
}

/** What is given only to whom it is for, and not too often. */
function guardedRoutes(app: IgnitionApp, options: IgnitionAppOptions, asked: WeakMap<FastifyRequest, Asked>): void {
  const { access, clientAuthority, nodePackage, configs, requestsPerMinute } = options;
  const limited =
    requestsPerMinute === 0 ? {} : { config: { rateLimit: { max: requestsPerMinute, timeWindow: 60_000 } } };
  const needsClientCertificate = clientAuthority !== undefined;
  const mayHaveConfigs = accessControl({ ...access, needsClientCertificate });
  // The package is no secret, and what fetches it cannot always send a token.
  const mayHavePackages = accessControl({ ...access, token: () => undefined, needsClientCertificate: false });
  const guard = (isDenied: typeof mayHaveConfigs) => async (request: FastifyRequest, reply: FastifyReply) => {
    const denial = isDenied({
      address: request.ip,
      authorization: request.headers.authorization,
      isCertified: isCertified(request.raw.socket),
    });
    if (denial !== undefined) await refuse(reply, denial.status, denial.reason);
  };
  app.route<{ Params: { pool: string } }>({
    method: METHODS,
    url: '/config/:pool',
    ...limited,
    preHandler: guard(mayHaveConfigs),
    handler(request, reply) {
      const { pool } = request.params;
      const negotiated = negotiateVersion(request.headers.accept);
      if (negotiated.outcome === 'refuse') {
        asked.set(request, { pool });
        return refuse(reply, 406, negotiated.reason);
      }
      const { version } = negotiated;
      asked.set(request, { pool, version });
      return sendConfig(request, reply, { pool, answer: configs.answer(pool, version) });
    },
  });
  app.route<{ Params: { sha256: string } }>({
    method: METHODS,
    url: '/artifact/:sha256',
    ...limited,
    preHandler: guard(mayHavePackages),
    handler(request, reply) {
      if (request.params.sha256 !== nodePackage.sha256) {
        return refuse(reply, 404, `the package that is served is ${nodePackage.sha256}; fetch the config again`);
      }
      reply.type('application/gzip').header('content-length', nodePackage.bytes);
      return request.method === 'HEAD' ? reply.send() : reply.send(createReadStream(nodePackage.file));
    },
  });
}

function isCertified(socket: object): boolean {
  return 'authorized' in socket && socket.authorized === true;
}

function sendConfig(
  request: FastifyRequest,
  reply: FastifyReply,
  { pool, answer }: { pool: string; answer: ServedAnswer },
): FastifyReply {
  switch (answer.outcome) {
    case 'served': {
      const { body } = answer;
      reply.type('application/json').header('content-length', lengthOf(body)).header('cache-control', 'no-store');
      return request.method === 'HEAD' ? reply.send() : reply.send(streamOf(body));
    }
    case 'refused':
      return refuse(reply, 406, answer.reason);
    case 'notYet':
      return refuse(reply.header('retry-after', TRY_AGAIN_SECONDS), TRY_AGAIN, answer.reason);
    case 'unknownPool':
      return refuse(reply, 404, `there is no MachineConfigPool ${JSON.stringify(pool)} in this cluster`);
  }
}

async function onlyReading(request: FastifyRequest, reply: FastifyReply): Promise<void> {
  if (METHODS.includes(request.method)) return;
  await refuse(reply.header('allow', METHODS.join(', ')), 405, 'only GET and HEAD are answered');
}

function refuse(reply: FastifyReply, status: number, reason: string): FastifyReply {
  return reply.status(status).send({ status, reason });
}

/** Not 429, after which a machine would never boot. */
function tooMany(): Error {
  return Object.assign(new Error('too many requests from this address; try again in a minute'), {
    statusCode: TRY_AGAIN,
  });
}

/** So that nobody fills the memory with names of pools that there are not. */
function isKnown(status: number): boolean {
  return status === 200 || status === 406 || status === TRY_AGAIN;
}
