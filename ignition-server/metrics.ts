import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';

export interface ServerFacts {
  /** Pools whose config can be given out. */
  readonly pools: () => readonly { readonly pool: string; readonly config: string; readonly bytes: number }[];
  /** Epoch milliseconds. */
  readonly certificateExpiresAt: () => number;
  /** Epoch milliseconds; undefined: there is no bootstrap token. */
  readonly tokenExpiresAt: () => number | undefined;
  /** Whether the API server is not heard of. */
  readonly isStale: () => boolean;
}

export interface ServerMetrics {
  readonly registry: Registry;
  answered(request: { route: string; pool: string; version: string; status: number; seconds: number }): void;
}

/** Metrics of one server. Labels are pools that exist, versions and codes; never an address. */
export function serverMetrics(facts: ServerFacts): ServerMetrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const requests = new Counter({
    name: 'drydock_ignition_requests_total',
    help: 'Requests that were answered, by route, pool, version of Ignition and status',
    labelNames: ['route', 'pool', 'version', 'status'],
    registers,
  });
  const seconds = new Histogram({
    name: 'drydock_ignition_request_seconds',
    help: 'From the request to the end of its answer',
    labelNames: ['route'],
    buckets: [0.005, 0.02, 0.1, 0.5, 2, 10, 60],
    registers,
  });
  const gauge = (name: string, help: string, value: () => number) =>
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(value());
      },
    });
  new Gauge({
    name: 'drydock_ignition_config_bytes',
    help: 'The config that new machines of a pool get, in the newest version',
    labelNames: ['pool', 'config'],
    registers,
    collect() {
      this.reset();
      for (const { pool, config, bytes } of facts.pools()) this.set({ pool, config }, bytes);
    },
  });
  gauge('drydock_ignition_certificate_expiry_seconds', 'When the certificate expires, in Unix time', () =>
    Math.round(facts.certificateExpiresAt() / 1000),
  );
  gauge('drydock_ignition_bootstrap_token_expiry_seconds', 'When the bootstrap token expires; 0: there is none', () =>
    Math.round((facts.tokenExpiresAt() ?? 0) / 1000),
  );
  gauge('drydock_ignition_stale', '1 while the API server is away and the last known configs are given out', () =>
    Number(facts.isStale()),
  );
  return {
    registry,
    answered({ route, pool, version, status, seconds: took }) {
      requests.inc({ route, pool, version, status });
      seconds.observe({ route }, took);
    },
  };
}
