import { describe, expect, it } from 'vitest';
import { DRYDOCK_ANNOTATIONS } from '../../../machine-config/api/flavour.js';
import type { RolloutPolicy } from '../../../machine-config/api/rollout-policy.js';
import { file } from '../../support/fake-host.js';
import { setUpNode } from '../../support/node-under-test.js';

/** The clock of these tests begins at noon: the window has two hours left. */
const WINDOW = { timeZone: 'UTC', allow: [{ start: '10:00', length: '4h' }] };

/** A node in the middle of its drain, which a budget blocks; at each heartbeat half a minute goes by. */
async function blockedDrain(windows: RolloutPolicy['windows']) {
  const test = await setUpNode();
  await test.policy(windows === undefined ? {} : { windows });
  const input = { ...test.step, target: test.store({ storage: { files: [file('/etc/chrony.conf', 'ours')] } }) };
  await test.grant(input.target);
  await test.run('prepare', input);
  await test.run('cordon', input);
  test.pod('cart');
  test.budget('cart');
  const began = test.deps.now().getTime();
  const slept = { seconds: 0 };
  test.environment.on('heartbeat', () => {
    test.advance(30);
    slept.seconds += 30;
  });
  return {
    ...test,
    target: input.target,
    /** For how long one slice lasts, in seconds of the node's clock. */
    async slice(sliceSeconds: number) {
      const before = slept.seconds;
      expect(await test.run('drain', { ...input, sliceSeconds })).toMatchObject({ drained: false, remaining: 1 });
      return slept.seconds - before;
    },
    began,
  };
}

describe('a slice of a drain', () => {
  it('ends when the window closes, so that the node is given back then, and not an hour later', async () => {
    const test = await blockedDrain({ ...WINDOW, onClose: 'GiveBack' });
    test.advance(90 * 60);
    expect(await test.slice(3600)).toBe(30 * 60);
  });

  it('lasts as long as it was to where the window closes later', async () => {
    const test = await blockedDrain({ ...WINDOW, onClose: 'GiveBack' });
    expect(await test.slice(600)).toBe(600);
  });

  it('lasts on where nodes are finished, and where this config waits for no window', async () => {
    const finishing = await blockedDrain({ ...WINDOW, onClose: 'Finish' });
    finishing.advance(110 * 60);
    expect(await finishing.slice(1200)).toBe(1200);

    const hurried = await blockedDrain({ ...WINDOW, onClose: 'GiveBack' });
    const annotations = { [DRYDOCK_ANNOTATIONS.runNow]: hurried.target };
    const spec = { configuration: { name: hurried.target } };
    await hurried.cluster.patch(
      hurried.flavour.machineConfigPool,
      { name: 'worker' },
      { metadata: { annotations }, spec },
    );
    hurried.advance(110 * 60);
    expect(await hurried.slice(1200)).toBe(1200);
  });

  it('lasts half a minute at least, also where the clock of this host says that the window has closed', async () => {
    const test = await blockedDrain({ ...WINDOW, onClose: 'GiveBack' });
    test.advance(3 * 3600);
    expect(await test.slice(3600)).toBe(30);
  });

  it('ends, too, when the window is made to close in the middle of it', async () => {
    const test = await blockedDrain({ ...WINDOW, onClose: 'GiveBack' });
    let beats = 0;
    test.environment.on('heartbeat', () => {
      beats += 1;
      if (beats === 4) void test.policy({ windows: { ...WINDOW, allow: [], onClose: 'GiveBack' } });
    });
    const lasted = await test.slice(3600);
    // The policy is read once a minute.
    expect(lasted).toBeGreaterThan(120);
    expect(lasted).toBeLessThanOrEqual(240);
  });
});
