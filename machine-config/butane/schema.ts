import { z } from 'zod';
import { unwrapped } from '../api/unknown-key.js';
import { ignitionSchema } from '../ignition/config.js';

type Shape = Record<string, z.ZodType>;

const text = z.string();
const texts = z.array(text);

/** A field of Butane that exists from the version on that gives Ignition 3.`minor`. */
function since<S extends z.ZodType>(minor: number, schema: S) {
  return schema.meta({ since: minor }).exactOptional();
}

/** What Butane adds to the objects of Ignition, by their place there; lists are `[]`. */
const SUGAR: Readonly<Record<string, Shape>> = {
  storage: { trees: since(1, z.array(z.strictObject({ local: text, path: text.exactOptional() }))) },
  'storage.filesystems[]': { with_mount_unit: since(1, z.boolean()) },
  'passwd.users[]': { ssh_authorized_keys_local: since(4, texts) },
  'systemd.units[]': { contents_local: since(4, text) },
  'systemd.units[].dropins[]': { contents_local: since(4, text) },
};

/** What Ignition has at the place of a file or config to fetch. */
function isResource(shape: Readonly<Record<string, unknown>>): boolean {
  return 'source' in shape && 'compression' in shape;
}

/** `inline` of authorities and merged configs came later than that of files. */
function resourceSugar(place: string): Shape {
  const inline = place.startsWith('ignition.') ? since(1, text) : text.exactOptional();
  return { inline, local: since(1, text) };
}

/** `sizeMiB` is `size_mib`. */
export function toButaneKey(key: string): string {
  return key.replaceAll(/MiB|[A-Z]/g, (capital) => `_${capital.toLowerCase()}`);
}

/** `size_mib` is `sizeMiB`. */
export function toIgnitionKey(key: string): string {
  return key.replace('_mib', 'MiB').replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** The schema of Ignition in the words of Butane: keys in snake case, and the sugar. Marks of versions are kept. */
function inButane(schema: z.core.$ZodType, place: string): z.ZodType {
  const inner = unwrapped(schema) as z.ZodType;
  const mark = inner.meta();
  const built = build(inner, place);
  return mark === undefined ? built : built.meta(mark);
}

function build(inner: z.ZodType, place: string): z.ZodType {
  if (inner instanceof z.ZodArray) return z.array(inButane(inner.element, `${place}[]`));
  if (!(inner instanceof z.ZodObject)) return inner.clone();
  const shape: Readonly<Record<string, z.core.$ZodType>> = inner.shape;
  const fields = Object.entries(shape)
    .filter(([key]) => !(place === 'ignition' && key === 'version'))
    .map(([key, field]): [string, z.ZodType] => {
      const name = toButaneKey(key);
      const child = inButane(field, place === '' ? name : `${place}.${name}`);
      return [name, isOptional(field) ? child.exactOptional() : child];
    });
  const sugar = isResource(shape) ? resourceSugar(place) : (SUGAR[place] ?? {});
  return z.strictObject({ ...Object.fromEntries(fields), ...sugar });
}

function isOptional(schema: z.core.$ZodType): boolean {
  return schema instanceof z.ZodExactOptional || schema instanceof z.ZodOptional;
}

const { shape: sections } = inButane(ignitionSchema, '') as z.ZodObject<Record<string, z.ZodType>>;
/** Of the sections of Ignition, `ignition` is the only one that a config must have; Butane fills it in. */
const ignitionSections = Object.fromEntries(
  Object.entries(sections).map(([key, field]) => [
    key,
    key === 'ignition' ? (unwrapped(field) as z.ZodType).exactOptional() : field,
  ]),
);

const tang = z.strictObject({ url: text, thumbprint: text.exactOptional(), advertisement: since(4, text) });

/** What the boot disk is to be made of, when the machine boots for the first time. */
export const bootDeviceSchema = z.strictObject({
  layout: text.exactOptional(),
  luks: z
    .strictObject({
      device: since(5, text),
      tang: z.array(tang).exactOptional(),
      tpm2: z.boolean().exactOptional(),
      threshold: z.int().exactOptional(),
      discard: since(4, z.boolean()),
      cex: since(5, z.strictObject({ enabled: z.boolean().exactOptional() })),
    })
    .exactOptional(),
  mirror: z.strictObject({ devices: texts.exactOptional() }).exactOptional(),
});
export type BootDevice = z.infer<typeof bootDeviceSchema>;

const metadataSchema = z.strictObject({
  name: text,
  labels: z.record(text, text).exactOptional(),
});
const openshiftSchema = z.strictObject({
  kernel_type: text.exactOptional(),
  kernel_arguments: texts.exactOptional(),
  extensions: texts.exactOptional(),
  fips: z.boolean().exactOptional(),
});

/** Everything that any version of any variant may say; what this one may not is told apart by mark and by rules.ts. */
export const butaneSchema = z.strictObject({
  variant: text,
  version: text,
  metadata: metadataSchema.exactOptional(),
  ...ignitionSections,
  boot_device: since(2, bootDeviceSchema),
  grub: since(
    4,
    z.strictObject({ users: z.array(z.strictObject({ name: text, password_hash: text })).exactOptional() }),
  ),
  openshift: openshiftSchema.exactOptional(),
});
