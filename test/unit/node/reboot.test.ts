import { describe, expect, it } from 'vitest';
import type { ApplicationFailure } from '@temporalio/common';
import { createNodeActivities } from '../../../activities/node/activities.js';
import { registerNode } from '../../../activities/node/register.js';
import { RebootInhibited, type OsState } from '../../../activities/host/host.js';
import { DRYDOCK_ANNOTATIONS } from '../../../machine-config/api/flavour.js';
import { file } from '../../support/fake-host.js';
import { setUpNode, STEP_LIMIT_SECONDS } from '../../support/node-under-test.js';

const code = (type: string) => expect.objectContaining({ type }) as ApplicationFailure;

/** A node to which an update that needs a reboot has just been applied. */
async function setUpApplied() {
  const node = await setUpNode();
  const target = node.store({ storage: { files: [file('/etc/new', 'new\n')] } });
  await node.grant(target);
  const step = { ...node.step, target };
  for (const name of ['prepare', 'cordon', 'apply'] as const) await node.run(name, step);
  const state = () => node.annotations()[node.flavour.annotations.state];
  const reason = () => node.annotations()[node.flavour.annotations.reason] ?? '';
  return { ...node, target, at: step, state, reason };
}

describe('a reboot', () => {
  it('that did not come is benign until just before the limit, and then the reason why the node is Degraded', async () => {
    const node = await setUpApplied();
    await node.run('reboot', node.at);
    node.advance(STEP_LIMIT_SECONDS - 30);
    await expect(node.run('confirm', node.at)).rejects.toEqual(code('NotRebootedYet'));
    expect(node.state()).toBe('Working');
    node.advance(25);
    await expect(node.run('confirm', node.at)).rejects.toEqual(code('NotRebooted'));
    expect(node.state()).toBe('Degraded');
    expect(node.reason()).toContain('is still in the boot');
  });

  it('is put off while something on the host inhibits it, which the Node says', async () => {
    const node = await setUpApplied();
    let inhibited = true;
    const host = {
      ...node.deps.host,
      reboot: (request: { bootId: string; reason: string }) =>
        inhibited
          ? Promise.reject(new RebootInhibited('backupd (process 7) asks that this host is not shut down now: backup'))
          : node.deps.host.reboot(request),
    };
    const activities = createNodeActivities({ ...node.deps, host });
    await expect(node.runWith(activities, 'reboot', node.at)).rejects.toEqual(code('RebootInhibited'));
    expect(node.fake.reboots).toEqual([]);
    expect(node.state()).toBe('Working');
    expect(node.reason()).toBe(
      'waiting to reboot: backupd (process 7) asks that this host is not shut down now: backup',
    );
    inhibited = false;
    await expect(node.runWith(activities, 'reboot', node.at)).resolves.toMatchObject({ requested: true });
    expect(node.fake.reboots).toHaveLength(1);
  });

  it('into another image than the config asks for is told from a disk that differs', async () => {
    const node = await setUpNode();
    const wanted = 'quay.example/os:2';
    let staged: OsState = { kernelArguments: [], osImageURL: '', kernelType: 'default', extensions: [] };
    const os = {
      ...node.deps.host.os,
      refusal: () => undefined,
      staged: () => Promise.resolve(staged),
      booted: () => Promise.resolve({ ...staged, osImageURL: 'quay.example/os:1' }),
      stage: (state: OsState) => {
        staged = state;
        return Promise.resolve();
      },
    };
    const activities = createNodeActivities({ ...node.deps, host: { ...node.deps.host, os } });
    const target = node.store({}, { osImageURL: wanted });
    await node.grant(target);
    const step = { ...node.step, target };
    for (const name of ['prepare', 'cordon', 'apply', 'reboot'] as const) await node.runWith(activities, name, step);
    await node.fake.boot();
    await node.reportBoot();
    await expect(node.runWith(activities, 'confirm', step)).rejects.toEqual(code('WrongImage'));
    const reason = node.annotations()[node.flavour.annotations.reason];
    expect(reason).toContain('expected to run quay.example/os:2, it runs quay.example/os:1');
  });
});

describe('a host whose deployments have each their own /etc', () => {
  /** The same node, after its boot loader has fallen back to an older deployment. */
  async function fallBack() {
    const node = await setUpApplied();
    const journal = await node.fake.store.journal();
    if (journal === undefined) throw new Error('nothing was applied');
    await node.fake.store.writeJournal({ ...journal, deployment: 'newer' });
    const os = { ...node.deps.host.os, deployment: () => Promise.resolve('older') };
    return { node, journal, deps: { ...node.deps, host: { ...node.deps.host, os } } };
  }

  it('closes a journal of another deployment as old, and undoes nothing of it', async () => {
    const { node, journal, deps } = await fallBack();
    await node.fake.store.writeJournal({ ...journal, phase: 'applying', deployment: 'newer' });
    await registerNode(deps);
    expect(await node.fake.store.journal()).toBeUndefined();
    expect(await node.fake.text('/etc/new')).toBe('new\n');
  });

  it('keeps the journal of an update that is meant to come up in another deployment', async () => {
    const { node, journal, deps } = await fallBack();
    const before = { kernelArguments: [], osImageURL: '', kernelType: 'default', extensions: [] };
    await node.fake.store.writeJournal({ ...journal, deployment: 'newer', undo: { ...journal.undo, os: before } });
    await registerNode(deps);
    expect((await node.fake.store.journal())?.target).toBe(node.target);
  });

  it('keeps a journal where there is only one /etc', async () => {
    const node = await setUpApplied();
    await registerNode(node.deps);
    expect((await node.fake.store.journal())?.target).toBe(node.target);
    expect(node.annotations()[DRYDOCK_ANNOTATIONS.host]).toContain('"backend":"simulated"');
  });
});
