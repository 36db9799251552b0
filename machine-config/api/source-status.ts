import { z } from 'zod';
import { atomicList, timestamp } from './structural.js';

const sourceCondition = z.object({
  type: z.string().meta({ description: 'Accepted; and, as older clients look for it, Success or Failure.' }),
  status: z.enum(['True', 'False', 'Unknown']),
  lastTransitionTime: timestamp.nullable().exactOptional(),
  reason: z.string().exactOptional(),
  message: z.string().exactOptional(),
});
/** A condition of an object that MachineConfigs are generated from. */
export type SourceCondition = z.infer<typeof sourceCondition>;

/**
 * Status of every kind that MachineConfigs are generated from. Not strict: a status is read from clusters whose version
 * we do not choose, and nobody writes one by hand.
 */
export const sourceStatusSchema = z.object({
  observedGeneration: z
    .int()
    .meta({ description: 'The generation of the object that this status describes.' })
    .exactOptional(),
  conditions: atomicList(sourceCondition).exactOptional(),
});
export type SourceStatus = z.infer<typeof sourceStatusSchema>;
