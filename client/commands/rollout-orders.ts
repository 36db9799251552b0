import type { ExitName } from '../exit-codes.js';
import { approveStage } from '../orders/approve.js';
import { resumeRollout, runNow } from '../orders/resume.js';
import type { Session } from '../session.js';

export async function rolloutApprove(
  session: Session,
  pool: string,
  { stage }: { stage?: string | undefined },
): Promise<ExitName> {
  const done = await approveStage(await session.cluster(), { pool, stage, now: session.world.now() });
  session.print(done, () =>
    done.changed
      ? `${pool}: stage ${done.stage} is approved for ${done.config} by ${done.by}; it begins once nothing else keeps it`
      : `${pool}: stage ${done.stage} was approved for ${done.config} already, by ${done.by}`,
  );
  return 'ok';
}

export async function rolloutResume(session: Session, pool: string): Promise<ExitName> {
  const done = await resumeRollout(await session.cluster(), pool, session.world.now());
  session.print(
    done,
    () =>
      `${pool}: the rollout to ${done.config} goes on; what failed until now on ${done.nodes.join(', ')} does not count for its failure budget any more`,
  );
  return 'ok';
}

export async function rolloutRunNow(session: Session, pool: string): Promise<ExitName> {
  const done = await runNow(await session.cluster(), pool);
  session.print(done, () => {
    const what = `the rollout to ${done.config} waits for no window`;
    return done.changed ? `${pool}: ${what}; the next config does again` : `${pool}: ${what}, as was said before`;
  });
  return 'ok';
}
