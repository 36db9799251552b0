import { isDeepStrictEqual } from 'node:util';
import type { ResourceKind } from '../../machine-config/api/flavour.js';
import { failedWith } from '../kubernetes/failures.js';
import type { ControlDependencies } from './control-dependencies.js';
import type { SourceResource } from './source.js';

/** Writes an object's status where it is another one. */
export async function writeStatus(
  { client }: ControlDependencies,
  resource: ResourceKind,
  object: SourceResource,
  status: object,
): Promise<void> {
  if (isDeepStrictEqual(status, object.status)) return;
  try {
    await client.patch(resource, { name: object.metadata.name }, { status }, 'status');
  } catch (error) {
    // Deleted meanwhile: nobody reads it any more.
    if (!failedWith(error, 'NotFound')) throw error;
  }
}
