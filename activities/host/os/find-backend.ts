import { access, constants, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isErrno } from '../durable.js';
import type { OsBackend, OsBackendName } from '../host.js';
import type { RunProgram } from '../run-program.js';
import { bootcBackend, bootedWithBootc } from './bootc.js';
import { grubBackend } from './grub.js';
import { grubbyBackend } from './grubby.js';
import { passiveBackend } from './none.js';
import { fipsRefusal, refuseAll, type Refusals } from './refusal.js';
import { rpmOstreeBackend } from './rpm-ostree.js';

export type BackendChoice = Exclude<OsBackendName, 'simulated'> | 'auto';

interface BackendSearch {
  /** The folder that is the machine's `/`. */
  readonly root: string;
  readonly run: RunProgram;
  /** `auto`: look at the host. A name: that one, or an error where the host has not what it needs. */
  readonly wanted: BackendChoice;
  /** As Node names it; default: that of this process. */
  readonly arch?: string;
}

interface BackendKind {
  /** It was only tried against recorded exchanges: off until asked for by name. */
  readonly experimental: boolean;
  /** What it needs and the host has not; undefined: all is there. */
  lacks(search: BackendSearch): Promise<string | undefined>;
  create(search: BackendSearch, fips: Refusals): OsBackend;
}

/** In the order in which `auto` asks them. */
const KINDS: Readonly<Record<Exclude<BackendChoice, 'auto' | 'none'>, BackendKind>> = {
  bootc: {
    experimental: true,
    async lacks({ root, run }) {
      if (!(await isProgram(root, '/usr/bin/bootc'))) return '/usr/bin/bootc is not there';
      return (await bootedWithBootc(run)) ? undefined : '`bootc status` shows no booted image that bootc could update';
    },
    create: ({ root, run }, fips) => bootcBackend({ root, run, fips }),
  },
  'rpm-ostree': {
    experimental: true,
    async lacks({ root }) {
      if (!(await isProgram(root, '/usr/bin/rpm-ostree'))) return '/usr/bin/rpm-ostree is not there';
      return (await isThere(root, '/run/ostree-booted')) ? undefined : 'the host was not booted with ostree';
    },
    create: ({ root, run, arch = process.arch }, fips) => rpmOstreeBackend({ root, run, fips, arch }),
  },
  grub: {
    experimental: false,
    async lacks({ root }) {
      const program = (await isProgram(root, '/usr/sbin/update-grub')) ? '/usr/sbin/grub-mkconfig' : undefined;
      if (program === undefined) return '/usr/sbin/update-grub is not there';
      if (!(await isThere(root, program))) return `${program} is not there`;
      const reads = (await readFile(join(root, program), 'utf8')).includes('/default/grub.d/');
      return reads ? undefined : `${program} does not read /etc/default/grub.d`;
    },
    create: ({ root, run }, fips) => grubBackend({ root, run, fips }),
  },
  grubby: {
    experimental: true,
    async lacks({ root }) {
      return (await isProgram(root, '/usr/sbin/grubby')) ? undefined : '/usr/sbin/grubby is not there';
    },
    create: ({ root, run }, fips) => grubbyBackend({ root, run, fips }),
  },
};

/**
 * What can change kernel arguments, image, kernel and extensions on this host, found by looking at it. Experimental ones
 * refuse everything, and say how to switch them on, until they are asked for by name. Throws where a backend that was
 * asked for by name cannot work here.
 */
export async function findOsBackend(search: BackendSearch): Promise<OsBackend> {
  const { root, wanted } = search;
  const fips = await fipsRefusal(root);
  if (wanted !== 'auto' && wanted !== 'none') {
    const lacks = await KINDS[wanted].lacks(search);
    if (lacks !== undefined) throw new Error(`the backend ${wanted} cannot work on this host: ${lacks}`);
    return KINDS[wanted].create(search, fips);
  }
  if (wanted === 'auto') {
    for (const kind of Object.values(KINDS)) {
      if ((await kind.lacks(search)) !== undefined) continue;
      const backend = kind.create(search, fips);
      return kind.experimental ? switchedOff(backend, root, fips) : backend;
    }
  }
  const reason =
    wanted === 'none'
      ? 'changes of the operating system are switched off on this host (DRYDOCK_OS_BACKEND=none)'
      : 'this host has none of update-grub with /etc/default/grub.d, grubby, rpm-ostree and bootc';
  return passiveBackend({ name: 'none', root, refusals: refuseAll(reason, fips) });
}

function switchedOff(backend: OsBackend, root: string, fips: Refusals): OsBackend {
  const reason = `the support for ${backend.name} is experimental and off: set DRYDOCK_OS_BACKEND=${backend.name} for the node worker of this host`;
  return passiveBackend({
    name: backend.name,
    root,
    refusals: refuseAll(reason, fips),
    deployment: () => backend.deployment(),
  });
}

async function isProgram(root: string, path: string): Promise<boolean> {
  return isThere(root, path, constants.X_OK);
}

async function isThere(root: string, path: string, mode = constants.F_OK): Promise<boolean> {
  try {
    await access(join(root, path), mode);
    return true;
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR', 'EACCES')) return false;
    throw error;
  }
}
