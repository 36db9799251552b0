import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { pointerConfig, pointerConfig2 } from '../../machine-config/first-boot/pointer-config.js';
import { CommandError } from '../command-error.js';
import type { ExitName } from '../exit-codes.js';
import type { Session } from '../session.js';

export interface FirstBootOptions {
  readonly server: string;
  readonly ca: string;
  readonly tokenFile?: string | undefined;
  readonly spec: '2' | '3';
}

/** Prints the small config that a machine of a pool is given. It asks nobody: what it says was decided elsewhere. */
export async function firstBoot(session: Session, pool: string, options: FirstBootOptions): Promise<ExitName> {
  const { spec, tokenFile } = options;
  const server = checkedUrl(options.server);
  const certificateAuthority = await readAuthority(options.ca);
  if (spec === '2' && tokenFile !== undefined) {
    throw new CommandError('usage', 'a machine with Ignition of spec 2 can send no token: leave --token-file out');
  }
  const token = tokenFile === undefined ? undefined : (await read(tokenFile, '--token-file')).trim();
  const inputs = { server, pool, certificateAuthority, token };
  session.line(JSON.stringify(spec === '2' ? pointerConfig2(inputs) : pointerConfig(inputs), null, 2));
  return 'ok';
}

function checkedUrl(server: string): string {
  if (URL.canParse(server) && new URL(server).protocol === 'https:') return server;
  throw new CommandError('usage', `--server ${server} is no https URL: write https://host:port of the Ignition server`);
}

async function readAuthority(file: string): Promise<string> {
  const authority = await read(file, '--ca');
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(authority);
  } catch (cause) {
    throw new CommandError('usage', `--ca ${file} is no certificate in PEM: name the authority of the server`, {
      cause,
    });
  }
  if (certificate.ca) return authority;
  throw new CommandError(
    'usage',
    `--ca ${file} is a certificate that may not sign others: name the authority of the server`,
  );
}

async function read(file: string, option: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new CommandError('usage', `${option} ${file} cannot be read: ${why}`, { cause });
  }
}
