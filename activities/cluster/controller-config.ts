import { CONTROLLER_CONFIG_NAME, type ControllerConfig } from '../../machine-config/api/controller-config.js';
import type { KubernetesObject } from '../kubernetes/client.js';
import { ifThere } from '../kubernetes/failures.js';
import type { ControlDependencies } from './control-dependencies.js';

export type ControllerConfigResource = KubernetesObject & ControllerConfig;

/** Undefined: there is none, or the cluster does not know the kind; then the defaults hold. */
export async function readControllerConfig({
  client,
  flavour,
}: ControlDependencies): Promise<ControllerConfigResource | undefined> {
  return ifThere<ControllerConfigResource>(() =>
    client.get(flavour.controllerConfig, { name: CONTROLLER_CONFIG_NAME }),
  );
}
