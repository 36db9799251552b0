import type { ContainerRuntimeConfig } from '../../machine-config/api/container-runtime-config.js';
import type { ApiFlavour } from '../../machine-config/api/flavour.js';
import { generateContainerRuntime } from '../../machine-config/sources/container-runtime/generate.js';
import type { NodeRuntime } from '../../machine-config/sources/container-runtime/node-runtimes.js';
import type { KubernetesObject } from '../kubernetes/client.js';
import type { ControlDependencies, PoolResource } from './control-dependencies.js';
import { readControllerConfig } from './controller-config.js';
import { memberFacts } from './pool-view.js';
import type { Source } from './source.js';

/** Settings of container runtimes become files in the configs of the pools that they choose. */
export function containerRuntimeSource(flavour: ApiFlavour): Source {
  return {
    resource: flavour.containerRuntimeConfig,
    async generate(dependencies, objects, machineConfigs) {
      const pools = await dependencies.client.list<PoolResource>(flavour.machineConfigPool);
      return generateContainerRuntime({
        flavour,
        controllerConfig: await readControllerConfig(dependencies),
        // Of what the schema lets through, the generator reads nothing that it has not checked itself.
        containerRuntimeConfigs: objects as readonly (KubernetesObject & ContainerRuntimeConfig)[],
        pools,
        machineConfigs,
        nodes: runtimesOf(dependencies, pools),
      });
    },
  };
}

function runtimesOf({ nodes, flavour }: ControlDependencies, pools: readonly PoolResource[]): NodeRuntime[] {
  const all = nodes.list();
  const versions = new Map(
    all.map(({ metadata, status }) => [metadata.name, status?.nodeInfo?.containerRuntimeVersion ?? '']),
  );
  return pools.flatMap(({ metadata }) =>
    memberFacts(metadata.name, all, pools, flavour).map(({ name }) => ({
      node: name,
      pool: metadata.name,
      version: versions.get(name) ?? '',
    })),
  );
}
