import { z } from 'zod';
import { atomicList, withRules } from './structural.js';

const labelRequirement = withRules(
  z.strictObject({
    key: z.string().min(1).meta({ description: 'The label that the requirement is about.' }),
    operator: z.enum(['In', 'NotIn', 'Exists', 'DoesNotExist']),
    values: atomicList(z.string()).exactOptional(),
  }),
  {
    cel: "self.operator in ['In', 'NotIn'] ? has(self.values) && size(self.values) > 0 : !has(self.values) || size(self.values) == 0",
    holds: ({ operator, values }) => (operator === 'In' || operator === 'NotIn') === (values ?? []).length > 0,
    message: 'values are needed with the operators In and NotIn, and not allowed with Exists and DoesNotExist',
  },
);
export type LabelRequirement = z.infer<typeof labelRequirement>;

/** Which objects are meant, by their labels: every label and every expression must match. */
export const labelSelectorSchema = z
  .strictObject({
    matchLabels: z.record(z.string(), z.string()).exactOptional(),
    matchExpressions: atomicList(labelRequirement).exactOptional(),
  })
  .meta({ 'x-kubernetes-map-type': 'atomic' });
export type LabelSelector = z.infer<typeof labelSelectorSchema>;

function meets(labels: Readonly<Record<string, string>>, { key, operator, values = [] }: LabelRequirement): boolean {
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
  }
}

/**
 * Whether the labels satisfy the selector. As everywhere in this API an absent or empty selector selects nothing; in
 * Kubernetes' own kinds an empty one selects everything, which is not what anybody wants for nodes.
 */
export function matchesSelector(
  selector: LabelSelector | null | undefined,
  labels: Readonly<Record<string, string>> | null | undefined,
): boolean {
  const wanted = Object.entries(selector?.matchLabels ?? {});
  const requirements = selector?.matchExpressions ?? [];
  if (wanted.length === 0 && requirements.length === 0) return false;
  const present = labels ?? {};
  return (
    wanted.every(([key, value]) => Object.hasOwn(present, key) && present[key] === value) &&
    requirements.every((requirement) => meets(present, requirement))
  );
}

function formatRequirement({ key, operator, values = [] }: LabelRequirement): string {
  switch (operator) {
    case 'In':
      return `${key} in (${values.join(',')})`;
    case 'NotIn':
      return `${key} notin (${values.join(',')})`;
    case 'Exists':
      return key;
    case 'DoesNotExist':
      return `!${key}`;
  }
}

/** The selector as the API takes it in a query; undefined: it is empty, and selects nothing. */
export function formatSelector({ matchLabels = {}, matchExpressions = [] }: LabelSelector): string | undefined {
  const parts = [
    ...Object.entries(matchLabels).map(([key, value]) => `${key}=${value}`),
    ...matchExpressions.map(formatRequirement),
  ];
  return parts.length === 0 ? undefined : parts.join(',');
}
