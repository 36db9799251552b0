import { createHash } from 'node:crypto';
import { chmod, copyFile, cp, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { readLabSettings } from '../settings.js';
import { ensureCached, type CacheEntry, type Log } from '../tools/cache.js';
import { checksumsOf, joinLayers, packLayer } from './archive.js';
import { compileProgram, type CompiledProgram } from './compile.js';
import { productionClosure, type LockedPackages } from './dependencies.js';
import { copyPackages } from './node-modules.js';
import { ensureNodeRuntime, NODE_RUNTIME, type PackageArchitecture } from './node-runtime.js';

/** What is packed: the worker of one node, or the control worker and the command. */
export type PackageKind = 'node' | 'control';

export interface PackageOptions {
  /** Default: this machine's. */
  readonly arch?: PackageArchitecture;
  /** Where the tarball is copied to; default: it stays in the lab's cache. */
  readonly outputDirectory?: string;
  /** Default: the project's. */
  readonly version?: string;
  readonly log: Log;
}

export interface BuiltPackage {
  /** Path of the `.tar.gz`; it holds one folder of the same name. */
  readonly tarball: string;
  readonly version: string;
}

const PROJECT = fileURLToPath(new URL('../../', import.meta.url));
const FOLDERS = ['machine-config', 'workflows', 'activities', 'workers', 'ignition-server', 'client'];
const ENTRIES = {
  node: ['workers/node.ts', 'workers/first-boot.ts'],
  // With the server for first boots and the command for administrators.
  control: ['workers/control.ts', 'ignition-server/main.ts', 'client/installed.ts'],
} as const satisfies Record<PackageKind, readonly string[]>;

/** Old builds of a package stay this long, since another run may be copying one. */
const KEEP_BUILDS_MS = 24 * 60 * 60_000;

/** The package of the node worker; built once for the same inputs, safe in several processes at once. */
export function buildNodePackage(options: PackageOptions): Promise<BuiltPackage> {
  return buildPackage('node', options);
}

/** The package of the control worker and the command; as `buildNodePackage`. */
export function buildControlPackage(options: PackageOptions): Promise<BuiltPackage> {
  return buildPackage('control', options);
}

/** @throws on an architecture that no package is made for. */
export function ownArchitecture(arch: string = process.arch): PackageArchitecture {
  if (arch === 'x64' || arch === 'arm64') return arch;
  throw new Error(`packages are made for x64 and arm64, not for ${arch}: name one with --arch`);
}

async function buildPackage(kind: PackageKind, options: PackageOptions): Promise<BuiltPackage> {
  const { cacheDirectory } = readLabSettings();
  const inputs = await readInputs(kind, options);
  const name = `drydock-${kind}-${inputs.version}-linux-${inputs.arch}`;
  const entry: CacheEntry = {
    name: `drydock-${kind}-linux-${inputs.arch}`,
    version: inputs.version,
    recipe: [await fingerprint(inputs)],
    usually: '2 to 10 seconds',
    doing: `packing ${name}`,
  };
  const fill = async (directory: string) => {
    const runtime = await ensureRuntimeLayer(inputs, name, cacheDirectory, options.log);
    await fillPackage(inputs, name, directory, runtime);
  };
  const directory = await ensureCached(cacheDirectory, entry, fill, options.log);
  await removeOldBuilds(cacheDirectory, entry);
  const cached = join(directory, `${name}.tar.gz`);
  if (options.outputDirectory === undefined) return { tarball: cached, version: inputs.version };
  await mkdir(options.outputDirectory, { recursive: true });
  const tarball = join(options.outputDirectory, `${name}.tar.gz`);
  await copyFile(cached, tarball);
  return { tarball, version: inputs.version };
}

interface PackageInputs {
  readonly kind: PackageKind;
  readonly arch: PackageArchitecture;
  readonly version: string;
  readonly program: CompiledProgram;
  /** The workflows as one file; only of the control worker. */
  readonly workflowBundle: string | undefined;
  readonly packageFolders: readonly string[];
  readonly locked: LockedPackages;
}

async function readInputs(kind: PackageKind, options: PackageOptions): Promise<PackageInputs> {
  const program = await compileProgram(PROJECT, ENTRIES[kind], FOLDERS);
  const { packages: locked } = await readProjectFile('package-lock.json', z.object({ packages: LOCKED_PACKAGES }));
  const { version } = await readProjectFile('package.json', z.object({ version: z.string() }));
  return {
    kind,
    arch: options.arch ?? ownArchitecture(),
    version: options.version ?? version,
    program,
    // Imported here: the bundler takes seconds to load.
    workflowBundle:
      kind === 'control' ? await (await import('./workflow-bundle.js')).bundleWorkflows(PROJECT) : undefined,
    packageFolders: productionClosure(locked, program.packages),
    locked,
  };
}

const NAMES = z.record(z.string(), z.string()).exactOptional();
const LOCKED_PACKAGES = z.record(
  z.string(),
  z.object({
    version: z.string().exactOptional(),
    integrity: z.string().exactOptional(),
    os: z.array(z.string()).exactOptional(),
    cpu: z.array(z.string()).exactOptional(),
    dependencies: NAMES,
    optionalDependencies: NAMES,
    peerDependencies: NAMES,
    peerDependenciesMeta: z.record(z.string(), z.object({ optional: z.boolean().exactOptional() })).exactOptional(),
  }),
);

async function readProjectFile<T>(file: string, schema: z.ZodType<T>): Promise<T> {
  return schema.parse(JSON.parse(await readFile(join(PROJECT, file), 'utf8')));
}

/** Everything that decides what comes out: another fingerprint is another build. */
async function fingerprint(inputs: PackageInputs): Promise<string> {
  const hash = createHash('sha256');
  const add = (...parts: readonly string[]) => hash.update(JSON.stringify(parts));
  add(...(await runtimeRecipe(inputs)));
  for (const [path, code] of inputs.program.files) add(path, code);
  add(inputs.workflowBundle ?? '');
  for (const folder of [...deployed(inputs.kind), ...besideProgram(inputs.kind)]) {
    add(...(await contentsBelow(folder)));
  }
  return hash.digest('hex');
}

/** What lies in the package as it lies there: scripts and units. */
function deployed(kind: PackageKind): readonly string[] {
  return ['deploy/shared', `deploy/${kind}`];
}

/** What the program reads as it runs, in the same place beside it as in a clone. */
function besideProgram(kind: PackageKind): readonly string[] {
  return kind === 'control' ? ['templates'] : [];
}

/** Of the part that changes only with the dependencies. */
async function runtimeRecipe({ kind, arch, version, packageFolders, locked }: PackageInputs): Promise<string[]> {
  const packages = packageFolders.flatMap((folder) => [folder, locked[folder]?.integrity ?? '']);
  return [kind, arch, version, NODE_RUNTIME.integrity[arch], ...packages, ...(await contentsBelow('dev/package'))];
}

async function contentsBelow(folder: string): Promise<string[]> {
  const files = await filesBelow(join(PROJECT, folder));
  return (await Promise.all(files.map(async (file) => [file, await readFile(file, 'utf8')]))).flat();
}

async function filesBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

/**
 * The Node.js runtime and the packages as a layer of the archive, with its checksums: 99 % of a package, and the same for
 * most builds.
 */
async function ensureRuntimeLayer(inputs: PackageInputs, name: string, cacheDirectory: string, log: Log) {
  const { kind, arch, version, packageFolders } = inputs;
  const runtime = await ensureNodeRuntime(arch, cacheDirectory, log);
  const entry: CacheEntry = {
    name: `drydock-${kind}-runtime-linux-${arch}`,
    version,
    recipe: await runtimeRecipe(inputs),
    usually: '10 to 60 seconds',
    doing: `packing Node.js and the npm packages of ${name}`,
  };
  const fill = async (directory: string) => {
    const folder = join(directory, name);
    await mkdir(join(folder, 'bin'), { recursive: true });
    await copyFile(join(runtime, 'node'), join(folder, 'bin/node'));
    await chmod(join(folder, 'bin/node'), 0o755);
    await copyPackages(PROJECT, folder, packageFolders, arch);
    await mkdir(join(folder, 'licences'));
    await copyFile(join(runtime, 'LICENSE'), join(folder, 'licences/node'));
    await writeFile(join(directory, 'SHA256SUMS'), await checksumsOf(folder));
    await packLayer({ folder, file: join(directory, 'layer.gz'), isLast: false });
    await rm(folder, { recursive: true });
  };
  const directory = await ensureCached(cacheDirectory, entry, fill, log);
  await removeOldBuilds(cacheDirectory, entry);
  return { layer: join(directory, 'layer.gz'), checksums: await readFile(join(directory, 'SHA256SUMS'), 'utf8') };
}

/** Writes the package into `directory`. */
async function fillPackage(
  inputs: PackageInputs,
  name: string,
  directory: string,
  runtime: { readonly layer: string; readonly checksums: string },
): Promise<void> {
  const folder = join(directory, name);
  await writeProgram(inputs, join(folder, 'lib'));
  for (const each of besideProgram(inputs.kind)) {
    await cp(join(PROJECT, each), join(folder, 'lib', each), { recursive: true });
  }
  for (const from of deployed(inputs.kind)) await cp(join(PROJECT, from), folder, { recursive: true });
  await mkdir(join(folder, 'licences'));
  await copyFile(join(PROJECT, 'LICENSE'), join(folder, 'licences/drydock'));
  await writeFile(join(folder, 'VERSION'), `${inputs.version}\n`);
  await writeFile(join(folder, 'SHA256SUMS'), `${await checksumsOf(folder)}${runtime.checksums}`);
  const layer = join(directory, 'layer.gz');
  await packLayer({ folder, file: layer, isLast: true });
  await joinLayers([runtime.layer, layer], join(directory, `${name}.tar.gz`));
  await rm(folder, { recursive: true });
  await rm(layer);
}

async function writeProgram({ program, workflowBundle, version }: PackageInputs, lib: string): Promise<void> {
  const files = new Map(program.files);
  files.set(
    'package.json',
    `${JSON.stringify({ name: 'drydock', version, type: 'module', private: true }, null, 2)}\n`,
  );
  if (workflowBundle !== undefined) files.set('workers/workflow-bundle.js', workflowBundle);
  for (const [path, text] of files) {
    await mkdir(dirname(join(lib, path)), { recursive: true });
    await writeFile(join(lib, path), text);
  }
}

/** Every change of a source makes a build of 50 MB: yesterday's go. */
async function removeOldBuilds(cacheDirectory: string, entry: CacheEntry): Promise<void> {
  const tools = join(cacheDirectory, 'tools');
  for (const name of await readdir(tools)) {
    if (!name.startsWith(`${entry.name}-`)) continue;
    const folder = join(tools, name);
    const modified = await stat(folder).catch(() => undefined);
    if (modified === undefined || Date.now() - modified.mtimeMs < KEEP_BUILDS_MS) continue;
    await rm(folder, { recursive: true, force: true });
  }
}
