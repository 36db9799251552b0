import type { Logger } from 'pino';
import type { ControlDependencies } from '../activities/cluster/control-dependencies.js';
import { MachineConfigNodes } from '../activities/cluster/machine-config-nodes.js';
import { PoolEvents } from '../activities/cluster/pool-events.js';

export interface ControlReportsOptions extends Pick<
  ControlDependencies,
  'client' | 'flavour' | 'nodes' | 'pools' | 'now'
> {
  /** Which of the control workers this is. */
  readonly instance: string;
  readonly logger: Logger;
}

/** What a control worker shows in Kubernetes besides the status of the pools. What cannot be written is logged. */
export function controlReports(
  options: ControlReportsOptions,
): Required<Pick<ControlDependencies, 'events' | 'machineConfigNodes'>> {
  const { client, flavour, nodes, pools, now, instance, logger } = options;
  return {
    events: new PoolEvents({
      client,
      flavour,
      instance,
      now,
      onError: (err) => logger.warn({ err }, 'An Event could not be written'),
    }),
    machineConfigNodes: new MachineConfigNodes({
      client,
      flavour,
      nodes,
      pools,
      now,
      onError: (err) => logger.warn({ err }, 'MachineConfigNodes could not be brought up to date'),
    }),
  };
}
