import { describe, expect, it } from 'vitest';
import { apiFlavour, DRYDOCK_ANNOTATIONS } from '../../../machine-config/api/flavour.js';
import { nodeFacts, WAITING_TAINT, type NodeObject } from '../../../machine-config/pool/facts.js';

const flavour = apiFlavour('openshift');
const ready = [{ type: 'Ready', status: 'True' }];

describe('nodeFacts', () => {
  it('reads everything that a Node says', () => {
    const node: NodeObject = {
      metadata: {
        name: 'n',
        uid: 'u',
        creationTimestamp: new Date('2026-01-01T00:00:00Z'),
        deletionTimestamp: new Date(),
        labels: { a: 'b' },
        annotations: {
          [flavour.annotations.currentConfig]: 'rendered-a',
          [flavour.annotations.desiredConfig]: 'rendered-b',
          [flavour.annotations.state]: 'Degraded',
          [flavour.annotations.reason]: 'why',
          [DRYDOCK_ANNOTATIONS.worker]: '1.0.0',
          [DRYDOCK_ANNOTATIONS.applying]: 'rendered-b',
          [DRYDOCK_ANNOTATIONS.cordonedFor]: 'rendered-b',
          [DRYDOCK_ANNOTATIONS.failure]:
            '{"target":"rendered-b","attempts":2,"at":"2026-01-01T00:00:00Z","code":"ApplyFailed"}',
          [DRYDOCK_ANNOTATIONS.force]: 'boot',
          [DRYDOCK_ANNOTATIONS.forceGranted]: 'boot',
          [DRYDOCK_ANNOTATIONS.host]:
            '{"os":"Debian 12","arch":"amd64","backend":"grub","cannot":{"fips":"it is off","later":"x","extensions":1}}',
        },
      },
      spec: { unschedulable: true },
      status: { conditions: ready, nodeInfo: { bootID: 'boot' } },
    };
    expect(nodeFacts(node, flavour)).toEqual({
      name: 'n',
      uid: 'u',
      createdAt: '2026-01-01T00:00:00.000Z',
      labels: { a: 'b' },
      deleting: true,
      unschedulable: true,
      ready: true,
      bootId: 'boot',
      worker: '1.0.0',
      current: 'rendered-a',
      desired: 'rendered-b',
      state: 'Degraded',
      reason: 'why',
      applying: 'rendered-b',
      cordonedFor: 'rendered-b',
      failure: { target: 'rendered-b', attempts: 2, at: '2026-01-01T00:00:00Z', code: 'ApplyFailed' },
      force: 'boot',
      forceGranted: 'boot',
      host: { os: 'Debian 12', arch: 'amd64', backend: 'grub', cannot: { fips: 'it is off' } },
      annotations: node.metadata?.annotations,
    });
  });

  it('takes what is missing, empty or malformed as absent', () => {
    const annotations = {
      [flavour.annotations.currentConfig]: '',
      [flavour.annotations.state]: 'Rebooting',
      [DRYDOCK_ANNOTATIONS.failure]: '{"target":1}',
      [DRYDOCK_ANNOTATIONS.host]: '{"os":"Debian 12"}',
    };
    for (const node of [
      {},
      { metadata: { annotations } },
      { metadata: { annotations: { [DRYDOCK_ANNOTATIONS.failure]: '{' } } },
    ]) {
      expect(nodeFacts(node, flavour)).toEqual({
        annotations: node.metadata?.annotations ?? {},
        name: '',
        uid: '',
        createdAt: '',
        labels: {},
        deleting: false,
        unschedulable: false,
        ready: false,
        notReadyBecause: 'Ready is not reported',
        bootId: '',
      });
    }
  });

  it('reads since when it is ready, and whether it waits for its update', () => {
    const lastTransitionTime = '2026-01-01T00:00:00Z';
    const facts = nodeFacts(
      {
        spec: { taints: [{ key: 'other', effect: 'NoSchedule' }, WAITING_TAINT] },
        status: { conditions: [{ type: 'Ready', status: 'False', lastTransitionTime }] },
      },
      flavour,
    );
    expect(facts).toMatchObject({ readinessSince: Date.parse(lastTransitionTime), waitsTainted: true });
    const other = { spec: { taints: [{ key: WAITING_TAINT.key, effect: 'NoSchedule' }] } };
    expect(nodeFacts(other, flavour).waitsTainted).toBeUndefined();
  });

  it.each([
    [[{ type: 'Ready', status: 'Unknown' }], 'Ready is Unknown'],
    [[...ready, { type: 'DiskPressure', status: 'True' }], 'DiskPressure is True'],
    [[...ready, { type: 'NetworkUnavailable', status: 'Unknown' }], 'NetworkUnavailable is Unknown'],
    [[...ready, { type: 'MemoryPressure', status: 'True' }], undefined],
    [[...ready, { type: 'DiskPressure', status: 'False' }], undefined],
  ])('judges the conditions %j', (conditions, problem) => {
    const facts = nodeFacts({ status: { conditions } }, flavour);
    expect([facts.ready, facts.notReadyBecause]).toEqual([problem === undefined, problem]);
  });
});
