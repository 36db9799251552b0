import { describe, expect, it } from 'vitest';
import { DRYDOCK_ANNOTATIONS as OURS } from '../../../machine-config/api/flavour.js';
import {
  cordonChange,
  isLifted,
  liftChange,
  PROTECTING_ANNOTATIONS,
  type NodeChange,
} from '../../../machine-config/drain/cordon-change.js';
import { apiFlavour } from '../../../machine-config/api/flavour.js';
import { nodeFacts, type NodeObject } from '../../../machine-config/pool/facts.js';

const NOW = new Date('2026-03-01T12:00:00Z');
const LATER = new Date('2026-03-01T13:00:00Z');
const [AUTOSCALER, KARPENTER] = PROTECTING_ANNOTATIONS;

/** A Node to which changes are made as the API server makes them. */
function makeNode(annotations: Record<string, string> = {}, unschedulable = false) {
  let node: NodeObject = { metadata: { name: 'n1', annotations }, spec: { unschedulable } };
  const self = {
    facts: () => nodeFacts(node, apiFlavour('openshift')),
    annotations: () => node.metadata?.annotations ?? {},
    change(change: NodeChange | undefined) {
      if (change === undefined) return;
      const next = Object.entries({ ...self.annotations(), ...change.annotations }).filter(
        ([, value]) => value !== null,
      );
      const cordoned = change.unschedulable === undefined ? node.spec?.unschedulable : change.unschedulable === true;
      node = {
        metadata: { name: 'n1', annotations: Object.fromEntries(next) as Record<string, string> },
        spec: { unschedulable: cordoned === true },
      };
    },
    /** As somebody else does it. */
    set(changes: Record<string, string | null>) {
      self.change({ annotations: changes });
    },
    cordon: (target = 'rendered-1', now = NOW) => self.change(cordonChange(self.facts(), target, now)),
    lift: () => self.change(liftChange(self.facts())),
  };
  return self;
}

describe('a cordon', () => {
  it('is one change: whose it is, since when, and the protection', () => {
    const node = makeNode();
    expect(cordonChange(node.facts(), 'rendered-1', NOW)).toEqual({
      unschedulable: true,
      annotations: {
        [OURS.cordonedFor]: 'rendered-1',
        [OURS.drainSince]: NOW.toISOString(),
        [OURS.replaced]: JSON.stringify({ [AUTOSCALER]: null, [KARPENTER]: null }),
        [AUTOSCALER]: 'true',
        [KARPENTER]: 'true',
      },
    });
    node.cordon();
    expect(cordonChange(node.facts(), 'rendered-1', LATER)).toBeUndefined();
  });

  it('keeps the clock of the drain when it is retargeted, or made again after somebody uncordoned', () => {
    const node = makeNode();
    node.cordon();
    node.cordon('rendered-2', LATER);
    node.change({ annotations: {}, unschedulable: false });
    node.cordon('rendered-2', LATER);
    expect(node.facts()).toMatchObject({ drainSince: NOW.getTime(), cordonedFor: 'rendered-2', unschedulable: true });
  });

  it('of somebody else is used, protected and not claimed, and stays', () => {
    const node = makeNode({}, true);
    node.cordon();
    expect(node.facts().cordonedFor).toBeUndefined();
    expect(node.annotations()[KARPENTER]).toBe('true');
    expect(isLifted(node.facts())).toBe(false);
    node.lift();
    expect(node.facts().unschedulable).toBe(true);
    expect(node.annotations()).toEqual({});
  });

  it('forgets whose pods the drain before evicted, and a cordon that a hold had kept', () => {
    const node = makeNode({ [OURS.evictedOwners]: '["shop/ReplicaSet/a"]', [OURS.heldCordon]: 'true' });
    node.cordon();
    expect(node.facts()).not.toHaveProperty('evictedOwners');
    expect(node.facts()).not.toHaveProperty('heldCordon');
  });
});

describe('lifted again', () => {
  it('leaves the node as it was', () => {
    const before = { [AUTOSCALER]: 'false', [KARPENTER]: 'true', other: 'x' };
    const node = makeNode(before);
    node.cordon();
    node.cordon('rendered-2', LATER);
    expect(node.annotations()).toMatchObject({ [AUTOSCALER]: 'true', [KARPENTER]: 'true' });
    node.set({ [OURS.drainBlocked]: JSON.stringify({ sentence: 'Waiting' }) });
    node.lift();
    expect(node.annotations()).toEqual(before);
    expect(node.facts().unschedulable).toBe(false);
  });

  it('keeps what somebody made of the protection meanwhile', () => {
    const node = makeNode({ [AUTOSCALER]: 'false' });
    node.cordon();
    node.set({ [AUTOSCALER]: 'never', [KARPENTER]: null });
    node.lift();
    expect(node.annotations()).toEqual({ [AUTOSCALER]: 'never' });
  });

  it('puts back what somebody wrote before it was protected once more', () => {
    const node = makeNode();
    node.cordon();
    node.set({ [AUTOSCALER]: 'never' });
    node.cordon();
    expect(node.annotations()[AUTOSCALER]).toBe('true');
    node.lift();
    expect(node.annotations()).toEqual({ [AUTOSCALER]: 'never' });
  });

  it('does not leave the protection behind when what it replaced cannot be read any more', () => {
    const node = makeNode();
    node.cordon();
    node.set({ [OURS.replaced]: '{' });
    node.lift();
    expect(node.annotations()).toEqual({});
  });

  it('leaves the cordon to whoever holds the node, and says that it was ours', () => {
    const node = makeNode();
    node.cordon();
    node.set({ [OURS.hold]: 'disk is being replaced' });
    expect(isLifted(node.facts())).toBe(false);
    node.lift();
    expect(node.facts()).toMatchObject({ unschedulable: true, heldCordon: true });
    expect(node.facts().cordonedFor).toBeUndefined();
    node.lift();
    expect(node.facts().unschedulable).toBe(true);
  });

  it('cordons nobody who is held and was uncordoned by hand', () => {
    const node = makeNode();
    node.cordon();
    node.set({ [OURS.hold]: 'disk is being replaced' });
    node.change({ annotations: {}, unschedulable: false });
    node.lift();
    expect(node.facts().unschedulable).toBe(false);
    expect(node.facts()).not.toHaveProperty('heldCordon');
  });
});
