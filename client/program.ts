import { Argument, Command, InvalidArgumentError, Option, type CommandUnknownOpts } from '@commander-js/extra-typings';
import { FLAVOUR_NAMES } from '../machine-config/api/flavour.js';
import { exitCodesHelp, type ExitName } from './exit-codes.js';
import { OUTPUT_FORMATS, type GlobalOptions, type Session } from './session.js';

/** Runs a command in a session of its own and remembers how it ended. */
export type Act = (command: (session: Session) => Promise<ExitName>) => Promise<void>;

const ENVIRONMENT_HELP = `
Environment:
  DRYDOCK_KUBECONFIG   kubeconfig file, before KUBECONFIG and ~/.kube/config
  DRYDOCK_FLAVOUR      like --flavour
  TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_PROFILE, ...   Temporal's own environment configuration
  NO_COLOR             no colours`;

/**
 * The command line: arguments, options and help. What a command does is loaded when it is run, so that `--help` and
 * `render` do not wait for the clients of Kubernetes and Temporal.
 */
export function makeProgram(version: string, makeAct: (options: GlobalOptions) => Act) {
  const program = new Command('drydock')
    .description('Keeps the configuration of Kubernetes nodes as MachineConfig objects declare it')
    .version(version)
    .option('--kubeconfig <file>', 'kubeconfig of the cluster')
    .option('--context <name>', 'context of the kubeconfig')
    .addOption(new Option('--flavour <name>', `group of the API: ${FLAVOUR_NAMES.join(' or ')} (default: openshift)`))
    .option('--temporal-address <host:port>', 'address of Temporal')
    .option('--temporal-namespace <name>', 'namespace in Temporal')
    .addOption(new Option('-o, --output <format>', 'format of what is printed').choices(OUTPUT_FORMATS))
    .option('--debug', 'print errors with their stack')
    .addHelpText('after', exitCodesHelp())
    .addHelpText('after', ENVIRONMENT_HELP)
    .showHelpAfterError('(drydock --help shows what there is)');
  const act: Act = (command) => makeAct(program.opts())(command);

  addRolloutCommands(program, act);
  addPoolCommands(program, act);
  program
    .command('nodes')
    .description('list nodes: pool, state, configs, worker, reason')
    .option('--pool <name>', 'only the nodes of this pool')
    .action((options) => act(async (session) => (await import('./commands/nodes.js')).nodes(session, options)));
  program
    .command('install')
    .description('create the API, the pools master and worker, and their first configs; run again, it changes nothing')
    .option('--run-pools', 'do not create the pools paused where nodes exist already', false)
    .action((options) =>
      act(async (session) => (await import('./commands/install.js')).installCommand(session, options)),
    );
  program
    .command('render')
    .description('render MachineConfigs from files, without a cluster, and print the result as YAML')
    .requiredOption('-f, --file <files...>', 'files and folders, YAML or JSON')
    .option('--pool <name>', 'what this pool of the files selects (default: all MachineConfigs in the files)')
    .action(({ file: files, pool }) =>
      act(async (session) => (await import('./commands/render.js')).render(session, { files, pool })),
    );
  program
    .command('diff')
    .description('say what a change from one rendered config to another does to a node, without a cluster')
    .argument('<old>', 'file with the rendered config that nodes run, YAML or JSON')
    .argument('<new>', 'file with the one that they are to run')
    .option('--policy <file>', 'file with the MachineConfiguration (default: the policies that <new> carries)')
    .action((old, next, { policy }) =>
      act(async (session) => (await import('./commands/diff.js')).diff(session, { old, next, policy })),
    );
  // Only for the help: see makeLabProgram.
  program.command('lab').description('a Temporal and a Kubernetes of your own on this machine: up, down, status');
  return program;
}

/**
 * `lab` stands apart: it has nothing to do with the cluster that the options of the other commands name, and says
 * `--kubeconfig` and `--output` in its own sense.
 */
export async function makeLabProgram() {
  const { addLabCommand } = await import('./lab-command.js');
  const program = new Command('drydock').option('--debug', 'print errors with their stack');
  addLabCommand(program);
  return program;
}

const poolArgument = () => new Argument('<pool>', 'name of a MachineConfigPool');

function addRolloutCommands(program: CommandUnknownOpts, act: Act): void {
  const rollout = program.command('rollout').description('start and watch rollouts');
  rollout
    .command('start')
    .description('render a pool and roll out what is new')
    .addArgument(poolArgument())
    .action((pool) => act(async (session) => (await import('./commands/rollout.js')).rolloutStart(session, pool)));
  rollout
    .command('status')
    .description('show pools and what their rollouts do or wait for')
    .argument('[pool]', 'name of a MachineConfigPool (default: all)')
    .action((pool) => act(async (session) => (await import('./commands/rollout.js')).rolloutStatus(session, pool)));
  rollout
    .command('watch')
    .description('print every change until the pool is Updated or Degraded; with --output json one object a line')
    .addArgument(poolArgument())
    .option('--timeout <seconds>', 'give up after this time', positiveNumber)
    .action((pool, { timeout: timeoutSeconds }) =>
      act(async (session) => (await import('./commands/rollout.js')).rolloutWatch(session, pool, { timeoutSeconds })),
    );
}

function addPoolCommands(program: CommandUnknownOpts, act: Act): void {
  const pool = program.command('pool').description('pause and resume pools');
  pool
    .command('pause')
    .description('start no node update; those that run finish')
    .addArgument(poolArgument())
    .action((name) => act(async (session) => (await import('./commands/pool.js')).poolPause(session, name)));
  pool
    .command('resume')
    .description('start node updates again')
    .addArgument(poolArgument())
    .action((name) => act(async (session) => (await import('./commands/pool.js')).poolResume(session, name)));
}

function positiveNumber(text: string): number {
  const value = Number(text);
  if (Number.isFinite(value) && value > 0) return value;
  throw new InvalidArgumentError('It must be a number above 0.');
}
