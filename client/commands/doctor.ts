import { examine } from '../doctor/examine.js';
import type { DoctorFinding } from '../doctor/findings.js';
import type { ExitName } from '../exit-codes.js';
import type { Session } from '../session.js';
import { renderTable } from '../table.js';
import type { Colour } from '../terminal.js';

const COLOURS: Readonly<Record<DoctorFinding['verdict'], Colour | undefined>> = {
  ok: 'green',
  warning: 'yellow',
  problem: 'red',
  unknown: undefined,
};

/** Ends with `refused` where there is a problem; warnings are none. */
export async function doctor(session: Session): Promise<ExitName> {
  const findings = await examine(await session.cluster(), await session.engineIfReachable());
  session.print({ findings }, () =>
    renderTable<DoctorFinding>(
      [
        { title: 'CHECK', value: ({ check }) => check },
        { title: 'VERDICT', value: ({ verdict }) => verdict, colour: ({ verdict }) => COLOURS[verdict] },
        { title: 'WHAT', value: ({ sentence }) => sentence },
      ],
      findings,
      session.paint,
    ),
  );
  return findings.some(({ verdict }) => verdict === 'problem') ? 'refused' : 'ok';
}
