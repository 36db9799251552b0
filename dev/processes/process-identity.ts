import { readFileSync } from 'node:fs';

/** A process for good: a pid alone may be another process tomorrow. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Clock ticks since boot; empty on systems without /proc. */
  readonly startTime: string;
}

/** When a process started (field 22 of proc(5) stat); undefined if there is none, or only a zombie of it. */
function startTimeOf(pid: number): string | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return undefined;
  }
  // The second field is the command in parentheses, which may itself hold spaces and parentheses.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields[0] === 'Z' ? undefined : fields[19];
}

export function identifyProcess(pid: number): ProcessIdentity {
  return { pid, startTime: startTimeOf(pid) ?? '' };
}

/** Whether this very process is still there. A zombie is not. */
export function isAlive(identity: ProcessIdentity): boolean {
  if (process.platform === 'linux') {
    const startTime = startTimeOf(identity.pid);
    return startTime !== undefined && (identity.startTime === '' || startTime === identity.startTime);
  }
  try {
    process.kill(identity.pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Ends a process and its group, if it is still the same process. */
export function killForGood(identity: ProcessIdentity): void {
  if (!isAlive(identity)) return;
  for (const target of [-identity.pid, identity.pid]) {
    try {
      process.kill(target, 'SIGKILL');
    } catch {
      // Not a group leader, or gone in the meantime.
    }
  }
}
