import { isDeepStrictEqual } from 'node:util';
import { DRYDOCK_ANNOTATIONS } from '../../machine-config/api/flavour.js';
import {
  MACHINE_CONFIGURATION_NAME,
  type MachineConfigurationStatus,
} from '../../machine-config/api/machine-configuration.js';
import { freezePolicies } from '../../machine-config/change/frozen-policies.js';
import { checkPolicies, policiesInForce, type EffectivePolicies } from '../../machine-config/change/policies.js';
import { failedWith, ifThere } from '../kubernetes/failures.js';
import type {
  ControlDependencies,
  MachineConfigResource,
  MachineConfigurationResource,
} from './control-dependencies.js';

/** MachineConfiguration `cluster` and what follows from it for what changes cost. */
export interface DisruptionPolicies {
  /** Undefined: there is none, or the cluster does not know the kind; then the built-in policies hold. */
  readonly configuration: MachineConfigurationResource | undefined;
  /** For the annotation of a rendered config. */
  readonly frozen: string;
  /** Why nothing may be rolled out under these policies, on one line. */
  readonly problem: string | undefined;
}

/** Reads the policies past every cache, and says in the status of MachineConfiguration `cluster` what is in force. */
export async function readDisruptionPolicies(dependencies: ControlDependencies): Promise<DisruptionPolicies> {
  const { client, flavour } = dependencies;
  const configuration = await ifThere<MachineConfigurationResource>(() =>
    client.get(flavour.machineConfiguration, { name: MACHINE_CONFIGURATION_NAME }),
  );
  const [first, ...others] = checkPolicies(configuration?.spec);
  const policies = policiesInForce(first === undefined ? configuration?.spec : undefined, flavour);
  const more = others.length === 0 ? '' : ` (and ${others.length} more)`;
  const problem = first && `MachineConfiguration ${MACHINE_CONFIGURATION_NAME}: ${first}${more}`;
  if (configuration !== undefined) await report(dependencies, configuration, policies, problem);
  return { configuration, frozen: freezePolicies(policies, configuration?.metadata.generation), problem };
}

/** Brings the policies that a rendered config carries up to date; one that does not exist is left to its render. */
export async function freezeOn(
  { client, flavour }: ControlDependencies,
  name: string | undefined,
  frozen: string,
): Promise<void> {
  if (name === undefined || name === '') return;
  const config = await ifThere<MachineConfigResource>(() => client.get(flavour.machineConfig, { name }));
  if (config === undefined) return;
  const { annotations: present, resourceVersion } = config.metadata;
  if (present?.[DRYDOCK_ANNOTATIONS.disruptionPolicies] === frozen) return;
  const annotations = { [DRYDOCK_ANNOTATIONS.disruptionPolicies]: frozen };
  await client.patch(flavour.machineConfig, { name }, { metadata: { resourceVersion, annotations } });
}

const POLICY_CONDITION = 'NodeDisruptionPolicyDegraded';

async function report(
  { client, flavour, now }: ControlDependencies,
  configuration: MachineConfigurationResource,
  policies: EffectivePolicies,
  problem: string | undefined,
): Promise<void> {
  const previous = configuration.status ?? {};
  const status = {
    ...previous,
    ...(problem === undefined ? statusOf(configuration, policies) : {}),
    conditions: conditionsOf(previous, problem, new Date(now()).toISOString()),
  };
  if (isDeepStrictEqual(status, previous)) return;
  try {
    await client.replace(flavour.machineConfiguration, { ...configuration, status }, 'status');
  } catch (error) {
    // Somebody else wrote it meanwhile: the render that follows from that looks again.
    if (!failedWith(error, 'Conflict', 'NotFound')) throw error;
  }
}

/** As the reference system has it: whose policy it is, and what holds for everything else, is not part of it. */
function statusOf({ metadata }: MachineConfigurationResource, policies: EffectivePolicies): MachineConfigurationStatus {
  const clusterPolicies = {
    files: policies.files.map(({ path, actions }) => ({ path, actions: [...actions] })),
    units: policies.units.map(({ name, actions }) => ({ name, actions: [...actions] })),
    sshkey: { actions: [...policies.sshkey.actions] },
  };
  return {
    nodeDisruptionPolicyStatus: { clusterPolicies },
    ...(metadata.generation === undefined ? {} : { observedGeneration: metadata.generation }),
  };
}

function conditionsOf(
  { conditions = [] }: MachineConfigurationStatus,
  problem: string | undefined,
  now: string,
): NonNullable<MachineConfigurationStatus['conditions']> {
  const before = conditions.find(({ type }) => type === POLICY_CONDITION);
  const status = problem === undefined ? 'False' : 'True';
  const condition = {
    type: POLICY_CONDITION,
    status,
    reason: problem === undefined ? 'AsExpected' : 'PolicyInvalid',
    message: problem ?? '',
    lastTransitionTime: before?.status === status ? before.lastTransitionTime : now,
  } as const;
  return [...conditions.filter(({ type }) => type !== POLICY_CONDITION), condition];
}
