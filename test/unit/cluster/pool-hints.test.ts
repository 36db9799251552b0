import { describe, expect, it } from 'vitest';
import type { NodeResource, PoolResource } from '../../../activities/cluster/control-dependencies.js';
import {
  hintsOfMachineConfig,
  hintsOfMachineConfiguration,
  hintsOfNode,
  hintsOfPool,
} from '../../../activities/cluster/pool-hints.js';
import { apiFlavour, DRYDOCK_ANNOTATIONS } from '../../../machine-config/api/flavour.js';

const flavour = apiFlavour('openshift');

function pool(name: string, extra: Partial<PoolResource['spec']> = {}): PoolResource {
  return {
    metadata: { name },
    spec: {
      nodeSelector: { matchLabels: { role: name } },
      machineConfigSelector: { matchLabels: { [flavour.roleLabel]: name } },
      ...extra,
    },
  };
}

function node(role: string, extra: Partial<NodeResource> = {}): NodeResource {
  return {
    metadata: { name: 'n1', uid: 'u1', labels: { role } },
    status: { conditions: [{ type: 'Ready', status: 'True' }] },
    ...extra,
  };
}

const POOLS = [pool('worker'), pool('infra')];

describe('hints of a Node', () => {
  it('are none for a heartbeat', () => {
    const before = node('worker');
    const after = { ...before, metadata: { ...before.metadata, resourceVersion: '2' } };
    expect(hintsOfNode({ type: 'MODIFIED', object: after, before }, POOLS, flavour)).toEqual([]);
  });

  it('are none for an annotation of others, and are there for one that people write for a rollout', () => {
    const annotated = (annotations: Record<string, string>) => {
      const made = node('worker');
      return { ...made, metadata: { ...made.metadata, annotations } };
    };
    const hint = (object: NodeResource) =>
      hintsOfNode({ type: 'MODIFIED', object, before: node('worker') }, POOLS, flavour);
    expect(hint(annotated({ 'example.com/heartbeat': '17' }))).toEqual([]);
    expect(hint(annotated({ [DRYDOCK_ANNOTATIONS.hold]: 'a disk' }))).toEqual([{ pool: 'worker', what: 'nodes' }]);
  });

  it('name its pool when it becomes unschedulable or not ready', () => {
    const cordoned = node('worker', { spec: { unschedulable: true } });
    const expected = [{ pool: 'worker', what: 'nodes' }];
    expect(hintsOfNode({ type: 'MODIFIED', object: cordoned, before: node('worker') }, POOLS, flavour)).toEqual(
      expected,
    );
    const down = node('worker', { status: { conditions: [{ type: 'Ready', status: 'Unknown' }] } });
    expect(hintsOfNode({ type: 'MODIFIED', object: down, before: node('worker') }, POOLS, flavour)).toEqual(expected);
  });

  it('are of progress where an update of its own tells how it ends, from the grant to the last step', () => {
    const { desiredConfig } = flavour.annotations;
    const updating = (annotations: Record<string, string>, more: Partial<NodeResource> = {}) => {
      const made = node('worker', more);
      return { ...made, metadata: { ...made.metadata, annotations: { [desiredConfig]: 'new', ...annotations } } };
    };
    const hint = (before: NodeResource, object: NodeResource) =>
      hintsOfNode({ type: 'MODIFIED', object, before }, POOLS, flavour).map(({ what }) => what);
    const cordoned = updating({}, { spec: { unschedulable: true } });
    expect(hint(node('worker'), updating({}))).toEqual(['progress']);
    expect(hint(updating({}), cordoned)).toEqual(['progress']);
    expect(hint(cordoned, node('worker'))).toEqual(['progress']);
    const replaced = { ...cordoned, metadata: { ...cordoned.metadata, uid: 'u2' } };
    expect(hint(cordoned, replaced)).toEqual(['nodes']);
    const moved = { ...cordoned, metadata: { ...cordoned.metadata, labels: { role: 'infra' } } };
    expect(hint(cordoned, moved)).toEqual(['nodes', 'nodes']);
  });

  it('name the old and the new pool when it moves', () => {
    const hints = hintsOfNode({ type: 'MODIFIED', object: node('infra'), before: node('worker') }, POOLS, flavour);
    expect(hints.map(({ pool: name }) => name).sort()).toEqual(['infra', 'worker']);
  });

  it('name its pool when it appears and when it goes', () => {
    const expected = [{ pool: 'worker', what: 'nodes' }];
    expect(hintsOfNode({ type: 'ADDED', object: node('worker'), before: undefined }, POOLS, flavour)).toEqual(expected);
    const gone = node('worker');
    expect(hintsOfNode({ type: 'DELETED', object: gone, before: gone }, POOLS, flavour)).toEqual(expected);
  });
});

describe('hints of a pool', () => {
  it('ask for a render when its wishes change', () => {
    const hints = hintsOfPool({ type: 'MODIFIED', object: pool('worker', { paused: true }), before: pool('worker') });
    expect(hints).toEqual([{ pool: 'worker', what: 'config' }]);
  });

  it('ask for a look at the nodes when only the target changes', () => {
    const object = pool('worker', { configuration: { name: 'rendered-worker-1' } });
    expect(hintsOfPool({ type: 'MODIFIED', object, before: pool('worker') })).toEqual([
      { pool: 'worker', what: 'nodes' },
    ]);
  });

  it('are none for a status or an annotation of ours', () => {
    const object = { ...pool('worker'), status: { machineCount: 3 } };
    expect(hintsOfPool({ type: 'MODIFIED', object, before: pool('worker') })).toEqual([]);
  });
});

describe('hints of a pool that people annotate', () => {
  it.each(['approval', 'resume', 'runNow'] as const)('ask for a look at the nodes when %s changes', (key) => {
    const before = pool('worker');
    const object = { ...before, metadata: { ...before.metadata, annotations: { [DRYDOCK_ANNOTATIONS[key]]: 'x' } } };
    expect(hintsOfPool({ type: 'MODIFIED', object, before })).toEqual([{ pool: 'worker', what: 'nodes' }]);
  });
});

describe('hints of a MachineConfig', () => {
  const config = (role: string, source: string) => ({
    metadata: { name: '50-a', labels: { [flavour.roleLabel]: role } },
    spec: { kernelArguments: [source] },
  });

  it('name the pools that select it, before or after', () => {
    const change = { type: 'MODIFIED' as const, object: config('infra', 'a'), before: config('worker', 'a') };
    expect(hintsOfMachineConfig(change, POOLS).map(({ pool: name }) => name)).toEqual(['worker', 'infra']);
  });

  it('are none when nothing that is rendered has changed', () => {
    const object = { ...config('worker', 'a'), metadata: { ...config('worker', 'a').metadata, resourceVersion: '9' } };
    expect(hintsOfMachineConfig({ type: 'MODIFIED', object, before: config('worker', 'a') }, POOLS)).toEqual([]);
  });

  it('name the owner of a rendered config that was changed or deleted, and not of one that was created', () => {
    const ownerReferences = [
      { apiVersion: 'v1', kind: 'MachineConfigPool', name: 'worker', uid: 'u', controller: true },
    ];
    const rendered = { metadata: { name: 'rendered-worker-1', ownerReferences }, spec: {} };
    expect(hintsOfMachineConfig({ type: 'ADDED', object: rendered, before: undefined }, POOLS)).toEqual([]);
    expect(hintsOfMachineConfig({ type: 'DELETED', object: rendered, before: rendered }, POOLS)).toEqual([
      { pool: 'worker', what: 'config' },
    ]);
  });
});

describe('hints of the MachineConfiguration', () => {
  const configuration = (name: string, logLevel: 'Normal' | 'Debug') => ({ metadata: { name }, spec: { logLevel } });
  const all = [
    { pool: 'worker', what: 'config' },
    { pool: 'infra', what: 'config' },
  ];
  const before = configuration('cluster', 'Normal');

  it('have every pool rendered when it comes, changes or goes', () => {
    const changed = { type: 'MODIFIED', object: configuration('cluster', 'Debug'), before } as const;
    const came = { type: 'ADDED', object: before, before: undefined } as const;
    const went = { type: 'DELETED', object: before, before } as const;
    for (const change of [changed, came, went]) expect(hintsOfMachineConfiguration(change, POOLS)).toEqual(all);
  });

  it('have every rollout look again, and nothing rendered, when everything is stopped or goes on', () => {
    const annotations = { 'drydock.dev/stop': 'storage is on fire' };
    const stopped = { ...before, metadata: { ...before.metadata, annotations } };
    const looks = all.map(({ pool }) => ({ pool, what: 'nodes' }));
    expect(hintsOfMachineConfiguration({ type: 'MODIFIED', object: stopped, before }, POOLS)).toEqual(looks);
    expect(hintsOfMachineConfiguration({ type: 'MODIFIED', object: before, before: stopped }, POOLS)).toEqual(looks);
  });

  it('are none for our own writes of its status, nor for an object of another name', () => {
    const object = { ...before, status: { observedGeneration: 3 } };
    expect(hintsOfMachineConfiguration({ type: 'MODIFIED', object, before }, POOLS)).toEqual([]);
    const other = configuration('other', 'Normal');
    expect(hintsOfMachineConfiguration({ type: 'ADDED', object: other, before: undefined }, POOLS)).toEqual([]);
  });
});
