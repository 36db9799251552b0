import { EMPTY_CONFIG_NAME } from '../../machine-config/api/flavour.js';
import type { MachineConfig } from '../../machine-config/api/machine-config.js';
import type { KubernetesObject } from '../kubernetes/client.js';
import { failedWith } from '../kubernetes/failures.js';
import type { NodeDependencies } from './dependencies.js';
import { failure } from './failures.js';

/**
 * Fetches a rendered config by name and believes it only if a MachineConfigPool controls it and its contents have the
 * hash in its name. One that was believed moments ago is not fetched again. Throws UntrustedConfig.
 */
export async function fetchRendered(name: string, deps: NodeDependencies): Promise<MachineConfig> {
  const { flavour, client, memory } = deps;
  const trusted = memory?.config(name);
  if (trusted !== undefined) return trusted;
  let config: MachineConfig & KubernetesObject;
  try {
    config = await client.get<MachineConfig & KubernetesObject>(flavour.machineConfig, { name });
  } catch (error) {
    if (!failedWith(error, 'NotFound')) throw error;
    throw failure('UntrustedConfig', `the rendered config ${name} does not exist; render the pool again`, error);
  }
  const owner = config.metadata.ownerReferences?.find((reference) => reference.controller === true);
  const isPools =
    owner?.kind === flavour.machineConfigPool.kind &&
    owner.apiVersion.split('/')[0] === flavour.machineConfigPool.group;
  if (!isPools) {
    throw failure('UntrustedConfig', `${name} is not owned by a MachineConfigPool: somebody else made it; delete it`);
  }
  if (!deps.hasItsName(config)) {
    throw failure(
      'UntrustedConfig',
      `${name} was changed after it was rendered: its contents do not have the hash in its name`,
    );
  }
  memory?.keepConfig(config);
  return config;
}

/**
 * The config that the disk is at: the host's own record, else what the Node says it runs (a node whose record was lost,
 * or that was set up by other means), else nothing. Throws UntrustedConfig.
 */
export async function configOnDisk(current: string, deps: NodeDependencies): Promise<MachineConfig | undefined> {
  const recorded = await deps.store.currentConfig();
  if (recorded !== undefined) return recorded;
  return current === EMPTY_CONFIG_NAME ? undefined : fetchRendered(current, deps);
}
