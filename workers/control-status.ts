import type { Worker } from '@temporalio/worker';
import { metricsText, type Metric } from '../activities/cluster/metrics-text.js';
import { poolMetrics } from '../activities/cluster/pool-metrics.js';
import type { NodeResource, PoolResource } from '../activities/cluster/control-dependencies.js';
import type { Freshness } from '../activities/kubernetes/watch-cache.js';
import type { ApiFlavour } from '../machine-config/api/flavour.js';
import type { StatusSource } from './status-server.js';
import { VERSION } from './version.js';

/** A watch tells of itself at least once a minute, be it with a bookmark. */
const WATCH_SILENCE_SECONDS = 180;

interface Watched<T> {
  list(): T[];
  freshness(): Freshness | undefined;
}

export interface ControlStatusFacts {
  readonly flavour: ApiFlavour;
  readonly nodes: Watched<NodeResource>;
  readonly pools: Watched<PoolResource>;
  /** Undefined: it has not been made yet. */
  readonly workerState: () => ReturnType<Worker['getState']> | undefined;
  /** Epoch milliseconds. */
  readonly now: () => number;
}

/** What a control worker tells of the pools, which it reads off its watches as it is asked, and of itself. */
export function controlStatus({ flavour, nodes, pools, workerState, now }: ControlStatusFacts): StatusSource {
  const watches = [
    ['nodes', nodes],
    ['pools', pools],
  ] as const;
  const silence = () =>
    watches.map(([watch, cache]) => {
      const heardAt = cache.freshness()?.heardAt;
      return { watch, seconds: heardAt === undefined ? undefined : Math.max(0, Math.round((now() - heardAt) / 1000)) };
    });
  return {
    metrics: () => {
      const own: Metric[] = [
        {
          name: 'drydock_control_info',
          type: 'gauge',
          help: 'Always 1',
          samples: [{ labels: { version: VERSION }, value: 1 }],
        },
        {
          name: 'drydock_control_watch_silence_seconds',
          type: 'gauge',
          help: 'For how long a watch of the API server has told nothing, not even that nothing happened',
          samples: silence().flatMap(({ watch, seconds }) =>
            seconds === undefined ? [] : [{ labels: { watch }, value: seconds }],
          ),
        },
      ];
      return metricsText([...own, ...poolMetrics({ pools: pools.list(), nodes: nodes.list(), flavour, now: now() })]);
    },
    whyNotAlive: () => {
      const state = workerState() ?? 'INITIALIZED';
      return state === 'RUNNING' || state === 'INITIALIZED' ? undefined : `the worker is ${state}`;
    },
    whyNotReady: () => {
      const silent = silence().find(({ seconds = Infinity }) => seconds > WATCH_SILENCE_SECONDS);
      if (silent === undefined) return workerState() === 'RUNNING' ? undefined : 'the worker has not begun to work yet';
      if (silent.seconds === undefined) return `the watch of ${silent.watch} has not told what there is yet`;
      return `the watch of ${silent.watch} has told nothing for ${silent.seconds} s: is the API server well?`;
    },
  };
}
