import type { ApplicationFailure } from '@temporalio/common';
import { describe, expect, it } from 'vitest';
import { createNodeActivities } from '../../../activities/node/activities.js';
import { DRYDOCK_ANNOTATIONS } from '../../../machine-config/api/flavour.js';
import { freezePolicies } from '../../../machine-config/change/frozen-policies.js';
import { mergePolicies } from '../../../machine-config/change/policies.js';
import { file } from '../../support/fake-host.js';
import { setUpNode, type NodeObject } from '../../support/node-under-test.js';
import { KINDS } from '../../../activities/kubernetes/client.js';

const code = (type: string) => expect.objectContaining({ type }) as ApplicationFailure;

/** A node with a pod that is granted a config which costs it nothing; whoever reaches Temporal asks it for more. */
async function grantedForNothing() {
  const test = await setUpNode();
  const free = test.store({ storage: { files: [file('/etc/motd', 'hello')] } });
  const frozen = freezePolicies(mergePolicies({ files: [{ path: '/etc/motd', actions: [{ type: 'None' }] }] }), 1);
  const annotations = { [DRYDOCK_ANNOTATIONS.disruptionPolicies]: frozen };
  await test.cluster.patch(test.flavour.machineConfig, { name: free }, { metadata: { annotations } });
  const dear = test.store({ storage: { files: [file('/etc/chrony.conf', 'ours')] } });
  await test.grant(free);
  test.pod('cart');
  let cordoned = false;
  test.cluster.observe<NodeObject>(KINDS.node, (_, { spec }) => {
    cordoned ||= spec?.unschedulable === true;
  });
  return {
    ...test,
    free: { ...test.step, target: free },
    dear: { ...test.step, target: dear },
    wasCordoned: () => cordoned,
  };
}

describe('a node whose granted update costs no drain', () => {
  it.each(['that has planned it', 'that has just started'])(
    'is neither cordoned nor drained by its worker %s, whoever asks',
    async (which) => {
      const test = await grantedForNothing();
      if (which === 'that has planned it') {
        expect(await test.run('prepare', test.free)).toMatchObject({ disruption: 'none' });
      }
      await expect(test.run('cordon', test.free)).rejects.toEqual(code('NotGranted'));
      await expect(test.run('drain', { ...test.free, sliceSeconds: 1 })).rejects.toEqual(code('NotGranted'));
      expect(test.wasCordoned()).toBe(false);
      expect(await test.pods()).toEqual(['cart']);
      expect(test.told).toEqual([]);
    },
  );

  it('is cordoned and drained for the next config that costs it a reboot, by the same worker and by another', async () => {
    const test = await grantedForNothing();
    await test.run('prepare', test.free);
    await test.grant(test.dear.target);
    expect(await test.run('cordon', test.dear)).toEqual({ ours: true });
    const restarted = createNodeActivities(test.deps);
    const drained = await test.runWith(restarted, 'drain', { ...test.dear, sliceSeconds: 5 });
    expect(drained).toMatchObject({ drained: true, evicted: 1 });
  });

  it('is not cordoned after the reboot into what it was cordoned for before', async () => {
    const test = await grantedForNothing();
    await test.grant(test.dear.target);
    await test.run('prepare', test.dear);
    await test.run('cordon', test.dear);
    await test.run('drain', { ...test.dear, sliceSeconds: 5 });
    await test.run('apply', test.dear);
    await test.run('reboot', test.dear);
    await test.fake.boot();
    await test.reportBoot();
    test.pod('late');
    const restarted = createNodeActivities(test.deps);
    const again = test.runWith(restarted, 'drain', { ...test.dear, sliceSeconds: 5 });
    await expect(again).rejects.toEqual(code('NotGranted'));
    expect(await test.pods()).toEqual(['late']);
  });
});
