import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { unpackedPackage } from '../support/node-package.js';

const run = promisify(execFile);
const PROJECT = fileURLToPath(new URL('../../', import.meta.url));
/** A worker's own environment has nothing of the machine that built it. */
const NOTHING_SET = { env: {}, cwd: '/' };

describe.each(['node', 'control'] as const)('the package of the %s worker', (kind) => {
  let directory: string;
  let folder: string;
  let files: string[];

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'drydock-package-'));
    folder = await unpackedPackage(kind, directory);
    const entries = await readdir(folder, { recursive: true, withFileTypes: true });
    files = entries.filter((entry) => !entry.isDirectory()).map((entry) => join(entry.parentPath, entry.name));
    files = files.map((file) => file.slice(folder.length + 1)).sort();
  });
  afterAll(() => rm(directory, { recursive: true, force: true }));

  it('holds the product and nothing of its making', async () => {
    const own = {
      node: ['first-boot.sh', 'install.sh', 'node.env.example', 'uninstall.sh', 'unit'],
      control: [
        'control.env.example',
        'ignition-server.env.example',
        'install.sh',
        'sysusers',
        'uninstall.sh',
        'unit',
        'versions.sh',
      ],
    };
    const shared = ['SHA256SUMS', 'VERSION', 'bin', 'guard', 'lib', 'licences', 'node_modules', 'unpack.sh'];
    expect((await readdir(folder)).sort()).toEqual([...shared, ...own[kind]].sort());
    const program = (await readdir(join(folder, 'lib'))).sort();
    const control = kind === 'control' ? ['client', 'ignition-server', 'templates'] : [];
    const common = ['activities', 'machine-config', 'package.json', 'workers', 'workflows'];
    expect(program).toEqual([...common, ...control].sort());
    expect((await readdir(join(folder, 'bin'))).sort()).toEqual(
      kind === 'control' ? ['drydock', 'drydock-control', 'drydock-ignition-server', 'node'] : ['node'],
    );
    expect(files.filter((file) => /\.(?:[cm]?ts|map)$|\.test\.|simulated-fleet/.test(file))).toEqual([]);
  });

  it('has no packages for development, none for bundling, and one native library', () => {
    const packages = new Set(files.flatMap((file) => /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file)?.[1] ?? []));
    expect(packages).toContain('@temporalio/worker');
    const unwanted = [...Object.keys(packageJson.devDependencies), '@swc/core', 'swc-loader', 'esbuild', 'terser'];
    expect(unwanted.filter((name) => packages.has(name) && name !== 'protobufjs')).toEqual([]);
    const rust = process.arch === 'x64' ? 'x86_64' : 'aarch64';
    expect(files.filter((file) => file.endsWith('.node'))).toEqual([
      `node_modules/@temporalio/core-bridge/releases/${rust}-unknown-linux-gnu/index.node`,
    ]);
  });

  it('tells nothing of where it was built', async () => {
    const found = await run('grep', ['--recursive', '--files-with-matches', '--fixed-strings', PROJECT, folder]).catch(
      (error: unknown) => error,
    );
    // Exit code 1: no file has it.
    expect(found).toMatchObject({ code: 1, stdout: '' });
    const bundle = files.find((file) => file.endsWith('workflow-bundle.js'));
    expect(bundle).toBe(kind === 'control' ? 'lib/workers/workflow-bundle.js' : undefined);
    if (bundle === undefined) return;
    const [, map = ''] = (await readFile(join(folder, bundle), 'utf8')).split(
      'sourceMappingURL=data:application/json;',
    );
    const { sources } = JSON.parse(Buffer.from(map.split('base64,')[1] ?? '', 'base64').toString()) as {
      sources: string[];
    };
    expect(sources).toContain('workflows/update-node.ts');
    expect(sources.filter((source) => source.startsWith('/'))).toEqual([]);
  });

  it('has checksums of all that it holds', async () => {
    await run('sha256sum', ['--check', '--strict', '--quiet', 'SHA256SUMS'], { cwd: folder });
    const sums = await readFile(join(folder, 'SHA256SUMS'), 'utf8');
    const named = sums
      .split('\n')
      .filter(Boolean)
      .map((line) => line.slice(66));
    expect(named.sort()).toEqual(files.filter((file) => file !== 'SHA256SUMS'));
  });

  it('loads all that its program names, with its own Node.js and no other packages around', async () => {
    const node = join(folder, 'bin/node');
    const code = files.filter((file) => file.startsWith('lib/') && file.endsWith('.js'));
    const texts = await Promise.all(code.map((file) => readFile(join(folder, file), 'utf8')));
    const names = new Set(
      texts
        .flatMap((text) =>
          [...text.matchAll(/from '([@a-z][^'.]*)'|import\('([@a-z][^']*)'\)/g)].map(
            ([, one, other]) => one ?? other ?? '',
          ),
        )
        .filter((name) => name !== '' && !name.startsWith('node:')),
    );
    expect(names).toContain('@kubernetes/client-node');
    const imports = [...names].map((name) => `await import(${JSON.stringify(name)});`).join('\n');
    const script = `${imports}\nprocess.stdout.write(process.version)`;
    // From within lib/, where the program looks for them.
    const loaded = await run(node, ['--input-type=module', '--eval', script], { env: {}, cwd: join(folder, 'lib') });
    expect(loaded.stdout).toBe('v20.20.2');
  });

  it('says which version it is', async () => {
    const program = join(folder, `lib/workers/${kind}.js`);
    const said = await run(join(folder, 'bin/node'), [program, '--version'], NOTHING_SET);
    expect(said.stdout).toBe(`${packageJson.version}\n`);
  });
});
