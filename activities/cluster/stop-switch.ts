import { DRYDOCK_ANNOTATIONS } from '../../machine-config/api/flavour.js';
import { MACHINE_CONFIGURATION_NAME } from '../../machine-config/api/machine-configuration.js';
import { ifThere } from '../kubernetes/failures.js';
import type { ControlDependencies, MachineConfigurationResource } from './control-dependencies.js';
import { newerOf } from './own-writes.js';
import { RecentReads } from './recent-reads.js';

/** The API server sends a bookmark each minute: a watch that is silent for longer may have lost its connection. */
const LONGEST_SILENCE_MILLISECONDS = 75_000;
/** Where there is no watch to ask, the answer to one call serves all questions of this time. */
const REMEMBERED_MILLISECONDS = 2_000;
/** Nodes that reboot together ask together. */
const READ_NOW_MILLISECONDS = 1_000;

type Dependencies = Pick<ControlDependencies, 'client' | 'flavour' | 'configurations' | 'now'>;

/** MachineConfiguration `cluster`: the switch that stops everything, and what holds for all pools. */
export class StopSwitch {
  readonly #dependencies: Dependencies;
  readonly #remembered: RecentReads<MachineConfigurationResource | undefined>;
  readonly #readNow: RecentReads<MachineConfigurationResource | undefined>;

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies;
    this.#remembered = new RecentReads(REMEMBERED_MILLISECONDS, dependencies.now);
    this.#readNow = new RecentReads(READ_NOW_MILLISECONDS, dependencies.now);
  }

  /**
   * The object as the watch shows it, if that was heard of lately; a call otherwise. So an answer costs nothing as a
   * rule, and one that a broken watch would give is at most 75 seconds old. Undefined: there is none.
   */
  configuration(): Promise<MachineConfigurationResource | undefined> {
    const { configurations, now } = this.#dependencies;
    const heardAt = configurations?.freshness?.()?.heardAt;
    if (configurations !== undefined && heardAt !== undefined && now() - heardAt <= LONGEST_SILENCE_MILLISECONDS) {
      return Promise.resolve(configurations.get(MACHINE_CONFIGURATION_NAME));
    }
    return this.#remembered.read(MACHINE_CONFIGURATION_NAME, () => this.#read());
  }

  /**
   * Past the watch, as it was at most a second ago, or as the watch shows it if that is newer. Undefined: there is none,
   * or the cluster does not know the kind.
   */
  async live(): Promise<MachineConfigurationResource | undefined> {
    const read = await this.#readNow.read(MACHINE_CONFIGURATION_NAME, () => this.#read());
    return newerOf(read, this.#dependencies.configurations?.get(MACHINE_CONFIGURATION_NAME));
  }

  #read(): Promise<MachineConfigurationResource | undefined> {
    const { client, flavour } = this.#dependencies;
    return ifThere(() =>
      client.get<MachineConfigurationResource>(flavour.machineConfiguration, { name: MACHINE_CONFIGURATION_NAME }),
    );
  }
}

/** Why everything is stopped; undefined: it is not. */
export function stopReason(configuration: MachineConfigurationResource | undefined): string | undefined {
  return configuration?.metadata.annotations?.[DRYDOCK_ANNOTATIONS.stop] || undefined;
}
