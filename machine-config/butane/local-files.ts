/** What a file beside the Butane file holds, or a clause that says why it cannot be had. */
export type LocalFile =
  { readonly ok: true; readonly bytes: Uint8Array } | { readonly ok: false; readonly error: string };

/** One file or link of a tree, by its path below the root of the tree, with slashes. */
export type TreeEntry =
  | { readonly kind: 'file'; readonly path: string; readonly bytes: Uint8Array; readonly executable: boolean }
  | { readonly kind: 'link'; readonly path: string; readonly target: string };

export type LocalTree =
  { readonly ok: true; readonly entries: readonly TreeEntry[] } | { readonly ok: false; readonly error: string };

/**
 * The files that a Butane file may take contents from: those of one folder, by their path below it. Whoever provides
 * them sees to it that no path and no link leads out of the folder.
 */
export interface LocalFiles {
  readFile(path: string): LocalFile;
  /** All files and links below a folder, in the order of their paths. */
  readTree(path: string): LocalTree;
}
