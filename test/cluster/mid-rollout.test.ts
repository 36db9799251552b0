import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { KINDS, type KubernetesObject } from '../../activities/kubernetes/client.js';
import { FILE, FleetLab, flavour, POOL, RENAMED_POOL } from '../support/fleet-lab.js';

const NODES = ['worker-1', 'worker-2', 'worker-3'] as const;
const [OLDEST, SECOND] = NODES;
/** Its machine comes with the config on its disk, as one does that was set up with it. */
const SET_UP = 'worker-4';
/** Its machine comes with nothing. */
const EMPTY = 'worker-5';
const ALL = [...NODES, SET_UP, EMPTY];
const KEPT_POD = 'cart';

/*
 * The rows of the table in test/workflows/mid-rollout.test.ts that need real plans, disks, boots and node identities. On
 * one lab, in this order; in each the oldest node is done and the next one sits in its drain.
 */
describe('changes in mid-rollout', () => {
  let lab: FleetLab;
  beforeAll(async () => {
    lab = await FleetLab.start(NODES, [SET_UP, EMPTY]);
  });
  afterAll(() => lab.stop());

  /** A new config is everywhere but on the second node, whose drain does not end, and on those whose turn comes later. */
  async function beginTo(contents: string): Promise<void> {
    await lab.addPod(KEPT_POD, SECOND, true);
    await lab.revise(contents);
    await lab.untilUpdated(contents, [OLDEST]);
    await lab.until(`${SECOND} to drain`, async () => (await lab.facts(SECOND)).unschedulable);
    lab.observer.begin();
  }

  /** How often each machine has booted since then. */
  async function rebootsSince(before: Record<string, number>): Promise<Record<string, number>> {
    const now = await lab.boots(ALL);
    return Object.fromEntries(ALL.map((name) => [name, (now[name] ?? 0) - (before[name] ?? 0)]));
  }

  it('nodes added: a machine that has the config already joins without cordon and reboot, an empty one in its turn', async () => {
    const before = await lab.boots(ALL);
    await beginTo('second');
    const file = join(lab.processes.rootOf(SET_UP), FILE);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, 'second', { mode: 0o644 });
    await lab.addNode(SET_UP);
    await lab.addNode(EMPTY);
    await lab.until('the pool to count them', async () => (await lab.pool()).status?.machineCount === ALL.length);
    await lab.removePod(KEPT_POD);
    await lab.untilUpdated('second', ALL);
    expect(await rebootsSince(before)).toEqual({
      'worker-1': 1,
      'worker-2': 1,
      'worker-3': 1,
      [SET_UP]: 0,
      [EMPTY]: 1,
    });
    expect(ALL.map((name) => lab.observer.cordonsOf(name))).toEqual([0, 0, 1, 0, 1]);
    expect(lab.observer.mostTaken).toBe(1);
  });

  it('a node deleted in its drain and recreated with the same name: it is taken up as the machine that it is', async () => {
    const before = await lab.boots(ALL);
    await beginTo('third');
    const { uid } = await lab.facts(SECOND);
    // The machine starts anew, and with it its worker and its kubelet, which makes itself another Node.
    await lab.processes.fleet.kill('SIGKILL');
    await lab.admin.delete(KINDS.node, { name: SECOND });
    await lab.addNode(SECOND);
    await lab.processes.fleet.restart();
    await lab.removePod(KEPT_POD);
    await lab.untilUpdated('third', ALL);
    expect((await lab.facts(SECOND)).uid).not.toBe(uid);
    expect(await rebootsSince(before)).toEqual(Object.fromEntries(ALL.map((name) => [name, 1])));
    expect(lab.observer.mostTaken).toBe(1);
  });

  it('the pool renamed: the nodes follow one by one, what runs the same contents needs no cordon and no reboot', async () => {
    const before = await lab.boots(ALL);
    await beginTo('fourth');
    const { spec } = await lab.pool();
    // Kubernetes renames nothing: there is another pool with the same selectors, and then the first is no more.
    await lab.admin.create(flavour.machineConfigPool, {
      metadata: { name: RENAMED_POOL },
      spec: { nodeSelector: spec.nodeSelector, machineConfigSelector: spec.machineConfigSelector },
    } as KubernetesObject);
    await lab.until('the renamed pool to have a target', async () => (await lab.target(RENAMED_POOL)) !== '');
    await lab.admin.delete(flavour.machineConfigPool, { name: POOL });
    const target = await lab.target(RENAMED_POOL);
    await lab.until(
      'the drain to go on for the renamed pool',
      async () => (await lab.facts(SECOND)).desired === target,
    );
    await lab.removePod(KEPT_POD);
    await lab.untilUpdated('fourth', ALL, RENAMED_POOL);
    expect(await rebootsSince(before)).toEqual(Object.fromEntries(ALL.map((name) => [name, 1])));
    expect(lab.observer.cordonsOf(OLDEST)).toBe(0);
    expect(lab.observer).toMatchObject({ mostTaken: 1, violations: [] });
  });
});
