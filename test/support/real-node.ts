import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { lstat, readdir, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe } from 'vitest';
import { startLab, type Lab, type LabOptions } from '../../dev/lab.js';
import { whyNoRealNodes } from '../../dev/real-nodes/availability.js';
import type { Machine } from '../../dev/real-nodes/real-node.js';

const say = (line: string) => void process.stderr.write(`${line}\n`);
const why = await whyNoRealNodes(say);
if (why !== undefined) say(`tests with real nodes are skipped: ${why}`);

/** Tests that need real systemd machines: skipped, and counted as that, where there can be none. */
export const describeRealNodes = describe.skipIf(why !== undefined);

/** One lab for all tests of a `describeRealNodes`. @returns what gives it, within a test or a hook. */
export function useLab(options: LabOptions = {}): () => Lab {
  let lab: Lab | undefined;
  beforeAll(async () => {
    lab = await startLab(options);
  });
  afterAll(async () => lab?.stop());
  return () => {
    if (lab === undefined) throw new Error('the lab is there within tests and hooks');
    return lab;
  };
}

/** Path to what is there: `file 644 0:0 SHA-256`, `link 0:0 target`, `directory 755 0:0`. */
export type Tree = Readonly<Record<string, string>>;

export interface TreeOptions {
  /** Where to look; absolute paths of the machine. Default: all that a config can change. */
  readonly folders?: readonly string[];
  /** Besides what a running system changes by itself: paths that are left out with all below them. */
  readonly except?: readonly string[];
}

const FOLDERS = ['/boot', '/etc', '/home', '/opt', '/root', '/srv', '/usr/lib/systemd', '/usr/local', '/var'];

/** What a running system changes by itself. */
const CHANGED_BY_THE_SYSTEM = [
  '/etc/machine-id',
  '/var/cache',
  '/var/lib/dbus',
  '/var/lib/systemd',
  '/var/log',
  '/var/spool',
  '/var/tmp',
];

/**
 * Everything on a machine's disk, for comparison before and after: type, mode, owner, link target, contents. It looks
 * from outside, with nothing of Drydock's own code, and works while the machine runs and while it is off.
 */
export async function treeOf({ root }: Pick<Machine, 'root'>, options: TreeOptions = {}): Promise<Tree> {
  const tree: Record<string, string> = {};
  const except = new Set([...CHANGED_BY_THE_SYSTEM, ...(options.except ?? [])]);
  const visit = async (path: string): Promise<void> => {
    if (except.has(path)) return;
    const found = await describeEntry(join(root, path));
    if (found === undefined) return;
    tree[path] = found;
    if (!found.startsWith('directory')) return;
    for (const name of (await readdir(join(root, path))).sort()) await visit(join(path, name));
  };
  for (const folder of options.folders ?? FOLDERS) await visit(folder);
  return tree;
}

/** One line for each path that is not the same in both. */
export function treeDifferences(before: Tree, after: Tree): string[] {
  const paths = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
  return paths
    .filter((path) => before[path] !== after[path])
    .map((path) => `${path}: ${before[path] ?? 'nothing'} → ${after[path] ?? 'nothing'}`);
}

/** Undefined where there is nothing: a running machine removes things while we look. */
async function describeEntry(path: string): Promise<string | undefined> {
  try {
    const entry = await lstat(path);
    const owner = `${entry.uid}:${entry.gid}`;
    // The mode of a link means nothing.
    if (entry.isSymbolicLink()) return `link ${owner} ${await readlink(path)}`;
    const mode = (entry.mode & 0o7777).toString(8);
    if (entry.isDirectory()) return `directory ${mode} ${owner}`;
    if (entry.isFile()) return `file ${mode} ${owner} ${await sha256(path)}`;
    return `special ${entry.mode.toString(8)} ${owner}`;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}

async function sha256(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  return hash.digest('hex');
}
