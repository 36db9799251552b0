import { copyFile, mkdir, readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { PackageArchitecture } from './node-runtime.js';

/** No program loads them. Licences stay, whatever their ending. */
const NOT_LOADED = /\.(?:[cm]?ts|map|md|markdown|flow|proto|tsbuildinfo|node-gyp|html|yml|yaml)$/;
const LICENCE = /^(?:licen[cs]e|notice|copying|patents|authors)/i;
/** Folders in which packages ship what only their own developers need. */
const NOT_LOADED_FOLDERS = new Set(['test', 'tests', '__tests__', 'docs', 'doc', 'example', 'examples', 'benchmarks']);

const RUST_TARGETS = {
  x64: 'x86_64-unknown-linux-gnu',
  arm64: 'aarch64-unknown-linux-gnu',
} as const satisfies Record<PackageArchitecture, string>;

/** Packages of which only some files are loaded, as path prefixes below the package. */
function trimmedTo(folder: string, architecture: PackageArchitecture): readonly string[] | undefined {
  const trimmed: Readonly<Record<string, readonly string[]>> = {
    // The native library of the one target; the sources of all of them are in the package as well.
    'node_modules/@temporalio/core-bridge': [
      'index.js',
      'common.js',
      'lib/',
      `releases/${RUST_TARGETS[architecture]}/`,
    ],
    // The SDK's worker loads the index, which loads the rest only when something is bundled.
    'node_modules/webpack': ['lib/index.js', 'lib/util/memoize.js'],
    // Node.js is given the CommonJS build.
    'node_modules/rxjs': ['dist/cjs/', 'operators/', 'ajax/', 'fetch/', 'testing/', 'webSocket/'],
  };
  return trimmed[folder];
}

/** Copies the folders of installed packages below `from` to the same places below `to`, without what nobody loads. */
export async function copyPackages(
  from: string,
  to: string,
  folders: readonly string[],
  architecture: PackageArchitecture,
): Promise<void> {
  for (const folder of folders) {
    const kept = trimmedTo(folder, architecture);
    for (const file of await filesOfPackage(join(from, folder))) {
      if (kept !== undefined && !isKept(file, kept)) continue;
      const target = join(to, folder, file);
      await mkdir(dirname(target), { recursive: true });
      await copyFile(join(from, folder, file), target);
    }
  }
}

function isKept(file: string, kept: readonly string[]): boolean {
  return file === 'package.json' || LICENCE.test(file) || kept.some((prefix) => file.startsWith(prefix));
}

async function filesOfPackage(folder: string, below = ''): Promise<string[]> {
  const entries = await readdir(join(folder, below), { withFileTypes: true });
  const files: string[] = [];
  for (const entry of entries) {
    const path = below === '' ? entry.name : `${below}/${entry.name}`;
    if (entry.isDirectory()) {
      if (entry.name === 'node_modules' || entry.name.startsWith('.')) continue;
      if (below === '' && NOT_LOADED_FOLDERS.has(entry.name)) continue;
      files.push(...(await filesOfPackage(folder, path)));
    } else if (entry.isFile() && (LICENCE.test(entry.name) || !NOT_LOADED.test(entry.name))) {
      files.push(path);
    }
  }
  return files;
}
