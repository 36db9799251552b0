import { readFile, writeFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Agent, createServer, request, type Server } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { parse, stringify } from 'yaml';
import { z } from 'zod';
import type { CertificateAuthority } from '../kubernetes/certificates.js';
import type { Audience } from './fault.js';
import type { Random } from './random.js';
import { injectedError } from './injected-error.js';

/** What goes wrong on the way to the API server; each is a share of the calls, 0 to 1. */
export interface Weather {
  readonly errors: number;
  readonly lostAnswers: number;
  /** Connections are refused. */
  readonly cut: boolean;
}
const FAIR: Weather = { errors: 0, lostAnswers: 0, cut: false };

export interface ApiProxyOptions {
  /** `https://127.0.0.1:41234` */
  readonly upstream: string;
  readonly authority: CertificateAuthority;
  /** Decides which calls go wrong. */
  readonly random: Random;
}

interface Identity {
  readonly user: string;
  readonly agent: Agent;
}

const kubeconfigSchema = z.looseObject({
  clusters: z.tuple([z.looseObject({ cluster: z.looseObject({ server: z.string() }) })]),
  users: z.tuple([
    z.looseObject({
      name: z.string(),
      user: z.looseObject({ 'client-certificate-data': z.string(), 'client-key-data': z.string() }),
    }),
  ]),
});

/** A node by its certificate; everybody else counts as a control worker. */
export function isNodeUser(user: string): boolean {
  return user.startsWith('system:node:');
}

/**
 * Stands between the workers and the API server, and lets their calls go wrong. It ends their TLS, and speaks to the API
 * server as whoever called: it holds the key of every identity that it was given, so the Node authorizer and
 * NodeRestriction see what they would see without it.
 */
export class ApiProxy {
  readonly #options: ApiProxyOptions;
  readonly #identities = new Map<string, Identity>();
  /** Open connections, and whose they are. */
  readonly #sockets = new Map<Socket, string>();
  readonly #weather = new Map<Audience, Weather>();
  /** Also those whose handshake is not over, which would keep the server from closing. */
  readonly #accepted = new Set<Socket>();
  readonly #underWay = new Set<CallUnderWay>();
  #server: Server | undefined;
  #counts = { calls: 0, errors: 0, lostAnswers: 0, cuts: 0 };

  private constructor(options: ApiProxyOptions) {
    this.#options = options;
  }

  static async start(options: ApiProxyOptions): Promise<ApiProxy> {
    const proxy = new ApiProxy(options);
    const { authority } = options;
    const { key, certificate } = authority.issueServer('chaos-proxy', { dns: ['localhost'], ip: ['127.0.0.1'] });
    const tls = { key, cert: certificate, ca: authority.certificate, requestCert: true, rejectUnauthorized: true };
    const server = createServer(tls, (incoming, answer) => proxy.#serve(incoming, answer));
    // A watch is silent for as long as nothing changes.
    server.requestTimeout = 0;
    // As long as the API server's: who reuses an idle connection shall not meet its end.
    server.keepAliveTimeout = 180_000;
    server.on('connection', (socket: Socket) => {
      proxy.#accepted.add(socket);
      socket.once('close', () => proxy.#accepted.delete(socket));
    });
    server.on('secureConnection', (socket: TLSSocket) => proxy.#accept(socket));
    server.on('tlsClientError', () => undefined);
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(0, '127.0.0.1', resolve);
    });
    proxy.#server = server;
    return proxy;
  }

  get port(): number {
    return (this.#server?.address() as AddressInfo).port;
  }

  /** How often what was made to go wrong. */
  get counts(): Readonly<{ calls: number; errors: number; lostAnswers: number; cuts: number }> {
    return this.#counts;
  }

  /** Writes a kubeconfig with the same identity that leads here, beside the one given. @returns the file. */
  async redirect(kubeconfig: string): Promise<string> {
    const config = kubeconfigSchema.parse(parse(await readFile(kubeconfig, 'utf8')));
    const [{ name, user }] = config.users;
    const decode = (text: string) => Buffer.from(text, 'base64').toString('utf8');
    const [cert, key] = [decode(user['client-certificate-data']), decode(user['client-key-data'])];
    this.#identities.set(name, {
      user: name,
      agent: new Agent({ ca: this.#options.authority.certificate, cert, key, keepAlive: true }),
    });
    config.clusters[0].cluster.server = `https://127.0.0.1:${this.port}`;
    const file = kubeconfig.replace(/\.kubeconfig$/, '.chaos.kubeconfig');
    await writeFile(file, stringify(config, { lineWidth: 0 }), { mode: 0o600 });
    return file;
  }

  /** Changes what goes wrong for an audience. A cut ends its connections in the same moment. */
  set(audience: Audience, weather: Partial<Weather>): void {
    this.#weather.set(audience, { ...(this.#weather.get(audience) ?? FAIR), ...weather });
    if (weather.cut !== true) return;
    for (const [socket, user] of this.#sockets) {
      if (!this.#weatherOf(user).cut) continue;
      this.#counts.cuts += 1;
      socket.destroy();
    }
  }

  /** Nothing goes wrong any more. */
  clear(): void {
    this.#weather.clear();
  }

  /** What goes wrong just now, for people. */
  get weather(): string[] {
    return [...this.#weather].flatMap(([audience, { errors, lostAnswers, cut }]) =>
      cut || errors > 0 || lostAnswers > 0
        ? [`${audience}: ${cut ? 'cut, ' : ''}errors ${errors}, lost answers ${lostAnswers}`]
        : [],
    );
  }

  /** Calls that have no whole answer since so many milliseconds, watches left out, for people. */
  slowerThan(ms: number): string[] {
    const now = Date.now();
    return [...this.#underWay].flatMap(({ user, what, since }) =>
      now - since < ms || what.includes('watch=true')
        ? []
        : [`${what} by ${user}, for ${Math.round((now - since) / 1000)} s`],
    );
  }

  async close(): Promise<void> {
    for (const socket of this.#accepted) socket.destroy();
    for (const { agent } of this.#identities.values()) agent.destroy();
    await new Promise((closed) => this.#server?.close(closed));
  }

  #accept(socket: TLSSocket): void {
    socket.on('error', () => undefined);
    const user = userOf(socket);
    if (this.#weatherOf(user).cut) {
      this.#counts.cuts += 1;
      socket.destroy();
      return;
    }
    this.#sockets.set(socket, user);
    socket.once('close', () => this.#sockets.delete(socket));
  }

  /** The worst of what concerns this user. */
  #weatherOf(user: string): Weather {
    const audiences: Audience[] = [isNodeUser(user) ? 'nodes' : 'control', 'everybody'];
    const all = audiences.map((audience) => this.#weather.get(audience) ?? FAIR);
    return {
      errors: Math.max(...all.map(({ errors }) => errors)),
      lostAnswers: Math.max(...all.map(({ lostAnswers }) => lostAnswers)),
      cut: all.some(({ cut }) => cut),
    };
  }

  #serve(incoming: IncomingMessage, answer: ServerResponse): void {
    const user = this.#sockets.get(incoming.socket) ?? '';
    const weather = this.#weatherOf(user);
    this.#counts.calls += 1;
    if (this.#options.random.fraction() < weather.errors) {
      this.#counts.errors += 1;
      incoming.resume();
      const { status, headers, body } = injectedError(incoming.method ?? 'GET', this.#options.random);
      answer.writeHead(status, headers).end(body);
      return;
    }
    const losesAnswer = this.#options.random.fraction() < weather.lostAnswers;
    this.#forward({ incoming, answer, user, losesAnswer });
  }

  #forward({ incoming, answer, user, losesAnswer }: Passing): void {
    const identity = this.#identities.get(user);
    if (identity === undefined) {
      answer.writeHead(401).end();
      return;
    }
    const url = new URL(incoming.url ?? '/', this.#options.upstream);
    const headers = { ...incoming.headers, host: url.host };
    const call = request(url, { method: incoming.method, agent: identity.agent, headers });
    // Whoever goes first takes the other along.
    const abandon = () => {
      call.destroy();
      incoming.socket.destroy();
    };
    const underWay = { user, what: `${incoming.method ?? ''} ${incoming.url ?? ''}`, since: Date.now() };
    this.#underWay.add(underWay);
    answer.once('close', () => {
      this.#underWay.delete(underWay);
      call.destroy();
    });
    call.once('error', abandon);
    call.once('response', (response) => {
      response.once('error', abandon);
      if (losesAnswer) {
        this.#counts.lostAnswers += 1;
        response.resume();
        abandon();
        return;
      }
      answer.writeHead(response.statusCode ?? 502, response.headers);
      answer.flushHeaders();
      response.pipe(answer);
      response.once('aborted', abandon);
    });
    incoming.pipe(call);
  }
}

interface CallUnderWay {
  readonly user: string;
  readonly what: string;
  /** Epoch milliseconds. */
  readonly since: number;
}

interface Passing {
  readonly incoming: IncomingMessage;
  readonly answer: ServerResponse;
  readonly user: string;
  /** The call is carried out, and its caller never hears of it. */
  readonly losesAnswer: boolean;
}

/** The common name of the certificate, which the lab's authority has signed. */
function userOf(socket: TLSSocket): string {
  const { CN } = socket.getPeerCertificate().subject;
  return typeof CN === 'string' ? CN : '';
}
