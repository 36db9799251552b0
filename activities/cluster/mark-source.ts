import { isDeepStrictEqual } from 'node:util';
import type { ResourceKind } from '../../machine-config/api/flavour.js';
import { suffixAnnotation } from '../../machine-config/sources/naming.js';
import { failedWith } from '../kubernetes/failures.js';
import type { ControlDependencies } from './control-dependencies.js';
import type { SourceResource } from './source.js';

/** Keeps an object until the MachineConfigs that were generated from it are deleted. */
export const GENERATED_FINALIZER = 'drydock.dev/generated-configs';

/** As older controllers had them: the name of each generated MachineConfig. */
const OLDER_FINALIZER = /^\d{2}-.+-generated-/u;

/**
 * Writes down, before anything is generated from it, by which suffix an object's names are told apart, and that it is
 * to be asked before the object goes. Other annotations and finalizers stay.
 */
export async function markSource(
  { client, flavour }: ControlDependencies,
  resource: ResourceKind,
  { metadata }: SourceResource,
  suffix: string | undefined,
): Promise<void> {
  const { name, resourceVersion, annotations = {}, finalizers = [] } = metadata;
  const key = suffixAnnotation(flavour);
  const isMarked = finalizers.includes(GENERATED_FINALIZER) && (suffix === undefined || annotations[key] === suffix);
  if (isMarked) return;
  const patch = {
    resourceVersion,
    finalizers: [...new Set([...finalizers, GENERATED_FINALIZER])],
    ...(suffix === undefined ? {} : { annotations: { [key]: suffix } }),
  };
  await client.patch(resource, { name }, { metadata: patch });
}

/** Lets an object go that is being deleted. */
export async function releaseSource(
  { client }: ControlDependencies,
  resource: ResourceKind,
  { metadata }: SourceResource,
): Promise<void> {
  const { name, resourceVersion, finalizers = [] } = metadata;
  const others = finalizers.filter((each) => each !== GENERATED_FINALIZER && !OLDER_FINALIZER.test(each));
  if (isDeepStrictEqual(others, finalizers)) return;
  try {
    await client.patch(resource, { name }, { metadata: { resourceVersion, finalizers: others } });
  } catch (error) {
    if (!failedWith(error, 'NotFound')) throw error;
  }
}
