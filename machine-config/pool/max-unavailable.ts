/** The pool of the control plane: its nodes carry etcd, so its limit follows quorum and not only what is written. */
export const CONTROL_PLANE_POOL = 'master';

/** Tie-breaker members of etcd; there is never more than one to spare. */
const ARBITER_POOL = 'arbiter';

export type MaxUnavailable =
  /** `limit` is 1 or more, and may exceed the number of members. */
  | { readonly ok: true; readonly limit: number }
  | { readonly ok: false; readonly code: 'MaxUnavailableInvalid' | 'MaxUnavailableZero'; readonly sentence: string };

/** How many members a control plane of this size can lose and still have a quorum, and at least 1. */
function quorumSpare(memberCount: number): number {
  return Math.max(1, Math.floor((memberCount - 1) / 2));
}

function parse(value: number | string): { amount: number; percent: boolean } | undefined {
  if (typeof value === 'number') {
    return Number.isSafeInteger(value) && value >= 0 ? { amount: value, percent: false } : undefined;
  }
  const digits = /^(\d{1,9})%$/u.exec(value)?.[1];
  return digits === undefined ? undefined : { amount: Number(digits), percent: true };
}

/**
 * How many members of a pool may be unavailable at once. Absent is 1; a percentage of all members is rounded down, but
 * a percentage above 0 allows at least one. An explicit 0 is a stop with its own code, never silently 1. The control
 * plane never loses more than quorum can spare, whatever is written.
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
  if (poolName === ARBITER_POOL) return { ok: true, limit: 1 };
  if (poolName === CONTROL_PLANE_POOL) return { ok: true, limit: Math.min(written, quorumSpare(memberCount)) };
  return { ok: true, limit: written };
}
