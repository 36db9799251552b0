import { z } from 'zod';
import { atomicList, keyedList, withRules, type Rule } from './structural.js';

const SERVICE_NAME =
  /^[a-zA-Z0-9:._\\-]+\.(service|socket|device|mount|automount|swap|target|path|timer|snapshot|slice|scope)$/;

const serviceName = z.string().max(255, { error: 'has more than 255 characters' }).regex(SERVICE_NAME, {
  error: 'must be the full name of a systemd unit, such as crio.service',
});

const service = z.strictObject({ serviceName });

const SPEC_ACTIONS = ['Reboot', 'Drain', 'Reload', 'Restart', 'DaemonReload', 'None'] as const;
/** `Special` stands for what the reference system decides in code; nobody may ask for it. */
const STATUS_ACTIONS = [...SPEC_ACTIONS, 'Special'] as const;

interface ActionTarget {
  type: string;
  reload?: object;
  restart?: object;
}
const onlyWith = (field: 'reload' | 'restart', type: string): Rule<ActionTarget> => ({
  cel: `self.type == '${type}' ? has(self.${field}) : !has(self.${field})`,
  holds: (action) => (action.type === type) === (action[field] !== undefined),
  message: `${field} is needed with type ${type}, and not allowed with any other`,
});
const alone = (type: string): Rule<ActionTarget[]> => ({
  cel: `self.exists(x, x.type == '${type}') ? size(self) == 1 : true`,
  holds: (actions) => actions.length === 1 || actions.every((action) => action.type !== type),
  message: `${type} can only be the one action, since it settles the matter`,
});

const targetFields = { reload: service.exactOptional(), restart: service.exactOptional() };
const specAction = withRules(
  z.strictObject({ type: z.enum(SPEC_ACTIONS), ...targetFields }),
  onlyWith('reload', 'Reload'),
  onlyWith('restart', 'Restart'),
);
const statusAction = withRules(
  z.strictObject({ type: z.enum(STATUS_ACTIONS), ...targetFields }),
  onlyWith('reload', 'Reload'),
  onlyWith('restart', 'Restart'),
);
export type DisruptionAction = z.infer<typeof specAction>;
export type EffectiveDisruptionAction = z.infer<typeof statusAction>;

const specActions = withRules(atomicList(specAction).max(10), alone('Reboot'), alone('None'));
const statusActions = withRules(atomicList(statusAction).max(10), alone('Reboot'), alone('None'));

/** Actions in the order in which they run; the longest matching path of `files` wins. */
export const nodeDisruptionPolicySchema = z.strictObject({
  files: keyedList(z.strictObject({ path: z.string(), actions: specActions }), ['path'], 50).exactOptional(),
  units: keyedList(z.strictObject({ name: serviceName, actions: specActions }), ['name'], 50).exactOptional(),
  sshkey: z.strictObject({ actions: specActions }).exactOptional(),
});
export type NodeDisruptionPolicy = z.infer<typeof nodeDisruptionPolicySchema>;

/** What files and units cost that no policy names. */
export const defaultDisruptionSchema = z.strictObject({
  files: specActions.exactOptional(),
  units: specActions.exactOptional(),
});
export type DefaultDisruption = z.infer<typeof defaultDisruptionSchema>;

/** The actions of one policy in force. */
export const effectiveActionsSchema = statusActions;

export const nodeDisruptionPolicyStatusSchema = z.strictObject({
  clusterPolicies: z
    .strictObject({
      files: keyedList(z.strictObject({ path: z.string(), actions: statusActions }), ['path'], 100).exactOptional(),
      units: keyedList(z.strictObject({ name: serviceName, actions: statusActions }), ['name'], 100).exactOptional(),
      sshkey: z.strictObject({ actions: statusActions }).exactOptional(),
    })
    .exactOptional(),
});
export type NodeDisruptionPolicyStatus = z.infer<typeof nodeDisruptionPolicyStatusSchema>;
