import type { SyncPoolResult } from './contract/activities.js';
import type { ManagePoolInput } from './contract/inputs.js';
import type { LookNow, LookNowAnswer } from './contract/messages.js';

/** Names in an answer are cut: whoever reaches Temporal may ask with any text. */
const LONGEST_NAME = 253;

/**
 * Why the workflow of a pool cannot do what it is asked, in one sentence; undefined: it can. Judged over what the
 * workflow knows for certain: `seen` is its last look, and only what cannot have changed since counts.
 */
export function refusalToLook(
  request: unknown,
  { cluster, pool }: ManagePoolInput,
  seen: SyncPoolResult | undefined,
): string | undefined {
  const asked = (request ?? {}) as Partial<Record<keyof LookNow, unknown>>;
  if (typeof asked.cluster !== 'string' || typeof asked.pool !== 'string') {
    return `pool ${pool}: a request names its cluster and its pool as text: this one was made by another version, or by hand`;
  }
  if (asked.cluster !== cluster) {
    const theirs = asked.cluster.slice(0, LONGEST_NAME);
    return (
      `pool ${pool}: this Temporal namespace serves the cluster ${cluster}, not ${theirs}: ` +
      'one namespace serves one cluster, see --temporal-address and --temporal-namespace'
    );
  }
  if (asked.pool !== pool) {
    return `pool ${pool}: asked for the pool ${asked.pool.slice(0, LONGEST_NAME)}, which has a workflow of its own`;
  }
  if (seen?.exists === false) return `pool ${pool}: it does not exist any more`;
  if (seen?.deleting === true) return `pool ${pool}: it is being deleted, and nothing is started in it any more`;
  return undefined;
}

/** The yes. Nothing is known yet at the first look. */
export function willLook({ pool }: ManagePoolInput, seen: SyncPoolResult | undefined): LookNowAnswer {
  const first = `the configs of ${pool} are rendered and its nodes looked at now`;
  if (seen === undefined) return { sentence: first };
  const so = seen.target === null ? 'it had no rendered config yet' : `it wanted ${seen.target} so far`;
  return { sentence: `${first}; ${so}` };
}
