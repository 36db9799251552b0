import { mkdir, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Account } from './accounts.js';
import { isErrno } from './durable.js';
import { NotPossibleHere } from './entry.js';
import type { SshKeyPlace } from './host.js';
import { ProgramFailed, type ProgramResult, type RunProgram } from './run-program.js';

/** Where Ignition puts keys on Fedora CoreOS and its kin; a file of nobody else. */
const IGNITION_KEYS = '.ssh/authorized_keys.d/ignition';
/** Reads every file in `~/.ssh/authorized_keys.d` for sshd. */
const KEY_FOLDER_READER = 'ssh-key-dir';

interface Options {
  /** The folder that is the machine's `/`. */
  readonly root: string;
  readonly run: RunProgram;
}

/**
 * Where sshd of this host looks for the keys of an account, by sshd's own word, with what its `Match` blocks say of that
 * account: a file that is ours alone if one is read, else one that others write into as well. Throws NotPossibleHere where
 * no key of that account would be accepted, or sshd does not say.
 */
export async function sshKeyPlaceOf(account: Account, options: Options): Promise<SshKeyPlace> {
  const { name, home } = account;
  const settings = await effectiveSettings(account, options);
  if (settings.get('pubkeyauthentication') === 'no') {
    throw new NotPossibleHere(
      `sshd does not accept keys for ${name} (PubkeyAuthentication no): allow them in sshd_config, or remove the keys`,
    );
  }
  if (settings.get('strictmodes') !== 'no') await checkHome(account, options);
  const [command = ''] = (settings.get('authorizedkeyscommand') ?? '').split(' ');
  if (basename(command) === KEY_FOLDER_READER) return { path: `${home}/${IGNITION_KEYS}`, shared: false };

  const patterns = (settings.get('authorizedkeysfile') ?? '')
    .split(/\s+/)
    .filter((word) => word !== '' && word !== 'none');
  const paths = patterns.map((pattern) => expand(pattern, account));
  const own = paths.find((path) => path.endsWith('/authorized_keys.d/ignition'));
  if (own !== undefined) return { path: own, shared: false };
  const usual = `${home}/.ssh/authorized_keys`;
  const path = paths.includes(usual) ? usual : paths[0];
  if (path === undefined) {
    throw new NotPossibleHere(
      `sshd reads no file of keys for ${name} (AuthorizedKeysFile none): name one in sshd_config, or remove the keys`,
    );
  }
  return { path, shared: true };
}

/** A home is never changed here; but sshd reads no keys below one that others can write. */
async function checkHome({ name, uid, home }: Account, { root }: Options): Promise<void> {
  try {
    const found = await stat(join(root, home));
    const isOthers = found.uid !== 0 && found.uid !== uid;
    if (!isOthers && (found.mode & 0o022) === 0) return;
    const remedy = isOthers ? `chown ${name} ${home}` : `chmod go-w ${home}`;
    throw new NotPossibleHere(
      `sshd accepts no keys for ${name}, since others can write its home ${home} (StrictModes yes): ${remedy}`,
    );
  } catch (error) {
    if (!isErrno(error, 'ENOENT', 'ENOTDIR')) throw error;
  }
}

/** `sshd -T`: each setting in lower case with its value; of a setting that is there more than once, the first. */
async function effectiveSettings(account: Account, options: Options): Promise<Map<string, string>> {
  let result = await askSshd(account, options);
  // Where sshd is started by a socket, its folder in /run is not there until the first connection.
  const [, folder] = /Missing privilege separation directory: (\/run\/\S+)/.exec(result.stderr) ?? [];
  if (result.code !== 0 && folder !== undefined) {
    await mkdir(join(options.root, folder), { recursive: true, mode: 0o755 });
    result = await askSshd(account, options);
  }
  if (result.code !== 0) {
    const why = result.stderr.trim().split(/\s*\n/).slice(-2).join(' | ') || `ended with ${result.code}`;
    throw new NotPossibleHere(
      `sshd does not say where it looks for the keys of ${account.name}: ${why}: repair sshd_config`,
    );
  }
  const settings = new Map<string, string>();
  for (const line of result.stdout.split('\n')) {
    const at = line.indexOf(' ');
    const key = (at < 0 ? line : line.slice(0, at)).toLowerCase();
    if (!settings.has(key)) settings.set(key, at < 0 ? '' : line.slice(at + 1).trim());
  }
  return settings;
}

async function askSshd({ name }: Account, { run }: Options): Promise<ProgramResult> {
  try {
    return await run('sshd', ['-T', '-C', `user=${name},host=localhost,addr=127.0.0.1`]);
  } catch (error) {
    if (!(error instanceof ProgramFailed)) throw error;
    const why = error.isMissing ? 'is not installed on this host' : error.message;
    throw new NotPossibleHere(`sshd ${why}: without it nobody can log in with the keys of ${name}`);
  }
}

/** The tokens of AuthorizedKeysFile; a relative path begins at the home. */
function expand(pattern: string, { name, uid, home }: Account): string {
  const values: Record<string, string> = { '%': '%', h: home, u: name, U: String(uid) };
  const path = pattern.replace(/%(.)/g, (token, letter: string) => values[letter] ?? token);
  return path.startsWith('/') ? path : `${home}/${path}`;
}

/** The folders of a key file that belong to the account, outermost first: those below its home. */
export function foldersInHome(path: string, { home }: Account): string[] {
  const folders: string[] = [];
  for (let folder = dirname(path); folder.startsWith(`${home}/`); folder = dirname(folder)) folders.unshift(folder);
  return folders;
}
