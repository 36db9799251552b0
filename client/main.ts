import { CommanderError, type CommandUnknownOpts } from '@commander-js/extra-typings';
import { homedir } from 'node:os';
import packageJson from '../package.json' with { type: 'json' };
import { exitCodeOf, lineOf } from './command-error.js';
import { EXIT_CODES } from './exit-codes.js';
import { makeLabProgram, makeProgram, type Act } from './program.js';
import { Session, type AddLabCommand, type CommandWorld, type GlobalOptions } from './session.js';

/** Runs one command line (without the names of node and of the program) and resolves to its exit code. Never rejects. */
export async function run(words: readonly string[], world: CommandWorld): Promise<number> {
  if (words[0] === 'lab' && world.loadLab !== undefined) return runLab(words, world, await world.loadLab());
  let code: number = EXIT_CODES.ok.code;
  const makeAct =
    (options: GlobalOptions): Act =>
    async (command) => {
      const toYaml = options.output === 'yaml' ? (await import('./manifest-files.js')).writeManifest : undefined;
      const session = new Session(world, options, toYaml);
      try {
        code = EXIT_CODES[await command(session)].code;
      } finally {
        await session.close();
      }
    };
  const program = makeProgram({ version: packageJson.version, hasLab: world.loadLab !== undefined, makeAct });
  const failed = await parse(program, words, world);
  return failed ?? code;
}

/** The commands of the lab set the exit code of the process themselves. */
async function runLab(words: readonly string[], world: CommandWorld, addLabCommand: AddLabCommand): Promise<number> {
  const failed = await parse(makeLabProgram(addLabCommand), words, world);
  return failed ?? Number(process.exitCode ?? EXIT_CODES.ok.code);
}

/** Runs the command that the words name; an exit code if it failed. */
async function parse(
  program: CommandUnknownOpts,
  words: readonly string[],
  world: CommandWorld,
): Promise<number | undefined> {
  for (const one of [program, ...program.commands.flatMap((command) => [command, ...command.commands])]) {
    one.exitOverride().configureOutput({
      writeOut: (text) => world.stdout.write(text),
      writeErr: (text) => world.stderr.write(text),
    });
  }
  try {
    await program.parseAsync(words, { from: 'user' });
    return undefined;
  } catch (error) {
    // Commander has printed its own errors, and help ends with an error of code 0.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT_CODES.usage.code;
    const debug = program.opts().debug === true && error instanceof Error;
    world.stderr.write(`drydock: ${debug ? (error.stack ?? error.message) : lineOf(error)}\n`);
    return exitCodeOf(error);
  }
}

/** The world of a real process. */
export function processWorld(): CommandWorld {
  return {
    stdout: process.stdout,
    stderr: process.stderr,
    environment: process.env,
    homeFolder: homedir(),
    now: () => new Date(),
    interruption: () => {
      const interrupted = new AbortController();
      for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interrupted.abort());
      return interrupted.signal;
    },
    openKubernetes: async (source) => {
      const { createKubernetesClient } = await import('../activities/kubernetes/rest.js');
      return createKubernetesClient(source, { userAgent: `drydock/${packageJson.version}` });
    },
    openEngine: async (settings) => {
      const { connectTemporal, TemporalEngine } = await import('./temporal.js');
      return new TemporalEngine(await connectTemporal(settings));
    },
  };
}

/** For the launchers. Output into a pipe that is closed early (`| head`) is no error. */
export async function main(words: readonly string[], more: Pick<CommandWorld, 'loadLab'> = {}): Promise<number> {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(EXIT_CODES.ok.code);
    throw error;
  });
  return run(words, { ...processWorld(), ...more });
}
