import type { ExitName } from '../exit-codes.js';
import { goOn, stopEverything } from '../orders/stop.js';
import type { Session } from '../session.js';

export async function stop(session: Session, { reason }: { reason: string }): Promise<ExitName> {
  const done = await stopEverything(await session.cluster(), reason);
  session.print(done, () =>
    done.changed
      ? `everything is stopped (${reason}): no update starts and no node reboots before drydock go; what runs goes on to its next safe point`
      : `everything is stopped already (${done.reason ?? ''})`,
  );
  return 'ok';
}

export async function go(session: Session): Promise<ExitName> {
  const done = await goOn(await session.cluster());
  session.print(done, () =>
    done.changed ? `everything goes on (was stopped: ${done.reason ?? ''})` : 'nothing is stopped',
  );
  return 'ok';
}
