import { z } from 'zod';
import { duration } from './duration.js';
import { labelSelectorSchema } from './label-selector.js';
import { atomicList, intOrString, keyedList, objectName, setList, withRules } from './structural.js';

/*
 * `spec.rollout` of a MachineConfigPool: how a rollout of this pool goes. An addition to the known fields; every field is
 * optional, and what is absent is as if the whole were.
 */

export const NODE_ORDERS = ['OldestFirst', 'NewestFirst', 'Zone', 'Label', 'Annotation'] as const;

const isByKey = (by: string) => by === 'Label' || by === 'Annotation';

const orderSchema = withRules(
  z.strictObject({
    by: z.enum(NODE_ORDERS),
    key: z
      .string()
      .min(1)
      .max(317)
      .meta({ description: 'The label or annotation whose value orders the nodes; those without it come last.' })
      .exactOptional(),
  }),
  {
    cel: "(self.by in ['Label', 'Annotation']) == has(self.key)",
    holds: ({ by, key }) => isByKey(by) === (key !== undefined),
    message: 'key is needed with Label and Annotation, and not allowed with any other order',
  },
);

const count = z.int32().min(1);
const percent = z.string().regex(/^(100|[1-9][0-9]?)%$/, { error: 'must be a percentage from 1% to 100%' });

const gateFields = {
  nodeReady: z
    .strictObject({ for: duration })
    .meta({ description: 'Every node that the rollout has updated is Ready for so long.' })
    .exactOptional(),
  condition: z
    .strictObject({
      apiVersion: z.string().min(1),
      kind: z.string().min(1),
      /** Lower-case plural of the kind, as in the path of the API; asked of the API server when absent. */
      resource: z.string().min(1).exactOptional(),
      namespace: objectName.exactOptional(),
      name: objectName.exactOptional(),
      selector: labelSelectorSchema.exactOptional(),
      type: z.string().min(1).meta({ description: 'The condition that every object must have.' }),
      status: z.enum(['True', 'False', 'Unknown']).meta({ default: 'True' }).exactOptional(),
    })
    .meta({ description: 'A condition of one object by name, or of all that a selector matches; at least one.' })
    .exactOptional(),
  available: z
    .strictObject({
      namespace: objectName.exactOptional(),
      selector: labelSelectorSchema,
    })
    .meta({ description: 'All Deployments that the selector matches, at least one, have every replica available.' })
    .exactOptional(),
  prometheus: z
    .strictObject({
      url: z.string().regex(/^https?:\/\/[^\s]+$/, { error: 'must be an http or https address' }),
      query: z.string().min(1).max(4096),
      passes: z
        .enum(['Empty', 'NotEmpty'])
        .meta({
          description: 'Whether the query has to return nothing, as for alerts, or something.',
          default: 'Empty',
        })
        .exactOptional(),
    })
    .meta({ description: 'An instant query. A server that does not answer, or answers with an error, means wait.' })
    .exactOptional(),
  podsRescheduled: z
    .strictObject({})
    .meta({ description: 'What owns the pods that were evicted from updated nodes has all its replicas available.' })
    .exactOptional(),
} as const;

export const GATE_KINDS = ['nodeReady', 'condition', 'available', 'prometheus', 'podsRescheduled'] as const;
export type GateKind = (typeof GATE_KINDS)[number];

const gateSchema = withRules(
  z.strictObject({ name: objectName, ...gateFields }),
  {
    cel: '[has(self.nodeReady), has(self.condition), has(self.available), has(self.prometheus), has(self.podsRescheduled)].filter(x, x).size() == 1',
    holds: (gate) => GATE_KINDS.filter((kind) => gate[kind] !== undefined).length === 1,
    message: 'exactly one of nodeReady, condition, available, prometheus and podsRescheduled is needed',
  },
  {
    cel: '!has(self.condition) || has(self.condition.name) != has(self.condition.selector)',
    holds: ({ condition }) =>
      condition === undefined || (condition.name === undefined) !== (condition.selector === undefined),
    message: 'condition needs either name or selector',
  },
);
export type Gate = z.infer<typeof gateSchema>;

const gates = keyedList(gateSchema, ['name'], 20);

const stageSchema = withRules(
  z.strictObject({
    name: objectName,
    count: count
      .meta({ description: 'The first so many nodes of those left, in the order of the rollout.' })
      .exactOptional(),
    percent: percent.meta({ description: 'The first so many of all nodes of the pool, rounded up.' }).exactOptional(),
    nodeSelector: labelSelectorSchema
      .meta({ description: 'The nodes of those left that have these labels.' })
      .exactOptional(),
    soak: duration.meta({ description: 'How long nothing further starts once the stage is updated.' }).exactOptional(),
    approval: z
      .enum(['Required'])
      .meta({ description: 'Somebody has to approve the stage before it begins: `drydock rollout approve`.' })
      .exactOptional(),
    gates: gates.meta({ description: 'What has to hold before the stage begins.' }).exactOptional(),
  }),
  {
    cel: '[has(self.count), has(self.percent), has(self.nodeSelector)].filter(x, x).size() <= 1',
    holds: ({ count: number, percent: share, nodeSelector }) =>
      [number, share, nodeSelector].filter((each) => each !== undefined).length <= 1,
    message: 'at most one of count, percent and nodeSelector is allowed; without any the stage holds all nodes left',
  },
);
export type Stage = z.infer<typeof stageSchema>;

const paceSchema = z.strictObject({
  growth: z.enum(['Constant', 'Linear', 'Exponential']),
  start: count.meta({ description: 'How many at once in the beginning.', default: 1 }).exactOptional(),
  step: count.meta({ description: 'How many more at once after each batch, with Linear.', default: 1 }).exactOptional(),
});

const WEEKDAYS = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'] as const;
export type Weekday = (typeof WEEKDAYS)[number];

const calendarDate = z.string().regex(/^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$/, {
  error: 'must be a date such as 2026-12-24',
});

const windowsSchema = z.strictObject({
  timeZone: z.string().min(1).max(64).meta({ description: 'Name of a time zone, such as Europe/Berlin or UTC.' }),
  allow: atomicList(
    z.strictObject({
      days: setList(z.enum(WEEKDAYS), { min: 1, max: 7 })
        .meta({ description: 'Days on which the window begins; every day when absent.' })
        .exactOptional(),
      start: z.string().regex(/^([01][0-9]|2[0-3]):[0-5][0-9]$/, { error: 'must be a time such as 22:00' }),
      length: duration.meta({ description: 'How long the window lasts, also over midnight.' }),
    }),
  ).meta({ description: 'When updates may start. An empty list allows none.' }),
  exclude: atomicList(
    z.strictObject({
      from: calendarDate,
      to: calendarDate.meta({ description: 'The last day, included; absent: one day.' }).exactOptional(),
    }),
  )
    .meta({ description: 'Days on which nothing starts, in the time zone of the windows.' })
    .exactOptional(),
  onClose: z
    .enum(['Finish', 'GiveBack'])
    .meta({
      description:
        'What a node does whose window closes after its start and before its change: Finish goes on, GiveBack is given back as it was and comes again.',
      default: 'Finish',
    })
    .exactOptional(),
});

const drainSchema = z.strictObject({
  timeout: duration
    .meta({ description: 'How long a drain may last before onTimeout holds.', default: '1h' })
    .exactOptional(),
  onTimeout: z
    .enum(['Wait', 'GiveBack', 'Force'])
    .meta({
      description:
        'Wait goes on waiting, GiveBack takes the cordon back and tries again later, Force deletes the pods past their budgets.',
      default: 'Wait',
    })
    .exactOptional(),
  retryAfter: duration
    .meta({ description: 'When a node that was given back is tried again.', default: '15m' })
    .exactOptional(),
});

const waitForPodsSchema = z.strictObject({
  selector: labelSelectorSchema.meta({ description: 'Pods that are not evicted but waited for.' }),
  namespaces: setList(objectName, { min: 1, max: 100 })
    .meta({ description: 'Where they are; everywhere when absent.' })
    .exactOptional(),
  limit: duration.meta({ description: 'How long they are waited for; without it, for ever.' }).exactOptional(),
  onLimit: z
    .enum(['Evict', 'GiveBack'])
    .meta({ description: 'What happens then: they are evicted, or the node is given back.', default: 'GiveBack' })
    .exactOptional(),
});

export const rolloutPolicySchema = withRules(
  z.strictObject({
    order: orderSchema
      .meta({ description: 'In which order the nodes are updated. Default OldestFirst.' })
      .exactOptional(),
    stages: keyedList(stageSchema, ['name'], 20)
      .meta({ description: 'Nodes that go before the others, stage by stage; those of no stage come last.' })
      .exactOptional(),
    soak: duration.meta({ description: 'How long nothing further starts after each node.' }).exactOptional(),
    pace: paceSchema
      .meta({ description: 'How the number at once grows up to maxUnavailable; it shrinks after failures.' })
      .exactOptional(),
    maxUnavailablePerZone: z
      .strictObject({
        maxUnavailable: intOrString,
        label: z.string().min(1).max(317).meta({ default: 'topology.kubernetes.io/zone' }).exactOptional(),
      })
      .meta({ description: 'How many nodes with the same value of a label may be unavailable at once.' })
      .exactOptional(),
    preferUpdatedNodes: z
      .boolean()
      .meta({
        description: 'Whether nodes that still wait carry a PreferNoSchedule taint, so that pods move to updated ones.',
        default: true,
      })
      .exactOptional(),
    windows: windowsSchema.exactOptional(),
    gates: z
      .strictObject({
        betweenNodes: gates.meta({ description: 'What has to hold before each node starts.' }).exactOptional(),
        afterNode: gates
          .meta({ description: 'What has to hold before an updated node gives its slot to the next.' })
          .exactOptional(),
      })
      .exactOptional(),
    failureBudget: z
      .strictObject({
        nodes: count
          .meta({
            description: 'After so many failed nodes the rollout halts; never more than there are slots.',
            default: 2,
          })
          .exactOptional(),
      })
      .exactOptional(),
    rebootTimeout: duration
      .meta({ description: 'When a node that does not come back from its reboot has failed.', default: '45m' })
      .exactOptional(),
    onFailure: z
      .enum(['Halt', 'Rollback'])
      .meta({
        description: 'What a halt does besides: Rollback takes updated nodes back to the last good config.',
        default: 'Halt',
      })
      .exactOptional(),
    after: setList(objectName, { min: 1, max: 100 })
      .meta({ description: 'Pools that must be Updated before a node of this one starts.' })
      .exactOptional(),
    drain: drainSchema.exactOptional(),
    waitForPods: waitForPodsSchema.exactOptional(),
  }),
  {
    cel: '!has(self.stages) || self.stages.filter(s, !has(s.count) && !has(s.percent) && !has(s.nodeSelector)).size() <= 1',
    holds: ({ stages }) => (stages ?? []).filter(holdsTheRest).length <= 1,
    message: 'only one stage may hold all nodes left',
  },
);
export type RolloutPolicy = z.infer<typeof rolloutPolicySchema>;

/** A stage without a choice of its own holds every node that no stage before it holds. */
export function holdsTheRest({ count: number, percent: share, nodeSelector }: Stage): boolean {
  return number === undefined && share === undefined && nodeSelector === undefined;
}
