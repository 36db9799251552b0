import { z } from 'zod';
import { objectMetadataSchema } from './object-metadata.js';
import { atomicList, openObject } from './structural.js';

export const machineConfigSpecSchema = z.strictObject({
  osImageURL: z
    .string()
    .meta({ description: 'Operating-system image that overrides the default one.' })
    .exactOptional(),
  baseOSExtensionsContainerImage: z
    .string()
    .meta({ description: 'Image with the packages of extensions that belong to osImageURL.' })
    .exactOptional(),
  config: openObject(
    'An Ignition config, as an object: files, systemd units, SSH keys. Versions 2.2 and 3.0 to 3.5.',
  ).exactOptional(),
  kernelArguments: atomicList(z.string())
    .nullable()
    .meta({ description: 'Arguments that are appended to the kernel command line.' })
    .exactOptional(),
  extensions: atomicList(z.string())
    .meta({ description: 'Sets of packages that are added to the operating system.' })
    .exactOptional(),
  fips: z.boolean().meta({ description: 'Whether the node runs in FIPS mode; fixed at installation.' }).exactOptional(),
  kernelType: z
    .string()
    .meta({ description: 'default, realtime or 64k-pages; empty means default. Checked when the pool is rendered.' })
    .exactOptional(),
});
export type MachineConfigSpec = z.infer<typeof machineConfigSpecSchema>;

/** One declared piece of node configuration. Cluster-scoped, without status. */
export const machineConfigSchema = z.strictObject({
  apiVersion: z.string().exactOptional(),
  kind: z.literal('MachineConfig').exactOptional(),
  metadata: objectMetadataSchema,
  spec: machineConfigSpecSchema.exactOptional(),
});
export type MachineConfig = z.infer<typeof machineConfigSchema>;
