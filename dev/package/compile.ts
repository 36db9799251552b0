import { readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import ts from 'typescript';

/** The program of a package. */
export interface CompiledProgram {
  /** JavaScript by its path below the project, `workers/node.js`. */
  readonly files: ReadonlyMap<string, string>;
  /** npm packages that it imports by name, sorted. */
  readonly packages: readonly string[];
}

/**
 * Translates the entries and every source that they import, also by `import()`, to JavaScript. Types are not checked:
 * `npm run package` has done that, and a source means the same without its neighbours (`verbatimModuleSyntax`,
 * `erasableSyntaxOnly`), so that what comes out is what `tsc` would emit.
 *
 * @throws when a source that is imported does not exist, or lies outside of `folders`.
 */
export async function compileProgram(
  root: string,
  entries: readonly string[],
  folders: readonly string[],
): Promise<CompiledProgram> {
  const options = compilerOptions(root);
  const files = new Map<string, string>();
  const packages = new Set<string>();
  const waiting = [...entries];
  for (let source = waiting.pop(); source !== undefined; source = waiting.pop()) {
    const target = source.replace(/\.ts$/, '.js');
    if (files.has(target)) continue;
    assertInProduct(source, folders);
    const code = translate(source, await readFile(join(root, source), 'utf8'), options);
    files.set(target, code);
    for (const specifier of importsOf(code)) {
      if (specifier.startsWith('node:') || isOwnPackageJson(source, specifier)) continue;
      if (specifier.startsWith('.')) waiting.push(sourceOf(source, specifier));
      else packages.add(packageOf(specifier));
    }
  }
  return {
    files: new Map([...files].sort(([one], [other]) => (one < other ? -1 : 1))),
    packages: [...packages].sort(),
  };
}

function compilerOptions(root: string): ts.CompilerOptions {
  const read = ts.readConfigFile(join(root, 'tsconfig.json'), (file) => ts.sys.readFile(file));
  const { options } = ts.parseJsonConfigFileContent(read.config, ts.sys, root);
  return {
    ...options,
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    noEmit: false,
    incremental: false,
    composite: false,
    sourceMap: false,
    declaration: false,
    removeComments: true,
  };
}

function translate(source: string, text: string, compilerOptions: ts.CompilerOptions): string {
  const { outputText, diagnostics = [] } = ts.transpileModule(text, {
    compilerOptions,
    fileName: source,
    reportDiagnostics: true,
  });
  const [first] = diagnostics;
  if (first === undefined) return outputText;
  throw new Error(`${source} does not compile: ${ts.flattenDiagnosticMessageText(first.messageText, ' ')}`);
}

function importsOf(code: string): string[] {
  return ts.preProcessFile(code, true, true).importedFiles.map(({ fileName }) => fileName);
}

/** Every package has one of its own. */
function isOwnPackageJson(importer: string, specifier: string): boolean {
  return specifier.startsWith('.') && sourceOf(importer, specifier) === 'package.json';
}

/** `workers/node.ts` imports `./config.js`: `workers/config.ts`. */
function sourceOf(importer: string, specifier: string): string {
  const path = relative('/', join('/', importer, '..', specifier));
  return path.replace(/\.js$/, '.ts');
}

function assertInProduct(source: string, folders: readonly string[]): void {
  if (source.endsWith('.ts') && folders.some((folder) => source.startsWith(`${folder}/`))) return;
  throw new Error(`${source} is imported by the program of a package, which holds only code of ${folders.join(', ')}`);
}

/** `@temporalio/worker/lib/x` → `@temporalio/worker`. */
function packageOf(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}
