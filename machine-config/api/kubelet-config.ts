import { z } from 'zod';
import { labelSelectorSchema } from './label-selector.js';
import { objectMetadataSchema } from './object-metadata.js';
import { sourceStatusSchema } from './source-status.js';
import { atomicList, openObject } from './structural.js';

const noSettings = z.strictObject({}).nullable();

const tlsSecurityProfile = z.strictObject({
  type: z.enum(['', 'Old', 'Intermediate', 'Modern', 'Custom']).exactOptional(),
  old: noSettings.exactOptional(),
  intermediate: noSettings.exactOptional(),
  modern: noSettings.exactOptional(),
  custom: z
    .strictObject({
      ciphers: atomicList(z.string())
        .nullable()
        .meta({ description: 'Cipher suites by their OpenSSL or IANA names.' })
        .exactOptional(),
      minTLSVersion: z.enum(['VersionTLS10', 'VersionTLS11', 'VersionTLS12', 'VersionTLS13']).exactOptional(),
    })
    .nullable()
    .exactOptional(),
});

export const kubeletConfigSpecSchema = z.strictObject({
  machineConfigPoolSelector: labelSelectorSchema
    .meta({ description: 'The pools that it is for, by their labels; an empty selector selects none.' })
    .exactOptional(),
  kubeletConfig: openObject(
    'Fields of KubeletConfiguration, kubelet.config.k8s.io/v1beta1, that differ from the present.',
  )
    .nullable()
    .exactOptional(),
  logLevel: z.int32().min(0).max(10).meta({ description: 'How much the kubelet logs.' }).exactOptional(),
  autoSizingReserved: z
    .boolean()
    .meta({ description: 'Whether nodes work out by themselves what they reserve for the system. On OpenShift nodes.' })
    .exactOptional(),
  tlsSecurityProfile: tlsSecurityProfile
    .nullable()
    .meta({ description: 'TLS versions and cipher suites of the kubelet server.' })
    .exactOptional(),
});
export type KubeletConfigSpec = z.infer<typeof kubeletConfigSpecSchema>;

/** Settings of the kubelets of some pools. Cluster-scoped. */
export const kubeletConfigSchema = z.strictObject({
  apiVersion: z.string().exactOptional(),
  kind: z.literal('KubeletConfig').exactOptional(),
  metadata: objectMetadataSchema,
  spec: kubeletConfigSpecSchema,
  status: sourceStatusSchema.exactOptional(),
});
export type KubeletConfig = z.infer<typeof kubeletConfigSchema>;
