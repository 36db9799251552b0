import { lstat, readlink } from 'node:fs/promises';
import { join, posix } from 'node:path';
import { isErrno } from './durable.js';

/** A path of a config cannot be used on this host; the message says which and why. */
export class PathRefused extends Error {
  override readonly name = 'PathRefused';
}

/** As many as the kernel follows. */
const MOST_LINKS = 40;

/** Never managed: kernel file systems, Drydock's own state and program, and what the kubelet's identity depends on. */
export const PROTECTED = [
  '/proc',
  '/sys',
  '/dev',
  '/opt/drydock',
  '/var/lib/drydock',
  '/var/lib/drydock-lab',
  '/etc/drydock',
  '/var/lib/kubelet/pki',
  '/var/lib/kubelet/kubeconfig',
  '/etc/kubernetes/kubeconfig',
];

/** Throws PathRefused for a path that is not absolute and normal, or that no config may manage. */
export function checkManageable(path: string): void {
  if (!path.startsWith('/') || path.includes('\0')) throw new PathRefused(`${path}: not an absolute path`);
  if (posix.normalize(path) !== path || path.endsWith('/')) {
    throw new PathRefused(`${path}: has "." or ".." or an extra "/" in it; write the path in its plain form`);
  }
  const owner = PROTECTED.find((folder) => path === folder || path.startsWith(`${folder}/`));
  if (owner !== undefined) throw new PathRefused(`${path}: ${owner} may not be managed by a MachineConfig`);
}

/**
 * Follows the symbolic links among the parents of `path` as a process whose root is `root` would, and returns the path,
 * still relative to `root` (`/var/home/core/x`), whose parents hold no links: opening it below `root` cannot lead
 * outside. The last component is not followed: a link there is itself what is managed. Throws PathRefused where a link
 * climbs above the root, leads nowhere or in circles, or a parent is no directory.
 */
export async function resolveInRoot(root: string, path: string): Promise<string> {
  const pending = path.split('/').filter((part) => part !== '');
  const last = pending.pop();
  if (last === undefined) throw new PathRefused(`${path}: the root itself cannot be managed`);
  let resolved: string[] = [];
  let links = 0;
  let viaLink = 0;
  while (pending.length > 0) {
    const part = pending.shift() ?? '';
    viaLink = Math.max(0, viaLink - 1);
    if (part === '..') {
      if (resolved.length === 0) throw new PathRefused(`${path}: a link among its parents leads out of the root`);
      resolved.pop();
      continue;
    }
    const here = [...resolved, part];
    const entry = await lookAt(join(root, ...here));
    if (entry === 'absent' && viaLink > 0) {
      throw new PathRefused(`${path}: a link among its parents leads to /${here.join('/')}, which does not exist`);
    }
    if (entry === 'other') throw new PathRefused(`${path}: /${here.join('/')} is not a directory`);
    if (entry === 'absent' || entry === 'directory') {
      resolved = here;
      continue;
    }
    if (++links > MOST_LINKS) throw new PathRefused(`${path}: the links among its parents go in circles`);
    const target = entry.leadsTo.split('/').filter((piece) => piece !== '' && piece !== '.');
    if (entry.leadsTo.startsWith('/')) resolved = [];
    pending.unshift(...target);
    viaLink = target.length + 1;
  }
  return `/${[...resolved, last].join('/')}`;
}

async function lookAt(path: string): Promise<'absent' | 'directory' | 'other' | { leadsTo: string }> {
  try {
    const stats = await lstat(path);
    if (stats.isSymbolicLink()) return { leadsTo: await readlink(path) };
    return stats.isDirectory() ? 'directory' : 'other';
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return 'absent';
    throw error;
  }
}
