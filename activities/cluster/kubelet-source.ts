import { nodeFlavourOf } from '../../machine-config/api/controller-config.js';
import type { ApiFlavour } from '../../machine-config/api/flavour.js';
import type { KubeletConfig } from '../../machine-config/api/kubelet-config.js';
import { generateKubeletConfigs } from '../../machine-config/sources/kubelet/generate.js';
import type { KubernetesObject } from '../kubernetes/client.js';
import type { PoolResource } from './control-dependencies.js';
import { readControllerConfig } from './controller-config.js';
import type { Source } from './source.js';

/** Settings of kubelets become files in the configs of the pools that they choose. */
export function kubeletSource(flavour: ApiFlavour): Source {
  return {
    resource: flavour.kubeletConfig,
    async generate(dependencies, objects, machineConfigs) {
      const controllerConfig = await readControllerConfig(dependencies);
      return generateKubeletConfigs({
        flavour,
        nodeFlavour: nodeFlavourOf(controllerConfig),
        // Of what the schema lets through, the generator reads nothing that it has not checked itself.
        kubeletConfigs: objects as readonly (KubernetesObject & KubeletConfig)[],
        pools: await dependencies.client.list<PoolResource>(flavour.machineConfigPool),
        machineConfigs,
      });
    },
  };
}
