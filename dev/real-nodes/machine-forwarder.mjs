/** The machine's way to the lab's servers, which listen on 127.0.0.1 of the host. */
import { connect, createServer } from 'node:net';

/**
 * Takes connections at the machine's gateway and passes them on to the same port of 127.0.0.1. A machine that loses its
 * power says goodbye to nobody: the servers' side of its connections stays open until it is up again, when a real one
 * would answer them with a reset.
 */
export class Forwarder {
  #gateway;
  #ports;
  #pairs = new Set();
  #abandoned = new Set();
  #opened = false;

  constructor(gateway, ports) {
    this.#gateway = gateway;
    this.#ports = ports;
  }

  /** Called at each boot, once the gateway's address is there. The sockets that listen stay from the first time. */
  async open() {
    for (const server of this.#abandoned) server.destroy();
    this.#abandoned.clear();
    if (this.#opened) return;
    for (const port of this.#ports) await this.#listen(port);
    this.#opened = true;
  }

  /** The machine is off. */
  abandon() {
    for (const { client, server } of this.#pairs) {
      this.#abandoned.add(server);
      server.removeAllListeners();
      server.on('error', () => undefined);
      server.resume();
      client.removeAllListeners();
      client.on('error', () => undefined);
      client.destroy();
    }
    this.#pairs.clear();
  }

  #listen(port) {
    return new Promise((resolve, reject) => {
      const listener = createServer({ allowHalfOpen: true }, (client) => this.#pass(client, port));
      // Somebody who listens on every address of the host is reached without us.
      listener.once('error', (error) => (error.code === 'EADDRINUSE' ? resolve() : reject(error)));
      listener.listen({ host: this.#gateway, port, exclusive: true }, resolve);
    });
  }

  #pass(client, port) {
    const server = connect({ host: '127.0.0.1', port, allowHalfOpen: true });
    const pair = { client, server };
    this.#pairs.add(pair);
    for (const [from, to] of [
      [client, server],
      [server, client],
    ]) {
      from.setNoDelay(true);
      from.on('data', (chunk) => {
        if (!to.write(chunk)) from.pause();
      });
      to.on('drain', () => from.resume());
      from.on('end', () => to.end());
    }
    server.on('error', () => client.resetAndDestroy());
    server.on('close', () => {
      client.destroy();
      this.#pairs.delete(pair);
    });
    client.on('error', () => server.resetAndDestroy());
    client.on('close', () => server.destroySoon());
  }
}
