import { Argument, Command, InvalidArgumentError, Option, type CommandUnknownOpts } from '@commander-js/extra-typings';
import { FLAVOUR_NAMES } from '../machine-config/api/flavour.js';
import { exitCodesHelp, type ExitName } from './exit-codes.js';
import { OUTPUT_FORMATS, type AddLabCommand, type GlobalOptions, type Session } from './session.js';

/** Runs a command in a session of its own and remembers how it ended. */
export type Act = (command: (session: Session) => Promise<ExitName>) => Promise<void>;

const ENVIRONMENT_HELP = `
Environment:
  DRYDOCK_KUBECONFIG   kubeconfig file, before KUBECONFIG and ~/.kube/config
  DRYDOCK_FLAVOUR      like --flavour
  TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_PROFILE, ...   Temporal's own environment configuration
  NO_COLOR             no colours`;

export interface ProgramParts {
  readonly version: string;
  /** Whether the help names `lab`; see makeLabProgram. */
  readonly hasLab: boolean;
  readonly makeAct: (options: GlobalOptions) => Act;
}

/**
 * The command line: arguments, options and help. What a command does is loaded when it is run, so that `--help` and
 * `render` do not wait for the clients of Kubernetes and Temporal.
 */
export function makeProgram({ version, hasLab, makeAct }: ProgramParts) {
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
  addNodeCommands(program, act);
  addStopCommands(program, act);
  program
    .command('nodes')
    .description('list nodes: pool, state, configs, worker, reason')
    .option('--pool <name>', 'only the nodes of this pool')
    .action((options) => act(async (session) => (await import('./commands/nodes.js')).nodes(session, options)));
  program
    .command('install')
    .description(
      'create the API, roles, admission policies, the pools master and worker, and their first configs; run again, it changes nothing',
    )
    .option('--run-pools', 'do not create the pools paused where nodes exist already', false)
    .option('--control-user <name>', 'user as whom the control worker works (default: its service account)')
    .option(
      '--first-boot [user]',
      'let machines boot from an Ignition server, which works as this user (default: its service account)',
    )
    .option(
      '--webhook-url <url>',
      'where the API server reaches the webhook of the control workers, https://host:port/validate',
    )
    .option('--webhook-ca <file>', 'the authority of the webhook’s certificate, in PEM')
    .action((options) =>
      act(async (session) => (await import('./commands/install.js')).installCommand(session, options)),
    );
  program
    .command('doctor')
    .description('look at the whole installation, and say what is not as it should be and what to do')
    .action(() => act(async (session) => (await import('./commands/doctor.js')).doctor(session)));
  program
    .command('render')
    .description('render MachineConfigs from files, without a cluster, and print the result as YAML')
    .requiredOption('-f, --file <files...>', 'files and folders, YAML, JSON or Butane')
    .option('--pool <name>', 'what this pool of the files selects (default: all MachineConfigs in the files)')
    .option(...FILES_DIR)
    .option(...ROLE)
    .action(({ file: files, ...options }) =>
      act(async (session) => (await import('./commands/render.js')).render(session, { files, ...options })),
    );
  addFileCommands(program, act);
  program
    .command('diff')
    .description('say what a change from one rendered config to another does to a node, without a cluster')
    .argument('<old>', 'file with the rendered config that nodes run, YAML or JSON')
    .argument('<new>', 'file with the one that they are to run')
    .option('--policy <file>', 'file with the MachineConfiguration (default: the policies that <new> carries)')
    .action((old, next, { policy }) =>
      act(async (session) => (await import('./commands/diff.js')).diff(session, { old, next, policy })),
    );
  program
    .command('first-boot')
    .description(
      'print the config that a new machine of a pool is given: where the Ignition server is, and whom to believe',
    )
    .addArgument(poolArgument())
    .requiredOption('--server <url>', 'where machines reach the Ignition server, https://host:port')
    .requiredOption('--ca <file>', 'the authority of its certificate, in PEM')
    .option('--token-file <file>', 'the provisioning token, where the server asks for one')
    .addOption(
      new Option('--spec <major>', 'of Ignition on the machine').choices(['2', '3'] as const).default('3' as const),
    )
    .action((pool, options) =>
      act(async (session) => (await import('./commands/first-boot.js')).firstBoot(session, pool, options)),
    );
  if (hasLab) {
    program.command('lab').description('a Temporal and a Kubernetes of your own on this machine: up, down, status');
  }
  return program;
}

/**
 * `lab` stands apart: it has nothing to do with the cluster that the options of the other commands name, and says
 * `--kubeconfig` and `--output` in its own sense.
 */
export function makeLabProgram(addLabCommand: AddLabCommand) {
  const program = new Command('drydock').option('--debug', 'print errors with their stack');
  addLabCommand(program);
  return program;
}

const poolArgument = () => new Argument('<pool>', 'name of a MachineConfigPool');

function addRolloutCommands(program: CommandUnknownOpts, act: Act): void {
  const rollout = program.command('rollout').description('start, watch and steer rollouts');
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
  addRolloutOrders(rollout, act);
}

function addRolloutOrders(rollout: CommandUnknownOpts, act: Act): void {
  const orders = () => import('./commands/rollout-orders.js');
  rollout
    .command('approve')
    .description('approve a stage for the rendered config that the pool wants now')
    .addArgument(poolArgument())
    .option('--stage <name>', 'a stage of spec.rollout.stages (default: the one that waits)')
    .action((pool, options) => act(async (session) => (await orders()).rolloutApprove(session, pool, options)));
  rollout
    .command('resume')
    .description('go on with a rollout that has halted: what failed until now does not count any more')
    .addArgument(poolArgument())
    .action((pool) => act(async (session) => (await orders()).rolloutResume(session, pool)));
  rollout
    .command('run-now')
    .description('let the rollout to the present config wait for no window')
    .addArgument(poolArgument())
    .action((pool) => act(async (session) => (await orders()).rolloutRunNow(session, pool)));
}

const nodeArgument = () => new Argument('<node>', 'name of a Node');

const FILES_DIR = [
  '--files-dir <folder>',
  'folder of the local files of Butane files (default: that of the Butane file)',
] as const;
const ROLE = ['--role <role>', 'role of the MachineConfig of Butane files that name none'] as const;

function addFileCommands(program: CommandUnknownOpts, act: Act): void {
  program
    .command('butane')
    .description(
      'translate a Butane file, variant openshift, fcos or flatcar, to a MachineConfig or an Ignition config',
    )
    .argument('<file>', 'Butane file')
    .option(...FILES_DIR)
    .option(...ROLE)
    .option('--name <name>', 'name of that MachineConfig (default: 99-ROLE-FILE)')
    .option('--strict', 'refuse what is only warned about; unknown keys are always refused', false)
    .action((file, options) =>
      act(async (session) => (await import('./commands/butane.js')).butane(session, file, options)),
    );
  program
    .command('apply')
    .description('bring objects from files to the cluster, or none of them if one is wrong')
    .requiredOption('-f, --file <files...>', 'files and folders, YAML, JSON or Butane')
    .option(...FILES_DIR)
    .option(...ROLE)
    .option('--dry-run', 'let the API server check everything and store nothing', false)
    .option('--force-conflicts', 'take over fields that others have set', false)
    .action(({ file: files, ...options }) =>
      act(async (session) => (await import('./commands/apply.js')).apply(session, { files, ...options })),
    );
}

function addNodeCommands(program: CommandUnknownOpts, act: Act): void {
  const node = program.command('node').description('hold, release and retry nodes');
  const orders = () => import('./commands/node-orders.js');
  node
    .command('hold')
    .description('start no update on a node; one that runs is finished and leaves it cordoned')
    .addArgument(nodeArgument())
    .requiredOption('--reason <text>', 'why, for those who find it', someText)
    .action((name, options) => act(async (session) => (await orders()).nodeHold(session, name, options)));
  node
    .command('release')
    .description('take a hold back; or let a node be updated that somebody else has cordoned')
    .addArgument(nodeArgument())
    .action((name) => act(async (session) => (await orders()).nodeRelease(session, name)));
  node
    .command('retry')
    .description('try a node again whose update has failed')
    .addArgument(nodeArgument())
    .action((name) => act(async (session) => (await orders()).nodeRetry(session, name)));
}

function addStopCommands(program: CommandUnknownOpts, act: Act): void {
  program
    .command('stop')
    .description('stop everything: no update starts, no node reboots; what runs goes on to its next safe point')
    .requiredOption('--reason <text>', 'why, for those who find it', someText)
    .action((options) => act(async (session) => (await import('./commands/stop.js')).stop(session, options)));
  program
    .command('go')
    .description('let everything go on after drydock stop')
    .action(() => act(async (session) => (await import('./commands/stop.js')).go(session)));
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

/** A reason stands in sentences: it is one line, and not without end. */
function someText(text: string): string {
  const line = text.replace(/\s+/gu, ' ').trim();
  if (line !== '' && line.length <= 500) return line;
  throw new InvalidArgumentError('It must be from 1 to 500 characters long.');
}

function positiveNumber(text: string): number {
  const value = Number(text);
  if (Number.isFinite(value) && value > 0) return value;
  throw new InvalidArgumentError('It must be a number above 0.');
}
