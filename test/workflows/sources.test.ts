import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PoolResource } from '../../activities/cluster/control-dependencies.js';
import { GENERATED_FINALIZER } from '../../activities/cluster/mark-source.js';
import type { SourceResource } from '../../activities/cluster/source.js';
import type { KubernetesObject } from '../../activities/kubernetes/client.js';
import type { KubeletConfig } from '../../machine-config/api/kubelet-config.js';
import { manageSourcesId } from '../../workflows/contract/ids.js';
import { flavour, until, WorkflowLab } from '../support/workflow-lab.js';

let lab: WorkflowLab;
beforeAll(async () => {
  // Few, so that the workflow continues as new several times in what follows.
  lab = await WorkflowLab.start({ maxEvents: 30 });
});
afterAll(() => lab.stop());

const manager = () => lab.environment.client.workflow.getHandle(manageSourcesId('KubeletConfig'));
const details = async () =>
  (await manager().query<{ currentDetails?: string }>('__temporal_workflow_metadata')).currentDetails ?? '';
const add = (name: string, pool: string, fields: object) =>
  lab.cluster.add<KubernetesObject & KubeletConfig>(flavour.kubeletConfig, {
    metadata: { name },
    spec: {
      machineConfigPoolSelector: { matchLabels: { pool } },
      kubeletConfig: fields as Record<string, unknown>,
    },
  });
const generation = (name: string) =>
  lab.cluster.peek<SourceResource>(flavour.kubeletConfig, name)?.status?.observedGeneration;

/** What the pool's target was rendered from. */
const sourcesOf = (pool: string) => (lab.pool(pool).spec.configuration?.source ?? []).map(({ name }) => name ?? '');

async function poolWithNode(pool: string) {
  const { nodes } = await lab.addSettledPool(pool, 1);
  await lab.cluster.patch<PoolResource>(lab.pools, { name: pool }, { metadata: { labels: { pool } } });
  return nodes;
}

describe('the workflow of a kind of sources', () => {
  it('is not there as long as nobody uses the kind, generates, tells what, and goes on over many changes', async () => {
    const nodes = await poolWithNode('generated');
    await expect(manager().describe()).rejects.toThrow();

    add('limits', 'generated', { maxPods: 1 });
    const name = '99-generated-generated-kubelet';
    await until('the config', () => lab.cluster.peek(flavour.machineConfig, name) !== undefined);
    await until('a render with it', () => sourcesOf('generated').includes(name));
    await lab.untilUpdated('generated', nodes);
    await until('the details', async () => (await details()) === `Generated: ${name}`);

    add('wrong', 'generated', { maxPods: 'many' });
    await until('the refusal', async () => /Refused: wrong: spec\.kubeletConfig\.maxPods: /.test(await details()));

    const { runId } = await manager().describe();
    for (let maxPods = 2; maxPods <= 8; maxPods += 1) {
      const changed = await lab.cluster.patch(
        flavour.kubeletConfig,
        { name: 'limits' },
        { spec: { kubeletConfig: { maxPods } } },
      );
      await until(`${maxPods} to be seen`, () => generation('limits') === changed.metadata.generation);
    }
    expect((await manager().describe()).runId).not.toBe(runId);
    expect((await manager().describe()).status.name).toBe('RUNNING');
    await lab.untilUpdated('generated', nodes);
  });

  it('ends what it generated with the object', async () => {
    const nodes = await poolWithNode('ended');
    add('short', 'ended', { maxPods: 1 });
    const name = '99-ended-generated-kubelet';
    await until('the config', () => lab.cluster.peek(flavour.machineConfig, name) !== undefined);
    await until('the mark', () =>
      (lab.cluster.peek<SourceResource>(flavour.kubeletConfig, 'short')?.metadata.finalizers ?? []).includes(
        GENERATED_FINALIZER,
      ),
    );
    await lab.cluster.delete(flavour.kubeletConfig, { name: 'short' });
    await until('both to be gone', () =>
      [lab.cluster.peek(flavour.kubeletConfig, 'short'), lab.cluster.peek(flavour.machineConfig, name)].every(
        (each) => each === undefined,
      ),
    );
    await until('a render without it', () => !sourcesOf('ended').includes(name));
    await lab.untilUpdated('ended', nodes);
  });
});
