import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/** Stands between the workers and the Temporal server, passes everything on, and can be cut. */
export interface TemporalLink {
  /** `127.0.0.1:41234` */
  readonly address: string;
  /** Ends every connection and refuses new ones, until it is mended. */
  cut(): void;
  mend(): void;
  readonly isCut: boolean;
  close(): Promise<void>;
}

export async function startTemporalLink(upstream: string): Promise<TemporalLink> {
  const [host = '127.0.0.1', port = '0'] = upstream.split(/:(?=\d+$)/);
  const sockets = new Set<Socket>();
  let isCut = false;
  const server = createServer((client) => {
    if (isCut) {
      client.destroy();
      return;
    }
    const further = connect(Number(port), host);
    for (const [socket, other] of [
      [client, further],
      [further, client],
    ] as const) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.once('close', () => {
        sockets.delete(socket);
        other.destroy();
      });
      socket.pipe(other);
    }
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const end = () => sockets.forEach((socket) => socket.destroy());
  return {
    address: `127.0.0.1:${String((server.address() as AddressInfo).port)}`,
    get isCut() {
      return isCut;
    },
    cut() {
      isCut = true;
      end();
    },
    mend() {
      isCut = false;
    },
    async close() {
      isCut = true;
      end();
      await new Promise((closed) => server.close(closed));
    },
  };
}
