import { z } from 'zod';
import type { ResourceKind } from './flavour.js';
import { objectMetadataSchema } from './object-metadata.js';
import { sourceStatusSchema } from './source-status.js';
import { atomicList, setList } from './structural.js';

const mirrorKind = (plural: string, kind: string): ResourceKind => ({
  group: 'config.openshift.io',
  version: 'v1',
  plural,
  kind,
  namespaced: false,
});

/** The same in every flavour, and often there already: brought to a cluster only where it has none. */
export const IMAGE_DIGEST_MIRROR_SET = mirrorKind('imagedigestmirrorsets', 'ImageDigestMirrorSet');
export const IMAGE_TAG_MIRROR_SET = mirrorKind('imagetagmirrorsets', 'ImageTagMirrorSet');

const LABEL = '[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?';
const HOST = `${LABEL}(\\.${LABEL})*(:[0-9]{1,5})?`;
const STEP = '[a-z0-9]+(([._]|__|-+)[a-z0-9]+)*';
const REPOSITORY = `${HOST}(/${STEP})*`;

const mirror = z
  .string()
  .max(512)
  .regex(new RegExp(`^${REPOSITORY}$`), {
    error: 'must be a registry such as mirror.example.com:5000, or a repository there, without a scheme or tag',
  });
const source = z
  .string()
  .max(512)
  .regex(new RegExp(`^(${REPOSITORY}|\\*(\\.${LABEL})+)$`), {
    error: 'must be a registry such as quay.io, a repository there, or *.example.com, without a scheme or tag',
  });

const entry = z.strictObject({
  source: source.meta({ description: 'What images are named by: a registry, a repository or *.domain.' }),
  mirrors: setList(mirror, { min: 0, max: 100 })
    .meta({ description: 'Where they are looked for, in this order.', 'x-kubernetes-list-type': 'atomic' })
    .exactOptional(),
  mirrorSourcePolicy: z
    .enum(['NeverContactSource', 'AllowContactingSource'])
    .meta({ description: 'Whether the source itself is asked after all mirrors have failed. Default: it is.' })
    .exactOptional(),
});
export type ImageMirrors = z.infer<typeof entry>;

const object = <K extends string, S extends z.ZodType>(kind: K, spec: S) =>
  z.strictObject({
    apiVersion: z.string().exactOptional(),
    kind: z.literal(kind).exactOptional(),
    metadata: objectMetadataSchema,
    spec,
    status: sourceStatusSchema.exactOptional(),
  });

/** Mirrors for images that are named by digest. Cluster-scoped. */
export const imageDigestMirrorSetSchema = object(
  'ImageDigestMirrorSet',
  z.strictObject({ imageDigestMirrors: atomicList(entry).exactOptional() }),
);
export type ImageDigestMirrorSet = z.infer<typeof imageDigestMirrorSetSchema>;

/** Mirrors for images that are named by tag. Cluster-scoped. */
export const imageTagMirrorSetSchema = object(
  'ImageTagMirrorSet',
  z.strictObject({ imageTagMirrors: atomicList(entry).exactOptional() }),
);
export type ImageTagMirrorSet = z.infer<typeof imageTagMirrorSetSchema>;
