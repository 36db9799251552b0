import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { runProgram, tail } from '../tools/run-program.js';
import { sha256Of } from './archive.js';
import { buildControlPackage, buildNodePackage, ownArchitecture } from './build.js';
import { PACKAGE_ARCHITECTURES, type PackageArchitecture } from './node-runtime.js';

const USAGE = 'usage: npm run package -- [--arch x64|arm64|all] [--out DIR] [--version VERSION]';

/** `npm run package`: the packages of both workers, and SHA256SUMS beside them. */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      arch: { type: 'string' },
      out: { type: 'string', default: 'dist' },
      version: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(`${USAGE}\n`);
    return;
  }
  const log = (line: string) => process.stderr.write(`[package] ${line}\n`);
  const outputDirectory = resolve(values.out);
  const requested = architectures(values.arch);
  await checkTypes(log);
  const sums: string[] = [];
  for (const arch of requested) {
    for (const build of [buildNodePackage, buildControlPackage]) {
      const options = {
        arch,
        outputDirectory,
        log,
        ...(values.version === undefined ? {} : { version: values.version }),
      };
      const { tarball } = await build(options);
      const name = tarball.slice(outputDirectory.length + 1);
      sums.push(`${await sha256Of(tarball)}  ${name}\n`);
      process.stdout.write(`${tarball}\n`);
    }
  }
  await writeFile(join(outputDirectory, 'SHA256SUMS'), sums.join(''));
}

/** The packages themselves are translated file by file, which sees no wrong type. */
async function checkTypes(log: (line: string) => void): Promise<void> {
  log('checking types (usually 5 to 20 seconds)');
  const tsc = fileURLToPath(import.meta.resolve('typescript/bin/tsc'));
  const checked = await runProgram(process.execPath, [tsc, '-p', fileURLToPath(new URL('../../', import.meta.url))]);
  if (checked.outcome === 'failed') throw new Error(`the sources have wrong types:\n${tail(checked.output, 10)}`);
}

function architectures(arch: string | undefined): readonly PackageArchitecture[] {
  return arch === 'all' ? PACKAGE_ARCHITECTURES : [ownArchitecture(arch)];
}

try {
  await main();
} catch (error) {
  const message = error instanceof Error ? error.message : String(error);
  process.stderr.write(`package: ${message}\n`);
  process.exitCode = 1;
}
