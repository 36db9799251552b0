/**
 * What `npm run demo`, `npm test`, `npm run bench`, `npm run chaos` and `npm run package` start. Plain Node without dependencies, because it runs before they are installed:
 * checks Node, installs packages and tools where they are missing, then runs the target.
 *
 *   node dev/run.mjs demo [arguments of dev/demo.ts]
 *   node dev/run.mjs test [arguments of vitest]
 *   node dev/run.mjs bench|chaos|package [arguments of dev/bench/main.ts, dev/chaos/main.ts, dev/package/main.ts]
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const endWithParent = new URL('processes/end-with-parent.mjs', import.meta.url).href;
const OLDEST_NODE = [20, 19];
const PARENT_CHECK_MS = 1000;
const PROGRAMS = {
  demo: 'dev/demo.ts',
  bench: 'dev/bench/main.ts',
  chaos: 'dev/chaos/main.ts',
  package: 'dev/package/main.ts',
};
const REAL_NODE_PROJECTS = ['node', 'package'];
const KILL_AFTER_MS = 10_000;

let current;
let ending = false;
endChildWithUs();

const [target, ...args] = process.argv.slice(2);
process.exitCode = await main(target, args);

async function main(what, rest) {
  const program = PROGRAMS[what];
  if (program === undefined && what !== 'test')
    return fail('usage: node dev/run.mjs demo|test|bench|chaos|package [arguments]');
  if (isTooOld(process.versions.node)) {
    return fail(`Node ${process.versions.node} is too old: install Node ${OLDEST_NODE.join('.')} or newer`);
  }
  const installed = await installPackages();
  if (installed !== 0) return fail('npm ci failed; what it says is above');
  if (needsTools(what, rest)) {
    const options = [...(usesRealNodes(what, rest) ? ['--real-nodes'] : []), ...(what === 'test' ? ['--tests'] : [])];
    const prepared = await runTypeScript('dev/prepare.ts', options);
    if (prepared !== 0) return prepared;
  }
  return program === undefined ? runTests(rest) : runTypeScript(program, rest);
}

function isTooOld(version) {
  const [major, minor] = version.split('.').map(Number);
  return major < OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor < OLDEST_NODE[1]);
}

/** `npm ci` where node_modules is missing or was made from another lock file. Install scripts are not needed. */
async function installPackages() {
  const lock = readFileSync(join(root, 'package-lock.json'));
  const hash = createHash('sha256').update(lock).digest('hex');
  const stamp = join(root, 'node_modules', '.drydock-lock-hash');
  const madeBy = join(root, 'node_modules', '.package-lock.json');
  if (existsSync(stamp) ? readFileSync(stamp, 'utf8') === hash : isNewer(madeBy, join(root, 'package-lock.json'))) {
    return 0;
  }
  console.error('[install] npm ci (usually 10 seconds to 2 minutes)');
  const npm = process.env.npm_execpath;
  const command = npm?.endsWith('.js') ? [process.execPath, npm] : ['npm'];
  const options = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  const code = await run([...command, ...options], { stdio: ['ignore', 2, 2] });
  if (code === 0) writeFileSync(stamp, hash);
  return code;
}

function isNewer(file, than) {
  return existsSync(file) && statSync(file).mtimeMs >= statSync(than).mtimeMs;
}

/** Unit tests and packages need neither Temporal nor Kubernetes. */
function needsTools(what, rest) {
  if (what === 'package') return false;
  const projects = projectsOf(rest);
  return what !== 'test' || projects.length === 0 || projects.some((project) => project !== 'unit');
}

/** Whether machines of systemd-nspawn are booted: in the tests of the projects named here, and where they are asked for. */
function usesRealNodes(what, rest) {
  if (what !== 'test')
    return (what === 'bench' && rest[0] !== 'rollout') || rest.some((arg) => arg.startsWith('--real-nodes'));
  const projects = projectsOf(rest);
  return projects.length === 0 || projects.some((project) => REAL_NODE_PROJECTS.includes(project));
}

function projectsOf(rest) {
  return rest.flatMap((arg, i) => (arg === '--project' ? [rest[i + 1]] : (/^--project=(.*)/.exec(arg)?.[1] ?? [])));
}

function runTypeScript(file, rest) {
  const tsx = pathToFileURL(join(root, 'node_modules', 'tsx', 'dist', 'loader.mjs')).href;
  return run([process.execPath, '--import', endWithParent, '--import', tsx, join(root, file), ...rest]);
}

/** Runs all tests; the last line is `N passed, N failed`, with `, N skipped` where some were. */
async function runTests(rest) {
  const directory = mkdtempSync(join(tmpdir(), 'drydock-test-'));
  try {
    const report = join(directory, 'report.json');
    const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs');
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
    const code = await run([process.execPath, '--import', endWithParent, vitest, 'run', ...reporters, ...rest]);
    const { passed, failed, skipped } = readCounts(report);
    // An error outside every test (a file that does not load, an unhandled rejection) fails the run as well.
    const failures = code !== 0 && failed === 0 ? 1 : failed;
    console.log(`${passed} passed, ${failures} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`);
    return failures > 0 ? code || 1 : code;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function readCounts(report) {
  try {
    const json = JSON.parse(readFileSync(report, 'utf8'));
    const skipped = (json.numPendingTests ?? 0) + (json.numTodoTests ?? 0);
    return { passed: json.numPassedTests, failed: json.numFailedTests, skipped };
  } catch {
    return { passed: 0, failed: 0, skipped: 0 };
  }
}

/** @returns the exit code; 128 + n when a signal ended it, as a shell reports it. */
function run([command, ...rest], options = {}) {
  if (ending) return Promise.resolve(143);
  return new Promise((resolve) => {
    current = spawn(command, rest, { cwd: root, stdio: 'inherit', ...options });
    current.once('error', (error) => resolve(fail(`${command} could not be started: ${error.message}`)));
    current.once('exit', (code, signal) => resolve(code ?? (signal === 'SIGINT' ? 130 : 143)));
  });
}

/** Ctrl-C reaches the child through the terminal: we only wait for it. SIGTERM, and a parent that is gone, end it. */
function endChildWithUs() {
  const end = () => {
    ending = true;
    current?.kill('SIGTERM');
    setTimeout(() => current?.kill('SIGKILL'), KILL_AFTER_MS).unref();
  };
  process.on('SIGINT', () => undefined);
  process.on('SIGTERM', end);
  process.on('SIGHUP', end);
  // Between npm and us there is a shell, which outlives a killed npm: the parent's parent counts as well.
  const ancestors = () => `${process.ppid} ${parentOf(process.ppid)}`;
  const atFirst = ancestors();
  const watch = setInterval(() => {
    if (ancestors() === atFirst) return;
    clearInterval(watch);
    end();
  }, PARENT_CHECK_MS);
  watch.unref();
}

/** Empty where there is no /proc. */
function parentOf(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1];
  } catch {
    return '';
  }
}

function fail(message) {
  console.error(message);
  return 1;
}
