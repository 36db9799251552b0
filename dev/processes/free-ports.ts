import { createServer } from 'node:net';

/** So many different ports that nobody listens on now. Somebody may take one before it is used: starts are retried. */
export async function findFreePorts(count: number, address = '127.0.0.1'): Promise<number[]> {
  const servers = await Promise.all(Array.from({ length: count }, () => listen(address)));
  const ports = servers.map(({ port }) => port);
  await Promise.all(servers.map(({ close }) => close()));
  return ports;
}

export async function isPortFree(port: number, address: string): Promise<boolean> {
  try {
    await (await listen(address, port)).close();
    return true;
  } catch {
    return false;
  }
}

function listen(host: string, wanted = 0): Promise<{ port: number; close: () => Promise<void> }> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen({ host, port: wanted, exclusive: true }, () => {
      const address = server.address();
      if (address === null || typeof address === 'string') {
        reject(new Error(`no port on ${host}`));
        return;
      }
      resolve({ port: address.port, close: () => new Promise((closed) => server.close(() => closed())) });
    });
  });
}
