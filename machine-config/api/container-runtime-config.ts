import { z } from 'zod';
import { labelSelectorSchema } from './label-selector.js';
import { objectMetadataSchema } from './object-metadata.js';
import { sourceStatusSchema } from './source-status.js';
import { atomicList, withRules } from './structural.js';

/** A Kubernetes quantity as a manifest writes it; read where it is used. */
const quantity = z
  .union([z.int(), z.string()], { error: 'expected a quantity such as 8G or 10Mi' })
  .meta({ 'x-kubernetes-int-or-string': true });

const STORE_PATH = '^/[a-zA-Z0-9/._-]+$';

const store = z.strictObject({
  path: withRules(
    z.string().min(1, { error: 'must not be empty' }).max(256, { error: 'has more than 256 characters' }),
    {
      cel: `self.matches('${STORE_PATH}') && !self.contains('//')`,
      holds: (path) => new RegExp(STORE_PATH, 'u').test(path) && !path.includes('//'),
      message: 'must be an absolute path of letters, digits, "/", ".", "_" and "-", without "//"',
    },
  ),
});

const stores = (max: number) =>
  withRules(atomicList(store).min(1, { error: 'must have an entry, or be left out' }).max(max), {
    cel: 'self.all(x, self.exists_one(y, x.path == y.path))',
    holds: (all) => new Set(all.map(({ path }) => path)).size === all.length,
    message: 'the same path is listed twice',
  });

/** Values that the reference checks in code, not in its schema, are checked where they are used: see validate.ts there. */
export const containerRuntimeSettingsSchema = z.strictObject({
  pidsLimit: z
    .int()
    .meta({ description: 'How many processes a container may have: 0 for no limit, else at least 20. CRI-O only.' })
    .exactOptional(),
  logLevel: z
    .string()
    .meta({ description: 'What the runtime logs: error, fatal, panic, warn, info, debug or trace.' })
    .exactOptional(),
  logSizeMax: quantity
    .meta({ description: 'Size at which the log of a container is cut; more than 8192 bytes. CRI-O only.' })
    .exactOptional(),
  overlaySize: quantity
    .meta({ description: 'How large the writable layer of a container may grow. CRI-O only.' })
    .exactOptional(),
  defaultRuntime: z.enum(['crun', 'runc']).meta({ description: 'What starts containers.' }).exactOptional(),
  additionalLayerStores: stores(5).exactOptional(),
  additionalImageStores: stores(10).exactOptional(),
  additionalArtifactStores: stores(10).exactOptional(),
});
export type ContainerRuntimeSettings = z.infer<typeof containerRuntimeSettingsSchema>;

/** Settings of the container runtime for the pools that its selector chooses by their labels. Cluster-scoped. */
export const containerRuntimeConfigSchema = z.strictObject({
  apiVersion: z.string().exactOptional(),
  kind: z.literal('ContainerRuntimeConfig').exactOptional(),
  metadata: objectMetadataSchema,
  spec: z.strictObject({
    machineConfigPoolSelector: labelSelectorSchema
      .meta({ description: 'The pools, by their own labels; an empty selector chooses none.' })
      .exactOptional(),
    containerRuntimeConfig: containerRuntimeSettingsSchema,
  }),
  status: sourceStatusSchema.exactOptional(),
});
export type ContainerRuntimeConfig = z.infer<typeof containerRuntimeConfigSchema>;
