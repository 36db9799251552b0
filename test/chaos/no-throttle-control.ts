import { Client, Connection } from '@temporalio/client';
import { fileURLToPath } from 'node:url';
import type {
  KubernetesClient,
  KubernetesObject,
  ListOptions,
  ObjectName,
  WatchHandler,
} from '../../activities/kubernetes/client.js';
import { createKubernetesClient } from '../../activities/kubernetes/rest.js';
import { apiFlavour, type ResourceKind } from '../../machine-config/api/flavour.js';
import { CLUSTER_SETTINGS, CONTROL_SETTINGS, LOG_SETTINGS, parseEnvironment } from '../../workers/config.js';
import { connectTemporal, temporalConfig } from '../../workers/connection.js';
import { startControlWorker } from '../../workers/control-worker.js';
import { createLogger, installRuntime } from '../../workers/runtime.js';
import { DEFAULT_TUNING } from '../../workflows/contract/inputs.js';

/*
 * A control worker with its throttle off: the product's own, but every pool that it reads allows all of its nodes to be
 * unavailable at once. For the chaos test, whose observer has to find that out.
 */

const WORKFLOWS = fileURLToPath(new URL('../../workflows/index.ts', import.meta.url));
const UNTHROTTLED = '100%';

/** Everything but reading is the real client's. */
function withoutThrottle(real: KubernetesClient, pools: ResourceKind): KubernetesClient {
  const isPool = ({ group, plural }: ResourceKind) => group === pools.group && plural === pools.plural;
  const unthrottled = <T extends KubernetesObject>(object: T): T => {
    const { spec } = object as T & { spec?: object };
    return { ...object, spec: { ...spec, maxUnavailable: UNTHROTTLED } };
  };
  const reading: Pick<KubernetesClient, 'get' | 'list' | 'watch'> = {
    async get<T extends KubernetesObject>(resource: ResourceKind, name: ObjectName) {
      const object = await real.get<T>(resource, name);
      return isPool(resource) ? unthrottled(object) : object;
    },
    async list<T extends KubernetesObject>(resource: ResourceKind, options?: ListOptions) {
      const objects = await real.list<T>(resource, options);
      return isPool(resource) ? objects.map(unthrottled) : objects;
    },
    watch<T extends KubernetesObject>(resource: ResourceKind, handler: WatchHandler<T>, signal: AbortSignal) {
      const seen: WatchHandler<T> = {
        ...handler,
        onChange: (type, object) => handler.onChange(type, isPool(resource) ? unthrottled(object) : object),
      };
      real.watch(resource, seen, signal);
    },
  };
  return Object.assign(Object.create(real) as KubernetesClient, reading);
}

const values = parseEnvironment({ ...LOG_SETTINGS, ...CLUSTER_SETTINGS, ...CONTROL_SETTINGS });
const logger = createLogger('drydock-control', values.logLevel);
installRuntime({ logger });
const flavour = apiFlavour(values.flavour);
const kubernetes = createKubernetesClient({ kubeconfigPath: values.kubeconfig ?? '' });
const { connection, namespace } = await connectTemporal();
const clientConnection = await Connection.connect(temporalConfig().connectionOptions);
const control = await startControlWorker({
  kubernetes: withoutThrottle(kubernetes, flavour.machineConfigPool),
  flavour,
  connection,
  temporal: new Client({ connection: clientConnection, namespace }),
  workflows: { workflowsPath: WORKFLOWS },
  tuning: { ...DEFAULT_TUNING, ...values.tuning },
  logger,
});
await control.finished;
