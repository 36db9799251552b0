import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { CommandError } from '../command-error.js';
import type { ExitName } from '../exit-codes.js';
import { install, InstallRefused } from '../install.js';
import { IGNITION_USER } from '../install/first-boot.js';
import type { WebhookPlace } from '../install/webhook.js';
import type { Session } from '../session.js';
import { renderTable } from '../table.js';

export interface InstallOptions {
  readonly runPools: boolean;
  readonly controlUser?: string | undefined;
  /** `true`: its service account. */
  readonly firstBoot?: string | true | undefined;
  readonly webhookUrl?: string | undefined;
  readonly webhookCa?: string | undefined;
}

export async function installCommand(session: Session, options: InstallOptions): Promise<ExitName> {
  const { runPools, controlUser, firstBoot } = options;
  const webhook = await webhookOf(options);
  const { kubernetes, flavour } = await session.cluster();
  try {
    const nodeExistsPolicy = runPools ? 'run' : 'pause';
    const result = await install({
      client: kubernetes,
      flavour,
      nodeExistsPolicy,
      ...(controlUser === undefined ? {} : { controlUser }),
      ...(webhook === undefined ? {} : { webhook }),
      ...(firstBoot === undefined ? {} : { ignitionUser: firstBoot === true ? IGNITION_USER : firstBoot }),
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

async function webhookOf({ webhookUrl: url, webhookCa: file }: InstallOptions): Promise<WebhookPlace | undefined> {
  if (url === undefined && file === undefined) return undefined;
  if (url === undefined || file === undefined) {
    throw new CommandError('usage', 'a webhook needs both --webhook-url and --webhook-ca: give the other one too');
  }
  if (!URL.canParse(url) || new URL(url).protocol !== 'https:') {
    throw new CommandError('usage', `--webhook-url ${url} is no https URL: write https://host:port/validate`);
  }
  let authority: string;
  try {
    authority = new X509Certificate(await readFile(file)).toString();
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    const message = `--webhook-ca ${file} is no certificate in PEM that can be read (${why}): name the file of the authority`;
    throw new CommandError('usage', message, { cause });
  }
  return { url, authority };
}
