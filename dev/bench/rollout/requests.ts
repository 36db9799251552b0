import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';

/** Of a line of the API server's audit log, what is counted by. */
interface AuditEvent {
  readonly stage?: string;
  readonly verb?: string;
  readonly userAgent?: string;
  readonly user?: { readonly username?: string };
  readonly requestReceivedTimestamp?: string;
  readonly objectRef?: { readonly resource?: string; readonly subresource?: string };
  readonly responseStatus?: { readonly code?: number };
}

export interface RequestCounts {
  /** All that Drydock asked of the API server, but for the following. */
  readonly requests: number;
  /** Evictions that were asked for, also those that a budget refused. */
  readonly evictionCalls: number;
  /** Evictions that were made. */
  readonly evicted: number;
  readonly machineConfigNodes: number;
  /** `node worker get nodes` and the like, to how often. */
  readonly byKind: ReadonlyMap<string, number>;
}

/** By which Drydock's own client goes; kubelets, kwok and the bench have other names. */
const PRODUCT_AGENT = 'drydock';

/** Counts what Drydock asked for between two times (epoch milliseconds), by the API server's own audit log. */
export async function countRequests(file: string, from: number, to: number): Promise<RequestCounts> {
  const lines = createInterface({ input: createReadStream(file), crlfDelay: Infinity });
  const counter = new RequestCounter(from, to);
  for await (const line of lines) {
    if (line !== '') counter.add(JSON.parse(line) as AuditEvent);
  }
  return counter.counts();
}

/** See `countRequests`. */
export class RequestCounter {
  private readonly from: number;
  private readonly to: number;
  private readonly byKind = new Map<string, number>();
  private readonly found = { requests: 0, evictionCalls: 0, evicted: 0, machineConfigNodes: 0 };

  constructor(from: number, to: number) {
    this.from = from;
    this.to = to;
  }

  add(event: AuditEvent): void {
    if (!this.isOurs(event)) return;
    const { verb = '', user, objectRef, responseStatus } = event;
    const { resource = '', subresource } = objectRef ?? {};
    const who = user?.username?.startsWith('system:node:') === true ? 'node worker' : 'control worker';
    const what = subresource === undefined ? resource : `${resource}/${subresource}`;
    this.count(`${who}: ${verb} ${what}`);
    if (subresource === 'eviction') {
      this.found.evictionCalls += 1;
      if ((responseStatus?.code ?? 500) < 300) this.found.evicted += 1;
    } else if (resource === 'machineconfignodes') this.found.machineConfigNodes += 1;
    else this.found.requests += 1;
  }

  /** A request of Drydock's in the time that counts; each has one line for its end, whatever else is logged of it. */
  private isOurs({ userAgent, verb, stage, requestReceivedTimestamp }: AuditEvent): boolean {
    if (userAgent !== PRODUCT_AGENT || verb === 'watch' || stage !== 'ResponseComplete') return false;
    const at = Date.parse(requestReceivedTimestamp ?? '');
    return at >= this.from && at <= this.to;
  }

  counts(): RequestCounts {
    const sorted = [...this.byKind].sort(([, one], [, other]) => other - one);
    return { ...this.found, byKind: new Map(sorted) };
  }

  private count(kind: string): void {
    this.byKind.set(kind, (this.byKind.get(kind) ?? 0) + 1);
  }
}
