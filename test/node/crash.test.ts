import { beforeAll, expect, test } from 'vitest';
import { startMachines, type Machine } from '../../dev/real-nodes/real-node.js';
import { MachineUnderTest } from '../support/machine-under-test.js';
import { describeRealNodes, treeDifferences, treeOf, useLab, type Tree } from '../support/real-node.js';
import { NEW_CONFIG, OLD_CONFIG, ORIGINAL_FILES } from './crash-configs.js';

/*
 * All or nothing, on a real machine: the change is cut at every step, at random instants, and by the loss of the
 * machine's power, and the disk is compared from outside, byte for byte, with modes, owners and link targets.
 */

/** Drydock's own memory: its journal and lock come and go, what it records must be one with the disk. */
const NOT_COMPARED = ['/var/lib/drydock/lock', '/var/lib/drydock/blobs', '/var/lib/drydock/journal.json'];
const RANDOM_KILLS = 25;
const POWER_LOSSES = 4;

describeRealNodes('a change of a real machine that is cut short', () => {
  const lab = useLab({ temporal: false, kubernetes: false });
  let machine: MachineUnderTest;
  let steps = 0;
  let old: Tree;
  let next: Tree;
  const look = () => treeOf(machine, { except: NOT_COMPARED });

  beforeAll(async () => {
    const [started] = await startMachines(lab(), [{ name: 'crash' }]);
    machine = await MachineUnderTest.prepare(lab(), started as Machine);
    for (const [path, contents] of ORIGINAL_FILES) await machine.write(path, contents);
    await machine.apply(OLD_CONFIG);
    old = await look();
    await machine.succeed(['systemctl', 'start', 'leaving.service']);
    const applied = await machine.apply(NEW_CONFIG);
    // Otherwise no service would be touched, and none could be left as it should not be.
    expect(applied.cost).toBe('services');
    steps = applied.steps;
    next = await look();
    expect(treeDifferences(old, next).length).toBeGreaterThan(10);
    await machine.apply(OLD_CONFIG);
    expect(treeDifferences(old, await look())).toEqual([]);
  }, 600_000);

  /** The whole old or the whole new state, after the next start has looked at it; back to the old one for the next cut. */
  async function expectWhole(): Promise<'old' | 'new'> {
    await machine.drive({ do: 'recover' });
    const now = await look();
    const [fromOld, fromNew] = [treeDifferences(old, now), treeDifferences(next, now)];
    expect(fromOld.length === 0 ? [] : fromNew).toEqual([]);
    expect(await machine.drift()).toEqual([]);
    if (fromOld.length === 0) return 'old';
    await machine.apply(OLD_CONFIG);
    expect(treeDifferences(old, await look())).toEqual([]);
    return 'new';
  }

  test('is whole when its process is killed at any step', async () => {
    expect(steps).toBeGreaterThan(15);
    await machine.succeed(['systemctl', 'start', 'leaving.service']);
    const ends: string[] = [];
    for (let step = 0; step < steps; step += 1) {
      const { code } = await machine.drive({ do: 'apply', target: NEW_CONFIG, dieAt: step });
      expect(code).toBe(137);
      ends.push(await expectWhole());
      await expectServicesAsBefore(`after a death at step ${step} of ${steps}`);
    }
    expect(new Set(ends)).toEqual(new Set(['old']));
  }, 1_200_000);

  test('is put back when any step fails, and says which', async () => {
    await machine.succeed(['systemctl', 'start', 'leaving.service']);
    await expectServicesAsBefore('before the first failure');
    for (let step = 0; step < steps; step += 1) {
      const { answers } = await machine.drive({ do: 'apply', target: NEW_CONFIG, failAt: step });
      expect(answers.at(-1)).toMatchObject({ error: expect.stringContaining('failed on purpose') as string });
      expect(treeDifferences(old, await look())).toEqual([]);
      await expectServicesAsBefore(`after ${JSON.stringify(answers.at(-1))}`);
    }
  }, 1_200_000);

  /** What the update acts upon runs with the old files again. */
  async function expectServicesAsBefore(when: string): Promise<void> {
    const properties = ['ActiveState', 'Environment'].map((name) => `--property=${name}`);
    const shown = await machine.succeed(['systemctl', 'show', ...properties, 'clock.service', 'leaving.service']);
    const lines = shown.split('\n').filter((line) => line !== '');
    const wanted = ['Environment=MODE=old', 'ActiveState=active', 'Environment=', 'ActiveState=active'];
    if (lines.join() !== wanted.join()) expect(lines, `${when}\n${await whatBefellThem()}`).toEqual(wanted);
  }

  /** As systemd tells it, for a failure that does not come again. */
  async function whatBefellThem(): Promise<string> {
    const outcome = ['Result', 'ExecMainCode', 'ExecMainStatus', 'NRestarts'].map((name) => `--property=${name}`);
    const units = ['clock.service', 'leaving.service'];
    const journal = ['--no-pager', '--output=short-precise', '--lines=40'];
    return [
      await machine.succeed(['systemctl', 'show', ...outcome, ...units]),
      await machine.succeed(['journalctl', ...journal, ...units.map((unit) => `--unit=${unit}`)]),
    ].join('\n');
  }

  test('is whole when its process is killed at random instants', async () => {
    const timing = performance.now();
    await machine.apply(NEW_CONFIG);
    const whole = performance.now() - timing;
    await machine.apply(OLD_CONFIG);
    const ends = { old: 0, new: 0 };
    for (let kill = 0; kill < RANDOM_KILLS; kill += 1) {
      await machine.driveAndKill({ do: 'apply', target: NEW_CONFIG }, Math.random() * whole * 1.1);
      ends[await expectWhole()] += 1;
    }
    expect(ends.old).toBeGreaterThan(0);
  }, 1_200_000);

  test('is whole when the machine loses its power in the middle', async () => {
    for (let loss = 0; loss < POWER_LOSSES; loss += 1) {
      const step = Math.floor(((loss + 0.5) * steps) / POWER_LOSSES);
      const held = await machine.driveAndHold({ do: 'apply', target: NEW_CONFIG, holdAt: step });
      await machine.machine.powerLoss();
      await held.ended;
      await machine.machine.powerOn();
      await machine.machine.waitUntilUp();
      expect(await expectWhole()).toBe('old');
    }
  }, 600_000);
});

describeRealNodes('a machine whose disk is full', () => {
  const lab = useLab({ temporal: false, kubernetes: false });

  test('refuses an update for which there is no room, and survives one that fills the disk half-way', async () => {
    const [started] = await startMachines(lab(), [{ name: 'full', diskMebibytes: 700 }]);
    const machine = await MachineUnderTest.prepare(lab(), started as Machine);
    await machine.apply(OLD_CONFIG);
    const before = await treeOf(machine, { except: NOT_COMPARED });

    await machine.fill(8);
    const refused = await machine.drive({ do: 'apply', target: NEW_CONFIG });
    expect(refused.answers.at(-1)).toMatchObject({ error: expect.stringMatching(/no room.*MiB/) as string });
    await machine.unfill();
    expect(treeDifferences(before, await treeOf(machine, { except: NOT_COMPARED }))).toEqual([]);

    const held = await machine.driveAndHold({ do: 'apply', target: NEW_CONFIG, holdAt: 4 });
    await machine.fill(0);
    await held.goOn();
    expect(await held.ended).toMatchObject({
      answers: [{ error: expect.stringMatching(/ENOSPC/) as string }],
    });
    await machine.unfill();
    await machine.drive({ do: 'recover' });
    expect(treeDifferences(before, await treeOf(machine, { except: NOT_COMPARED }))).toEqual([]);
  }, 600_000);
});
