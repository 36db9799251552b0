import { beforeEach, describe, expect, it } from 'vitest';
import type { KubernetesObject } from '../../../activities/kubernetes/client.js';
import { KINDS } from '../../../activities/kubernetes/client.js';
import { Gates } from '../../../activities/cluster/gates.js';
import type { Gate } from '../../../machine-config/api/rollout-policy.js';
import type { NodeFacts } from '../../../machine-config/pool/facts.js';
import { FakeCluster } from '../../support/fake-cluster.js';
import { makeNode, NOW } from '../pool/make-node.js';

let cluster: FakeCluster;
let now: number;
let gates: Gates;
let calls: string[];

beforeEach(() => {
  cluster = new FakeCluster();
  now = NOW;
  calls = [];
  cluster.intercept(
    ({ verb, resource, name }) => void calls.push([verb, resource.kind, name].filter(Boolean).join(' ')),
  );
  gates = new Gates({ client: cluster, now: () => now }, { timeoutMilliseconds: 200 });
});

async function ask(gate: Omit<Gate, 'name'>, nodes: NodeFacts[] = []) {
  const question = {
    id: 'q',
    gate: { name: 'it', ...gate },
    place: 'betweenNodes',
    nodes: nodes.map(({ name }) => name),
  };
  return (await gates.answer([question as never], nodes))['q'];
}
const refused = (words: string) => ({ passed: false, sentence: expect.stringContaining(words) as string });

function deploy(name: string, replicas: number, available: number): void {
  cluster.add(KINDS.deployment, {
    metadata: { name, namespace: 'shop', labels: { app: 'shop' } },
    spec: { replicas },
    status: { availableReplicas: available, observedGeneration: 1 },
  } as KubernetesObject);
}

const AVAILABLE = { available: { namespace: 'shop', selector: { matchLabels: { app: 'shop' } } } };
const NODE = { apiVersion: 'v1', kind: 'Node', type: 'Ready' };

describe('gates', () => {
  it('wait for Deployments by selector, at least one', async () => {
    expect(await ask(AVAILABLE)).toMatchObject(refused('there is no Deployment with app=shop'));
    now += 60_000;
    deploy('cart', 2, 2);
    deploy('till', 2, 1);
    expect(await ask(AVAILABLE)).toMatchObject(refused('shop/till has 1 of 2 replicas available'));
    now += 60_000;
    await cluster.patch(
      KINDS.deployment,
      { name: 'till', namespace: 'shop' },
      { status: { availableReplicas: 2 } },
      'status',
    );
    expect(await ask(AVAILABLE)).toMatchObject({ passed: true });
  });

  it('wait for a condition of any kind of object, by name or by selector', async () => {
    const labels = { tier: 'front' };
    const status = { conditions: [{ type: 'Ready', status: 'True' }] };
    cluster.add(KINDS.node, { metadata: { name: 'a', labels }, status } as KubernetesObject);
    expect(await ask({ condition: { ...NODE, name: 'a' } })).toMatchObject({ passed: true });
    expect(await ask({ condition: { ...NODE, name: 'b' } })).toMatchObject(refused('there is no Node b'));
    const selector = { matchExpressions: [{ key: 'tier', operator: 'In' as const, values: ['front', 'back'] }] };
    expect(await ask({ condition: { ...NODE, selector } })).toMatchObject({ passed: true });
    cluster.add(KINDS.node, { metadata: { name: 'c', labels } });
    now += 60_000;
    expect(await ask({ condition: { ...NODE, selector } })).toMatchObject(refused('(c: no such condition)'));
  });

  it('wait when the kind is not known, the selector empty or the namespace missing', async () => {
    const widget = { apiVersion: 'example.com/v1', kind: 'Widget', type: 'Ready', name: 'a' };
    expect(await ask({ condition: widget })).toMatchObject(refused('knows no Widget of example.com/v1'));
    expect(await ask({ condition: { ...NODE, selector: {} } })).toMatchObject(refused('selects nothing'));
    expect(await ask({ available: { selector: {} } })).toMatchObject(refused('selects nothing'));
    expect(await ask({ condition: { apiVersion: 'v1', kind: 'Pod', type: 'Ready', name: 'a' } })).toMatchObject(
      refused('Pod a needs a namespace'),
    );
  });

  it('wait until what owns the evicted pods has all its replicas; what is gone or not known needs none', async () => {
    const evictedOwners = ['shop/ReplicaSet/cart-1', 'shop/StatefulSet/db', 'shop/Widget/x', 'shop/Job/gone'];
    const node = makeNode('a', { evictedOwners });
    const owner = (available: number) => ({
      spec: { replicas: 2 },
      status: { availableReplicas: available, observedGeneration: 1 },
    });
    cluster.add(KINDS.replicaSet, { metadata: { name: 'cart-1', namespace: 'shop' }, ...owner(1) });
    cluster.add(KINDS.statefulSet, { metadata: { name: 'db', namespace: 'shop' }, ...owner(2) });
    expect(await ask({ podsRescheduled: {} }, [node])).toMatchObject(
      refused('ReplicaSet shop/cart-1 has 1 of 2 replicas available'),
    );
    now += 60_000;
    const name = { name: 'cart-1', namespace: 'shop' };
    await cluster.patch(KINDS.replicaSet, name, { status: { availableReplicas: 2 } }, 'status');
    expect(await ask({ podsRescheduled: {} }, [node])).toMatchObject({ passed: true });
    expect(await ask({ podsRescheduled: {} }, [makeNode('b')])).toMatchObject({ passed: true });
  });

  it('tell until when a node has to be Ready', async () => {
    const node = makeNode('a', { readinessSince: NOW - 10_000 });
    expect(await ask({ nodeReady: { for: '30s' } }, [node])).toMatchObject({ passed: false, until: NOW + 20_000 });
    now += 20_000;
    expect(await ask({ nodeReady: { for: '30s' } }, [node])).toMatchObject({ passed: true });
  });

  it('that cannot be asked wait, with the reason, and are asked again', async () => {
    deploy('cart', 1, 1);
    cluster.failNext({ verb: 'list', kind: 'Deployment' });
    expect(await ask(AVAILABLE)).toMatchObject(refused('injected fault'));
    now += 60_000;
    expect(await ask(AVAILABLE)).toMatchObject({ passed: true });
  });

  it('whose source does not answer in time wait', async () => {
    cluster.latencyMs = 2_000;
    expect(await ask(AVAILABLE)).toMatchObject(refused('no answer within 0.2 s'));
  });

  it('are asked once in several seconds, whoever asks', async () => {
    deploy('cart', 1, 1);
    for (let turn = 0; turn < 5; turn += 1) {
      await ask(AVAILABLE);
      now += 1_000;
    }
    expect(calls).toEqual(['list Deployment']);
    now += 5_000;
    await ask(AVAILABLE);
    expect(calls).toHaveLength(2);
  });
});
