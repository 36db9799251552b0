import { z } from 'zod';
import { apiFlavour, DRYDOCK_ANNOTATIONS, FLAVOUR_NAMES, type ApiFlavour } from '../api/flavour.js';
import { effectiveActionsSchema } from '../api/node-disruption-policy.js';
import { defaultPolicies, POLICY_ORIGINS, type EffectivePolicies } from './policies.js';

const policy = { actions: effectiveActionsSchema, origin: z.enum(POLICY_ORIGINS) };

const frozenSchema = z.strictObject({
  /** metadata.generation of MachineConfiguration `cluster`; absent where there was none. */
  generation: z.int().min(0).exactOptional(),
  files: z.array(z.strictObject({ path: z.string(), ...policy })),
  units: z.array(z.strictObject({ name: z.string(), ...policy })),
  sshkey: z.strictObject(policy),
  otherwise: z.strictObject({ files: z.strictObject(policy), units: z.strictObject(policy) }),
});

/** A rendered config carries no policies that can be read: it was changed by somebody, or by another version. */
export class FrozenPoliciesError extends Error {
  override readonly name = 'FrozenPoliciesError';
}

interface Annotated {
  readonly apiVersion?: string;
  readonly metadata: { readonly name: string; readonly annotations?: Readonly<Record<string, string>> };
}

/** What the annotation of a rendered config says: the policies in force, and the generation that they come from. */
export function freezePolicies(policies: EffectivePolicies, generation: number | undefined): string {
  return JSON.stringify(generation === undefined ? policies : { generation, ...policies });
}

/**
 * The disruption policies that a rendered config carries; one without the annotation has those that are built in for
 * the group of its apiVersion.
 *
 * @throws FrozenPoliciesError where the annotation cannot be read: nobody may guess what a change costs.
 */
export function readPolicies(config: Annotated): EffectivePolicies {
  const key = DRYDOCK_ANNOTATIONS.disruptionPolicies;
  const text = config.metadata.annotations?.[key];
  if (text === undefined || text === '') return defaultPolicies(flavourOf(config.apiVersion));
  const read = frozenSchema.safeParse(parseJson(text));
  if (!read.success) {
    const where = read.error.issues[0]?.path.join('.') ?? '';
    throw new FrozenPoliciesError(
      `Annotation ${key} of MachineConfig ${config.metadata.name} cannot be read${where === '' ? '' : ` at ${where}`}: ` +
        `remove the annotation, the control worker writes it again`,
    );
  }
  const { files, units, sshkey, otherwise } = read.data;
  return { files, units, sshkey, otherwise };
}

function flavourOf(apiVersion: string | undefined): ApiFlavour {
  const flavours = FLAVOUR_NAMES.map((name) => apiFlavour(name));
  return flavours.find(({ group }) => apiVersion?.startsWith(`${group}/`)) ?? apiFlavour('openshift');
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
