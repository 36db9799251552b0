/** What package-lock.json knows of one installed package. */
export interface LockedPackage {
  readonly version?: string;
  readonly integrity?: string;
  readonly os?: readonly string[];
  readonly cpu?: readonly string[];
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>;
}

/** By the folder that the package is installed in, `node_modules/a/node_modules/b`. */
export type LockedPackages = Readonly<Record<string, LockedPackage>>;

/**
 * Packages that `@temporalio/worker` names for bundling workflows. A package brings its workflows bundled, or runs none,
 * so they would be 100 MB that nothing loads. Of webpack the SDK loads the index (see TRIMMED_PACKAGES).
 */
const ONLY_FOR_BUNDLING = new Set(['@swc/core', 'swc-loader', 'source-map-loader']);
/** Type declarations, and what stands in for Node's modules where the Bare runtime runs a package. */
const NOT_FOR_NODE = /^(?:@types\/|bare-)/;
const WITHOUT_THEIR_DEPENDENCIES = new Set(['webpack']);

/**
 * The folders of all packages that the given ones need in production, found as Node.js finds them (from the inside to
 * the outside); sorted.
 *
 * @throws when one is missing, or is made for one platform only: it would come from the building machine.
 */
export function productionClosure(locked: LockedPackages, names: readonly string[]): string[] {
  const found = new Set<string>();
  const waiting = names.map((name) => ({ name, from: '', isOptional: false }));
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const folder = folderOf(locked, next.name, next.from);
    if (folder === undefined) {
      if (next.isOptional) continue;
      throw new Error(
        `package-lock.json has no ${next.name}, which ${next.from || 'the program'} needs: run npm install`,
      );
    }
    if (found.has(folder)) continue;
    const entry = locked[folder] ?? {};
    if (entry.os !== undefined || entry.cpu !== undefined) {
      if (next.isOptional) continue;
      throw new Error(`${folder} is made for one platform: teach dev/package how to get the one of the package`);
    }
    found.add(folder);
    if (!WITHOUT_THEIR_DEPENDENCIES.has(next.name)) waiting.push(...needsOf(entry, folder));
  }
  return [...found].sort();
}

function needsOf(entry: LockedPackage, from: string): { name: string; from: string; isOptional: boolean }[] {
  const isOptionalPeer = (name: string) => entry.peerDependenciesMeta?.[name]?.optional === true;
  const all = [
    ...Object.keys(entry.dependencies ?? {}).map((name) => ({ name, from, isOptional: false })),
    ...Object.keys(entry.optionalDependencies ?? {}).map((name) => ({ name, from, isOptional: true })),
    ...Object.keys(entry.peerDependencies ?? {})
      .filter((name) => !isOptionalPeer(name))
      .map((name) => ({ name, from, isOptional: false })),
  ];
  return all.filter(({ name }) => !ONLY_FOR_BUNDLING.has(name) && !NOT_FOR_NODE.test(name));
}

function folderOf(locked: LockedPackages, name: string, from: string): string | undefined {
  for (let base = from; ; base = base.slice(0, Math.max(0, base.lastIndexOf('/node_modules/')))) {
    const folder = base === '' ? `node_modules/${name}` : `${base}/node_modules/${name}`;
    if (folder in locked) return folder;
    if (base === '') return undefined;
  }
}
