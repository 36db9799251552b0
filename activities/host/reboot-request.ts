import { findUnitFile } from './units.js';
import { RebootInhibited } from './host.js';
import { ProgramFailed, type ProgramResult, type RunProgram } from './run-program.js';
import { reasonIn } from './systemctl.js';

/** Writes the staged image into place while the machine shuts down. */
const OSTREE_FINALIZE = 'ostree-finalize-staged.service';
const LOGIN_MANAGER = [
  'org.freedesktop.login1',
  '/org/freedesktop/login1',
  'org.freedesktop.login1.Manager',
  'ListInhibitors',
];

/** Somebody who asked the login manager not to shut down now. */
interface Inhibitor {
  readonly who: string;
  readonly why: string;
  readonly pid: number;
}

export interface RebootDependencies {
  readonly root: string;
  readonly run: RunProgram;
  readonly bootId: () => Promise<string>;
}

/**
 * Asks for a reboot by a transient unit, so that it comes also if this process ends now. The unit bears the boot's ID and
 * stays until the machine is down: however often it is asked for, one boot is ended once. If `systemctl reboot` itself
 * fails, the unit goes, and the next request is a new one.
 *
 * Throws RebootInhibited where a program of the host blocks a shutdown at present.
 */
export async function requestReboot(
  { bootId, reason }: { readonly bootId: string; readonly reason: string },
  { root, run, bootId: presentBoot }: RebootDependencies,
): Promise<void> {
  if ((await presentBoot()) !== bootId) return;
  const [first, ...others] = await shutdownInhibitors(run);
  if (first !== undefined) {
    const more = others.length === 0 ? '' : ` (and ${others.length} more)`;
    throw new RebootInhibited(
      `${first.who} (process ${first.pid}) asks that this host is not shut down now: ${first.why}${more}; ` +
        'it reboots when that is over, see systemd-inhibit --list',
    );
  }
  const finalize = (await findUnitFile(root, OSTREE_FINALIZE)) === undefined ? [] : afterFinalize();
  const result = await run('systemd-run', [
    `--unit=drydock-reboot-${bootId}`,
    `--description=${oneLine(reason)}`,
    '--quiet',
    '--collect',
    '--property=Type=oneshot',
    '--property=RemainAfterExit=yes',
    // Asks systemd for the job and does not wait for it: this unit must not stand in the way of its own end.
    '--no-block',
    ...finalize,
    'systemctl',
    'reboot',
  ]);
  if (result.code === 0 || isAskedAlready(result) || (await isShuttingDown(run))) return;
  throw new Error(`systemd-run: the reboot could not be asked for: ${reasonIn(result)}`);
}

/** Stopped after this unit, since units stop in the reverse of the order in which they start. */
function afterFinalize(): string[] {
  return [`--property=Requires=${OSTREE_FINALIZE}`, `--property=After=${OSTREE_FINALIZE}`];
}

/** By the unit that is there, or by a shutdown that has begun: no other start of a unit is called destructive. */
function isAskedAlready({ stderr }: ProgramResult): boolean {
  return /already exists|already loaded|has a fragment file|is destructive|shutting down/.test(stderr);
}

async function isShuttingDown(run: RunProgram): Promise<boolean> {
  return (await run('systemctl', ['is-system-running'])).stdout.trim() === 'stopping';
}

/** Those that block a shutdown; `delay` only asks for a few seconds, as the kubelet does, and gets them. */
async function shutdownInhibitors(run: RunProgram): Promise<Inhibitor[]> {
  let result: ProgramResult;
  try {
    result = await run('busctl', ['--no-pager', 'call', ...LOGIN_MANAGER]);
  } catch (error) {
    if (error instanceof ProgramFailed && error.isMissing) return [];
    throw error;
  }
  if (result.code !== 0) {
    if (hasNoLoginManager(result)) return [];
    throw new Error(`busctl: cannot ask systemd-logind who blocks a shutdown: ${reasonIn(result)}`);
  }
  return parseInhibitors(result.stdout);
}

function hasNoLoginManager({ stderr }: ProgramResult): boolean {
  return /not provided by any|NameHasNoOwner|is masked|not found|No such file or directory|not loaded/.test(stderr);
}

/** Reads busctl's `a(ssssuu) COUNT "what" "who" "why" "mode" uid pid …`; its JSON is younger than the hosts we serve. */
export function parseInhibitors(text: string): Inhibitor[] {
  const words = [...text.matchAll(/"((?:[^"\\]|\\.)*)"|(\S+)/gs)].map(([, quoted, plain]) =>
    quoted === undefined ? (plain ?? '') : quoted.replace(/\\(.)/gs, '$1'),
  );
  const found: Inhibitor[] = [];
  for (let at = 2; at + 5 < words.length; at += 6) {
    const [what = '', who = '', why = '', mode = '', , pid = ''] = words.slice(at, at + 6);
    if (what.split(':').includes('shutdown') && mode.startsWith('block')) {
      found.push({ who: oneLine(who), why: oneLine(why), pid: Number(pid) });
    }
  }
  return found;
}

function oneLine(text: string): string {
  // Names and reasons come from other programs.
  return text
    .replace(/[\p{Cc}\s]+/gu, ' ')
    .trim()
    .slice(0, 200);
}
