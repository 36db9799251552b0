import { beforeEach, describe, expect, it } from 'vitest';
import { collectRendered } from '../../../activities/cluster/collect-rendered.js';
import type {
  MachineConfigResource,
  NodeResource,
  PoolResource,
} from '../../../activities/cluster/control-dependencies.js';
import { KINDS } from '../../../activities/kubernetes/client.js';
import { DRYDOCK_ANNOTATIONS } from '../../../machine-config/api/flavour.js';
import { CLUSTER, FakeControl, POOL } from './fake-control.js';

const NAMES = 'abcdef'.split('').map((digit) => `rendered-${POOL}-${digit.repeat(32)}`);
const [A = '', B = '', C = '', D = '', E = '', F = ''] = NAMES;

let control: FakeControl;
const collect = () => collectRendered(control.dependencies, { cluster: CLUSTER, pool: POOL });
const left = async () =>
  (await control.cluster.list<MachineConfigResource>(control.flavour.machineConfig))
    .map(({ metadata }) => metadata.name)
    .sort();

function keep(keepRenderedConfigs: number): void {
  control.cluster.add(control.flavour.controllerConfig, {
    metadata: { name: 'machine-config-controller' },
    spec: { keepRenderedConfigs },
  } as never);
}

beforeEach(async () => {
  control = new FakeControl();
  control.addPool({ configuration: { name: F } });
  const { uid } = control.cluster.peek<PoolResource>(control.flavour.machineConfigPool, POOL)!.metadata;
  for (const [day, name] of NAMES.entries()) {
    control.cluster.add<MachineConfigResource>(control.flavour.machineConfig, {
      metadata: {
        name,
        creationTimestamp: `2026-02-0${day + 1}T00:00:00Z`,
        ownerReferences: [{ apiVersion: 'x/v1', kind: 'MachineConfigPool', name: POOL, uid, controller: true }],
      },
      spec: {},
    });
  }
  await Promise.resolve();
});

describe('collecting rendered configs', () => {
  it('deletes those that nothing names, and keeps as many of the newest as the ControllerConfig says', async () => {
    keep(2);
    expect(await collect()).toEqual({ deleted: 3 });
    expect(await left()).toEqual([D, E, F]);
    expect(await collect()).toEqual({ deleted: 0 });
  });

  it('keeps ten where nobody says anything', async () => {
    expect(await collect()).toEqual({ deleted: 0 });
    expect(await left()).toEqual(NAMES);
  });

  it.each<[string, (name: string) => Record<string, string>]>([
    ['runs', (name) => ({ 'machineconfiguration.openshift.io/currentConfig': name })],
    ['was granted', (name) => ({ 'machineconfiguration.openshift.io/desiredConfig': name })],
    ['applies', (name) => ({ [DRYDOCK_ANNOTATIONS.applying]: name })],
    ['was last brought to', (name) => ({ [DRYDOCK_ANNOTATIONS.lastUpdate]: JSON.stringify({ target: name }) })],
    ['failed to reach', (name) => ({ [DRYDOCK_ANNOTATIONS.failure]: JSON.stringify({ target: name, attempts: 1 }) })],
  ])('keeps one that a Node %s', async (_, annotations) => {
    keep(0);
    control.cluster.add<NodeResource>(KINDS.node, { metadata: { name: 'n', annotations: annotations(B) } });
    expect(await collect()).toEqual({ deleted: 4 });
    expect(await left()).toEqual([B, F]);
  });

  it('keeps those that the pool was rolled out to, goes back from, or has in its history', async () => {
    keep(0);
    const pool = control.flavour.machineConfigPool;
    await control.cluster.patch(
      pool,
      { name: POOL },
      { metadata: { annotations: { [DRYDOCK_ANNOTATIONS.rolledBackFrom]: E } } },
    );
    const rollouts = [
      { target: C, from: B, startedAt: '2026-02-01T00:00:00Z', outcome: 'Completed', updated: 1, failed: 0 },
    ];
    await control.cluster.patch(pool, { name: POOL }, { status: { configuration: { name: D }, rollouts } }, 'status');
    expect(await collect()).toEqual({ deleted: 1 });
    expect(await left()).toEqual([B, C, D, E, F]);
  });

  it('deletes none that the pool does not own', async () => {
    keep(0);
    await control.cluster.patch(control.flavour.machineConfig, { name: A }, { metadata: { ownerReferences: null } });
    await collect();
    expect(await left()).toEqual([A, F]);
  });

  it('leaves a pool alone that is gone, and is not for another cluster', async () => {
    await control.cluster.delete(control.flavour.machineConfigPool, { name: POOL });
    expect(await collect()).toEqual({ deleted: 0 });
    await expect(collectRendered(control.dependencies, { cluster: 'another', pool: POOL })).rejects.toMatchObject({
      type: 'WrongCluster',
    });
  });
});
