import type { Server } from 'node:net';

const HOST_AND_PORT = /^(?:\[(?<v6>[0-9a-fA-F:.]+)\]|(?<host>[^:[\]]*)):(?<port>\d{1,5})$/;

/** An address to listen at; the host is absent where every address of the machine is meant. */
export interface HostAndPort {
  readonly host?: string;
  readonly port: number;
}

/** Reads `host:port`, IPv6 in brackets; undefined: it is none. */
export function parseHostAndPort(address: string): HostAndPort | undefined {
  const { v6, host = '', port = '' } = HOST_AND_PORT.exec(address)?.groups ?? {};
  if (port === '') return undefined;
  const name = v6 ?? (host === '' ? undefined : host);
  return { port: Number(port), ...(name === undefined ? {} : { host: name }) };
}

export interface ListenOptions {
  /** `host:port`; port 0: a free one is chosen. */
  readonly address: string;
  /** What is served there, for the error. */
  readonly purpose: string;
  /** The variable of the environment that says the address. */
  readonly variable: string;
}

export interface BoundAddress {
  /** As a URL has it. */
  readonly host: string;
  readonly port: number;
}

/** Has the server listen. @throws one line, where the address is not of that form or cannot be listened at. */
export async function listenAt(server: Server, { address, purpose, variable }: ListenOptions): Promise<BoundAddress> {
  const at = parseHostAndPort(address);
  if (at === undefined) {
    throw new Error(`${address} is no address to serve ${purpose} at: write host:port, such as 0.0.0.0:9100`);
  }
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(at, resolve);
    });
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`${purpose} cannot be served at ${address}: ${why}; set ${variable} to a free one`, { cause });
  }
  const bound = server.address();
  const { host = 'localhost' } = at;
  return {
    host: host.includes(':') ? `[${host}]` : host,
    port: typeof bound === 'object' && bound !== null ? bound.port : at.port,
  };
}

export function formatAddress({ host, port }: BoundAddress): string {
  return `${host}:${port}`;
}
