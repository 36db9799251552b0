import { setPaused } from '../rollouts.js';
import type { ExitName } from '../exit-codes.js';
import type { Session } from '../session.js';

export async function poolPause(session: Session, pool: string): Promise<ExitName> {
  const report = await setPaused(await session.cluster(), pool, true);
  session.print(report, () => `${pool}: paused; node updates that run finish, no new one starts`);
  return 'ok';
}

export async function poolResume(session: Session, pool: string): Promise<ExitName> {
  const report = await setPaused(await session.cluster(), pool, false);
  session.print(report, () => `${pool}: resumed, at most ${report.maxUnavailable} unavailable at once`);
  return 'ok';
}
