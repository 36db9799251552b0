import type { Command } from '@commander-js/extra-typings';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import type { ClusterSource } from '../activities/kubernetes/kubeconfig.js';
import type { ClosableKubernetesClient } from '../activities/kubernetes/rest.js';
import { apiFlavour, FLAVOUR_NAMES, type ApiFlavour, type FlavourName } from '../machine-config/api/flavour.js';
import { CommandError, lineOf } from './command-error.js';
import { unreachableView, type Engine } from './engine.js';
import type { DrydockCluster } from './rollouts.js';
import type { TemporalSettings } from './temporal.js';
import { painter, type Output, type Paint } from './terminal.js';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Everything outside the process that a command touches; tests bring their own. */
export interface CommandWorld {
  readonly stdout: Output;
  readonly stderr: Output;
  readonly environment: Environment;
  readonly homeFolder: string;
  now(): Date;
  /** Aborts at Ctrl-C; from the first call on Ctrl-C does nothing else. */
  interruption(): AbortSignal;
  openKubernetes(source: ClusterSource): Promise<ClosableKubernetesClient>;
  openEngine(settings: TemporalSettings): Promise<Engine>;
  /** `lab` of a clone of the sources; absent: an installation, which has none. */
  loadLab?(): Promise<AddLabCommand>;
}

export type AddLabCommand = (program: Command) => void;

/** `text` is another word for `table`. */
export const OUTPUT_FORMATS = ['table', 'text', 'wide', 'json', 'yaml'] as const;
export type OutputFormat = (typeof OUTPUT_FORMATS)[number];

export interface GlobalOptions {
  readonly kubeconfig?: string | undefined;
  readonly context?: string | undefined;
  readonly flavour?: string | undefined;
  readonly temporalAddress?: string | undefined;
  readonly temporalNamespace?: string | undefined;
  readonly output?: OutputFormat | undefined;
}

/**
 * Where the cluster is, as kubectl finds it, with one setting more: --kubeconfig, DRYDOCK_KUBECONFIG, KUBECONFIG,
 * `~/.kube/config`, and last the service account of the pod we run in.
 */
export function clusterSource(options: GlobalOptions, environment: Environment, homeFolder: string): ClusterSource {
  const context = options.context === undefined ? {} : { context: options.context };
  const named = options.kubeconfig ?? environment.DRYDOCK_KUBECONFIG;
  if (named) return { kubeconfigPath: named, ...context };
  const listed = (environment.KUBECONFIG ?? '').split(delimiter).filter((path) => path !== '' && existsSync(path));
  if (listed.length > 0) return { kubeconfigPath: listed, ...context };
  const usual = join(homeFolder, '.kube', 'config');
  if (!environment.KUBECONFIG && existsSync(usual)) return { kubeconfigPath: usual, ...context };
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = environment;
  if (host && port) return { inCluster: true, host, port };
  const looked = environment.KUBECONFIG ? `KUBECONFIG (${environment.KUBECONFIG})` : usual;
  throw new CommandError('unreachable', `no cluster: ${looked} does not exist; name one with --kubeconfig FILE`);
}

function isFlavourName(name: string): name is FlavourName {
  return (FLAVOUR_NAMES as readonly string[]).includes(name);
}

function givenFlavour(options: GlobalOptions, environment: Environment): FlavourName | undefined {
  const name = options.flavour ?? environment.DRYDOCK_FLAVOUR;
  if (!name) return undefined;
  if (isFlavourName(name)) return name;
  throw new CommandError('usage', `unknown flavour ${name}: write one of ${FLAVOUR_NAMES.join(', ')}`);
}

/** One run of one command: opens what it needs, prints, and closes everything. */
export class Session {
  readonly world: CommandWorld;
  readonly format: OutputFormat;
  readonly paint: Paint;
  private readonly options: GlobalOptions;
  private readonly toYaml: ((data: unknown) => string) | undefined;
  private readonly opened: { close(): Promise<void> }[] = [];
  private isClosed = false;

  /** `toYaml` is needed for the format `yaml` alone, and comes from outside so that the others do not load it. */
  constructor(world: CommandWorld, options: GlobalOptions, toYaml?: (data: unknown) => string) {
    this.world = world;
    this.options = options;
    this.toYaml = toYaml;
    this.format = options.output ?? 'table';
    this.paint = painter(world.stdout, world.environment);
  }

  /** Absent: nobody said. Throws a CommandError (`usage`) for a name that is none. */
  get givenFlavour(): FlavourName | undefined {
    return givenFlavour(this.options, this.world.environment);
  }

  get flavour(): ApiFlavour {
    return apiFlavour(this.givenFlavour ?? 'openshift');
  }

  async cluster(): Promise<DrydockCluster> {
    const { flavour } = this;
    const source = clusterSource(this.options, this.world.environment, this.world.homeFolder);
    const kubernetes = await this.world.openKubernetes(source);
    this.opened.push(kubernetes);
    return { kubernetes, flavour };
  }

  /** Rejects with a CommandError (`unreachable`). */
  async engine(): Promise<Engine> {
    const { temporalAddress: address, temporalNamespace: namespace } = this.options;
    const engine = await this.world.openEngine({ address, namespace, environment: this.world.environment });
    this.opened.push(engine);
    // The command may have ended while we connected.
    if (this.isClosed) await engine.close();
    return engine;
  }

  /** For commands that have something to say without Temporal: then each view says why there is none. */
  async engineIfReachable(): Promise<Engine> {
    try {
      return await this.engine();
    } catch (error) {
      const problem = lineOf(error);
      return {
        startPool: () => Promise.reject(error instanceof Error ? error : new Error(problem)),
        view: () => Promise.resolve(unreachableView(problem)),
        nodeUpdates: () => Promise.resolve([]),
        close: () => Promise.resolve(),
      };
    }
  }

  /** The data for programs, or the text for people. */
  print(data: unknown, text: () => string): void {
    if (this.format === 'json') this.line(JSON.stringify(data, null, 2));
    else if (this.format === 'yaml' && this.toYaml !== undefined) this.line(this.toYaml(data).trimEnd());
    else this.line(text());
  }

  line(text: string): void {
    this.world.stdout.write(`${text}\n`);
  }

  /** What is said beside the data, in every format. */
  note(text: string): void {
    this.world.stderr.write(`${text}\n`);
  }

  async close(): Promise<void> {
    this.isClosed = true;
    await Promise.allSettled(this.opened.map((one) => one.close()));
  }
}
