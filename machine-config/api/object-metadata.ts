import { z } from 'zod';
import { objectName, timestamp } from './structural.js';

const ownerReference = z.strictObject({
  apiVersion: z.string(),
  kind: z.string(),
  name: z.string(),
  uid: z.string(),
  controller: z.boolean().exactOptional(),
  blockOwnerDeletion: z.boolean().exactOptional(),
});

/**
 * Metadata as Kubernetes defines it for every object. Complete, so that a misspelt key is found here; the CRDs do not
 * carry it, since the API server brings its own.
 */
export const objectMetadataSchema = z.strictObject({
  name: objectName,
  generateName: z.string().exactOptional(),
  namespace: z.string().exactOptional(),
  uid: z.string().exactOptional(),
  resourceVersion: z.string().exactOptional(),
  generation: z.int().exactOptional(),
  selfLink: z.string().exactOptional(),
  creationTimestamp: timestamp.exactOptional(),
  deletionTimestamp: timestamp.exactOptional(),
  deletionGracePeriodSeconds: z.int().exactOptional(),
  labels: z.record(z.string(), z.string()).exactOptional(),
  annotations: z.record(z.string(), z.string()).exactOptional(),
  ownerReferences: z.array(ownerReference).exactOptional(),
  finalizers: z.array(z.string()).exactOptional(),
  managedFields: z.array(z.record(z.string(), z.unknown())).exactOptional(),
});
export type ObjectMetadata = z.infer<typeof objectMetadataSchema>;
