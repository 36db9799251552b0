import { writeFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { applyPlan } from '../../../activities/host/apply.js';
import { ApplyInterruptedError } from '../../../activities/host/interruption.js';
import { serviceActionsOf } from '../../../activities/host/simulated-host.js';
import { createNodeActivities } from '../../../activities/node/activities.js';
import { apiFlavour, DRYDOCK_ANNOTATIONS } from '../../../machine-config/api/flavour.js';
import {
  bring,
  fakeHost,
  file,
  planTo,
  rendered,
  replaceSystemctl,
  restart,
  treeOf,
  withPolicies,
  type FakeHost,
} from '../../support/fake-host.js';
import { setUpNode } from '../../support/node-under-test.js';

/*
 * A worker that is asked to end while it changes its host.
 */

const EXCEPT = ['/var/lib/drydock/blobs', '/var/lib/drydock-lab/services.jsonl'];
const UNIT = '[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n';
const POLICY = {
  files: [{ path: '/etc/a', actions: [restart('foo.service')] }],
  units: ['foo.service', 'gone.service'].map((name) => ({ name, actions: [{ type: 'None' as const }] })),
};
const withText = (name: string, text: string, ...more: string[]) =>
  withPolicies(
    rendered(name, {
      storage: { files: [file('/etc/a', text), file('/etc/b', text)] },
      systemd: { units: ['foo.service', ...more].map((unit) => ({ name: unit, enabled: true, contents: UNIT })) },
    }),
    { ...POLICY, files: [...POLICY.files, { path: '/etc/b', actions: [{ type: 'None' as const }] }] },
  );
const OLD = withText('r1', 'old', 'gone.service');
const NEXT = withText('r2', 'new');

async function onOld(): Promise<FakeHost> {
  const fake = await fakeHost();
  await bring(fake, OLD);
  for (const unit of ['foo.service', 'gone.service']) await fake.host.systemctl.start(unit);
  return fake;
}

async function applying(fake: FakeHost, signal: AbortSignal) {
  const plan = await planTo(fake, NEXT);
  fake.steps.length = 0;
  const { host, store } = fake;
  return () => applyPlan({ host, store, plan, from: 'r1', now: '2026-11-30T12:00:00.000Z', signal });
}

it('puts everything back, whichever step it is at, and begins no other', async () => {
  const counted = await onOld();
  await (
    await applying(counted, new AbortController().signal)
  )();
  const last = counted.steps.indexOf('closing the change');
  expect(last).toBeGreaterThan(8);
  for (let at = 0; at < last; at++) {
    const fake = await onOld();
    const before = await treeOf(fake.root, EXCEPT);
    const stopping = new AbortController();
    const apply = await applying(fake, stopping.signal);
    fake.onStep = (_, index) => (index === at ? stopping.abort() : undefined);
    const ended = await apply().catch((error: unknown) => error);
    // The step that all others precede: nothing is left to be interrupted.
    if (at === last - 1) {
      expect(ended).toMatchObject({ phase: 'applied' });
      continue;
    }
    expect(ended).toBeInstanceOf(ApplyInterruptedError);
    expect(String(ended)).toMatch(/: interrupted, since the node worker was asked to end; everything was put back/);
    expect(fake.steps[at + 1]).toMatch(/^undo: /);
    expect(await treeOf(fake.root, EXCEPT), fake.steps[at]).toEqual(before);
    for (const unit of ['foo.service', 'gone.service']) {
      expect(await fake.host.systemctl.isActive(unit), fake.steps[at]).toBe(true);
    }
  }
});

it('does not wait for a job of systemd that takes its time', async () => {
  const fake = await onOld();
  const before = await treeOf(fake.root, EXCEPT);
  const stopping = new AbortController();
  replaceSystemctl(fake, (real) => ({
    async restart(unit) {
      await real.restart(unit);
      if ((await fake.text('/etc/a')) === 'old') return;
      stopping.abort();
      await new Promise<never>(() => undefined);
    },
  }));
  const apply = await applying(fake, stopping.signal);
  await expect(apply()).rejects.toThrow(ApplyInterruptedError);
  expect(await treeOf(fake.root, EXCEPT)).toEqual(before);
  const actions = (await serviceActionsOf(fake.root)).map(({ action, unit }) => `${action} ${unit}`);
  expect(actions.slice(3)).toEqual([
    'stop gone.service',
    'restart foo.service',
    'restart foo.service',
    'start gone.service',
  ]);
});

it('says nothing bad of the config, which the next worker applies', async () => {
  const test = await setUpNode();
  await writeFile(test.fake.path('/etc/a'), 'before');
  const input = { ...test.step, target: test.store({ storage: { files: [file('/etc/a', 'after')] } }) };
  await test.grant(input.target);
  await test.run('prepare', input);
  await test.run('cordon', input);
  const stopping = new AbortController();
  const activities = createNodeActivities({ ...test.deps, stopping: stopping.signal });
  test.fake.onStep = (step) => (step.startsWith('writing /etc/a') ? stopping.abort() : undefined);
  await expect(test.runWith(activities, 'apply', input)).rejects.toMatchObject({
    type: 'HostBusy',
    nonRetryable: false,
  });
  expect(await test.fake.text('/etc/a')).toBe('before');
  const { state } = apiFlavour('openshift').annotations;
  expect(test.annotations()[state]).toBe('Working');
  expect(test.annotations()[DRYDOCK_ANNOTATIONS.failure]).toBeUndefined();
  expect(await test.run('apply', input)).toMatchObject({ reboot: true });
  expect(await test.fake.text('/etc/a')).toBe('after');
});
