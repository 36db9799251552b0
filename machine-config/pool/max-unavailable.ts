import { isControlPlaneNode } from './control-plane.js';
import type { NodeFacts, PoolFacts } from './facts.js';

/** The pool of the control plane. */
export const CONTROL_PLANE_POOL = 'master';

/** Nodes that carry etcd, the tie-breaker included: they go one at a time, whatever is written. */
const ONE_AT_A_TIME: ReadonlySet<string> = new Set([CONTROL_PLANE_POOL, 'arbiter']);

export type MaxUnavailable =
  /** `limit` is 1 or more, and may exceed the number of members. */
  | { readonly ok: true; readonly limit: number }
  | { readonly ok: false; readonly code: 'MaxUnavailableInvalid' | 'MaxUnavailableZero'; readonly sentence: string };

function parse(value: number | string): { amount: number; percent: boolean } | undefined {
  if (typeof value === 'number') {
    return Number.isSafeInteger(value) && value >= 0 ? { amount: value, percent: false } : undefined;
  }
  const digits = /^(\d{1,9})%$/u.exec(value)?.[1];
  return digits === undefined ? undefined : { amount: Number(digits), percent: true };
}

/**
 * How many members of a pool may be unavailable at once. Absent is 1; a percentage of all members is rounded down, but
 * a percentage above 0 allows at least one. An explicit 0 is a stop with its own code, never silently 1. The pools of
 * the control plane never lose more than one, whatever is written: while that one is away they have none to spare.
 */
export function resolveMaxUnavailable(
  value: number | string | undefined,
  memberCount: number,
  poolName: string,
): MaxUnavailable {
  const parsed = parse(value ?? 1);
  if (parsed === undefined) {
    return {
      ok: false,
      code: 'MaxUnavailableInvalid',
      sentence:
        `spec.maxUnavailable of MachineConfigPool ${poolName} is ${JSON.stringify(value).slice(0, 60)}, ` +
        `which is neither a whole number nor a percentage: write for example 1 or "10%"`,
    };
  }
  if (parsed.amount === 0) {
    return {
      ok: false,
      code: 'MaxUnavailableZero',
      sentence:
        `spec.maxUnavailable of MachineConfigPool ${poolName} is 0, so no update starts: ` +
        `set it to 1 or more, and use spec.paused to stop a pool`,
    };
  }
  const written = parsed.percent ? Math.max(1, Math.floor((parsed.amount * memberCount) / 100)) : parsed.amount;
  return { ok: true, limit: ONE_AT_A_TIME.has(poolName) ? 1 : written };
}

/** As resolveMaxUnavailable, for a pool with these members; one that holds a control-plane node goes one at a time. */
export function limitOf(pool: PoolFacts, members: readonly NodeFacts[]): MaxUnavailable {
  const limit = resolveMaxUnavailable(pool.maxUnavailable, members.length, pool.name);
  return limit.ok && members.some(isControlPlaneNode) ? { ok: true, limit: 1 } : limit;
}
