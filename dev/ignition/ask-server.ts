import { request, type RequestOptions } from 'node:https';

export interface ServerAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
}

/** One request on a connection of its own, as a machine makes it that boots. */
export function askServer(url: string, options: RequestOptions): Promise<ServerAnswer> {
  return new Promise((resolve, reject) => {
    const call = request(url, { agent: false, ...options }, (response) => {
      const pieces: Buffer[] = [];
      response.on('data', (piece: Buffer) => pieces.push(piece));
      response.once('error', reject);
      response.once('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(pieces) }),
      );
    });
    call.once('error', reject);
    call.end();
  });
}
