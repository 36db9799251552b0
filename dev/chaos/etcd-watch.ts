import { request, type IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseJsonLines } from '../../activities/kubernetes/list-watch.js';
import { within } from './within.js';

/** One change of one object, as etcd keeps it. */
export interface StoredChange {
  /** Of the whole store: changes are in its order, across all kinds. */
  readonly revision: number;
  /** `/registry/pods/shop/cart-1` */
  readonly key: string;
  /** Undefined: it was deleted. */
  readonly object: unknown;
}

export interface EtcdWatch {
  /** Rejects when changes were missed for good; otherwise it resolves when the watch was stopped. */
  readonly finished: Promise<void>;
  /** Resolves when every change up to this moment has been told; rejects when that takes too long. */
  caughtUp(): Promise<void>;
  stop(): Promise<void>;
}

const PREFIX = '/registry/';
/** One more than the prefix: etcd's end of a range is not part of it. */
const PREFIX_END = '/registry0';
const RETRY_MS = 200;
const CATCH_UP_LIMIT_MS = 60_000;
const ANSWER_LIMIT_MS = 10_000;

interface WatchAnswer {
  readonly result?: {
    readonly header?: { readonly revision?: string };
    readonly compact_revision?: string;
    readonly events?: readonly {
      readonly type?: string;
      readonly kv: { readonly key: string; readonly value?: string; readonly mod_revision: string };
    }[];
  };
}

/**
 * Tells every change of everything that the API server stores, from now on, in order and without a gap: etcd keeps its
 * history, so a watch that broke goes on where it ended. Resolves when it sees the present. The API server has to store
 * JSON (LabOptions.storesJson).
 */
export async function watchEtcd(server: string, onChange: (change: StoredChange) => void): Promise<EtcdWatch> {
  const stopping = new AbortController();
  let next = (await revisionOf(server)) + 1;

  async function follow(): Promise<void> {
    const response = await post(
      server,
      '/v3/watch',
      { create_request: range({ start_revision: next }) },
      stopping.signal,
    );
    for await (const line of parseJsonLines(response)) {
      const { result } = line as WatchAnswer;
      if (result?.compact_revision !== undefined) throw new MissedChanges(next);
      for (const { type, kv } of result?.events ?? []) {
        const revision = Number(kv.mod_revision);
        onChange({ revision, key: decode(kv.key), object: type === 'DELETE' ? undefined : parse(kv.value ?? '') });
        next = revision + 1;
      }
    }
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      try {
        await follow();
      } catch (error) {
        if (error instanceof MissedChanges) throw error;
      }
      // etcd is killed and started again: the watch goes on as soon as it answers.
      await sleep(RETRY_MS, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  }

  const finished = run();
  finished.catch(() => undefined);
  return {
    finished,
    async caughtUp() {
      const reached = await latestRevision(server);
      const caughtUp = async () => {
        while (next <= reached && !stopping.signal.aborted) await Promise.race([sleep(RETRY_MS), finished]);
      };
      await within(
        CATCH_UP_LIMIT_MS,
        `the observer, who is at revision ${next}, to see ${reached} of etcd`,
        caughtUp(),
      );
    },
    async stop() {
      stopping.abort();
      await finished.catch(() => undefined);
    },
  };
}

class MissedChanges extends Error {
  override readonly name = 'MissedChanges';
  constructor(revision: number) {
    super(`etcd has compacted its revision ${revision} before it was read: the observer missed changes`);
  }
}

function range(more: object): object {
  return { key: encode(PREFIX), range_end: encode(PREFIX_END), ...more };
}

/** The revision of the last change under the prefix: the store's own may be ahead of it. */
async function latestRevision(server: string): Promise<number> {
  const query = range({ limit: 1, keys_only: true, sort_order: 'DESCEND', sort_target: 'MOD' });
  const answer = (await ask(server, query)) as { kvs?: { mod_revision: string }[] };
  return Number(answer.kvs?.[0]?.mod_revision ?? 0);
}

async function revisionOf(server: string): Promise<number> {
  const query = range({ limit: 1, keys_only: true });
  const answer = (await ask(server, query)) as { header?: { revision?: string } };
  return Number(answer.header?.revision ?? 0);
}

async function ask(server: string, query: object): Promise<unknown> {
  return json(await post(server, '/v3/kv/range', query, AbortSignal.timeout(ANSWER_LIMIT_MS)));
}

async function json(response: IncomingMessage): Promise<unknown> {
  for await (const line of parseJsonLines(withEnd(response))) return line;
  return {};
}

/** An answer that is no stream need not end its line. */
async function* withEnd(response: IncomingMessage): AsyncGenerator<Uint8Array> {
  for await (const chunk of response) yield chunk as Buffer;
  yield Buffer.from('\n');
}

function post(server: string, path: string, body: object, signal?: AbortSignal): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const options = { method: 'POST', ...(signal === undefined ? {} : { signal }) };
    const call = request(new URL(path, server), options, (response) => {
      if (response.statusCode === 200) resolve(response);
      else {
        response.resume();
        reject(new Error(`etcd ${path}: ${response.statusCode}`));
      }
    });
    call.once('error', reject);
    call.end(JSON.stringify(body));
  });
}

const encode = (text: string): string => Buffer.from(text).toString('base64');
const decode = (text: string): string => Buffer.from(text, 'base64').toString('utf8');

/** What is not JSON is none of the kinds that are looked at. */
function parse(value: string): unknown {
  try {
    return JSON.parse(decode(value));
  } catch {
    return null;
  }
}
