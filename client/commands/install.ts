import { CommandError } from '../command-error.js';
import type { ExitName } from '../exit-codes.js';
import { install, InstallRefused } from '../install.js';
import type { Session } from '../session.js';
import { renderTable } from '../table.js';

export async function installCommand(
  session: Session,
  { runPools, controlUser }: { runPools: boolean; controlUser?: string | undefined },
): Promise<ExitName> {
  const { kubernetes, flavour } = await session.cluster();
  try {
    const nodeExistsPolicy = runPools ? 'run' : 'pause';
    const result = await install({
      client: kubernetes,
      flavour,
      nodeExistsPolicy,
      ...(controlUser === undefined ? {} : { controlUser }),
    });
    session.print(result, () => {
      const columns = [
        { title: 'KIND', value: ({ kind }: (typeof result.objects)[number]) => kind },
        { title: 'NAME', value: ({ name }: (typeof result.objects)[number]) => name },
        { title: 'ACTION', value: ({ action }: (typeof result.objects)[number]) => action },
      ];
      return renderTable(columns, result.objects, session.paint);
    });
    if (session.format !== 'json') for (const note of result.notes) session.note(note);
    return 'ok';
  } catch (error) {
    if (error instanceof InstallRefused) throw new CommandError('refused', error.message, { cause: error });
    throw error;
  }
}
