import type { IgnitionConfig, IgnitionFile, IgnitionLink } from '../ignition/config.js';
import type { FieldPath } from '../ignition/findings.js';
import { embedContents } from './contents.js';
import type { TreeEntry } from './local-files.js';
import { packsContents, whyRefused } from './rules.js';
import type { Translating } from './sections.js';

type Storage = NonNullable<IgnitionConfig['storage']>;
export interface Tree {
  readonly local: string;
  readonly path?: string;
}

/**
 * The storage section with the files and links of local folders. An entry of the file for the same path says mode and
 * owner, and must leave the contents to the tree. Files are 0755 if they are executable, else 0644.
 */
export function withTrees(storage: Storage, trees: readonly Tree[], to: Translating): Storage {
  const files = [...(storage.files ?? [])];
  const links = [...(storage.links ?? [])];
  const directories = new Set((storage.directories ?? []).map(({ path }) => path));
  trees.forEach((tree, index) => {
    const at = ['storage', 'trees', index];
    const read = to.files.readTree(tree.local);
    if (!read.ok) {
      to.findings.refuse([...at, 'local'], read.error);
      return;
    }
    for (const entry of read.entries) {
      const path = `${(tree.path ?? '/').replace(/\/$/, '')}/${entry.path}`;
      const isTaken =
        directories.has(path) || (entry.kind === 'file' ? links : files).some((node) => node.path === path);
      if (isTaken) {
        to.findings.refuse(at, `${path} of the tree is something else in this file; take one of the two out`);
      } else if (entry.kind === 'file') {
        placeFile({ files, entry, path, at }, to);
      } else {
        placeLink({ links, entry, path, at }, to);
      }
    }
  });
  return { ...storage, ...(files.length === 0 ? {} : { files }), ...(links.length === 0 ? {} : { links }) };
}

interface Placing<N, E> {
  readonly entry: E;
  readonly path: string;
  readonly at: FieldPath;
  readonly files?: N[];
  readonly links?: N[];
}
type FileEntry = Extract<TreeEntry, { kind: 'file' }>;
type LinkEntry = Extract<TreeEntry, { kind: 'link' }>;

function placeFile({ files = [], entry, path, at }: Placing<IgnitionFile, FileEntry>, to: Translating): void {
  const index = indexOf(files, path);
  const own = files[index];
  if (own?.contents?.source !== undefined) {
    to.findings.refuse(at, `${path} of the tree has contents in storage.files too; take one of the two out`);
    return;
  }
  const isPacked = (own?.contents?.compression ?? '') !== '';
  const contents = { ...own?.contents, ...embedContents(entry.bytes, packsContents(to.spec) && !isPacked) };
  files[index] = { ...own, path, contents, mode: own?.mode ?? (entry.executable ? 0o755 : 0o644) };
  const place = ['storage', 'files', index];
  to.origins.fromOne(own === undefined ? place : [...place, 'contents'], at);
}

function placeLink({ links = [], entry, path, at }: Placing<IgnitionLink, LinkEntry>, to: Translating): void {
  const refused = whyRefused(to.spec, 'storage.links', undefined);
  if (refused !== undefined) {
    to.findings.refuse(at, `the link ${path} of the tree ${refused}`);
    return;
  }
  const index = indexOf(links, path);
  const own = links[index];
  if ((own?.target ?? '') !== '') {
    to.findings.refuse(at, `${path} of the tree has a target in storage.links too; take one of the two out`);
    return;
  }
  links[index] = { ...own, path, target: entry.target };
  to.origins.fromOne(own === undefined ? ['storage', 'links', index] : ['storage', 'links', index, 'target'], at);
}

/** Where the entry of that path is, or where it will be. */
function indexOf(nodes: readonly { readonly path: string }[], path: string): number {
  const found = nodes.findIndex((node) => node.path === path);
  return found < 0 ? nodes.length : found;
}
