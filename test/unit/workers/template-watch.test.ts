import { pino } from 'pino';
import { afterEach, expect, test, vi } from 'vitest';
import { KINDS, type KubernetesObject } from '../../../activities/kubernetes/client.js';
import type { TemplatesSource } from '../../../machine-config/api/controller-config.js';
import { watchTemplates } from '../../../workers/template-watch.js';
import { FakeCluster } from '../../support/fake-cluster.js';
import { PATIENCE } from '../../support/patience.js';

const NAME = { namespace: 'drydock', name: 'templates' };
let stop: () => void = () => undefined;
afterEach(() => stop());

function watching(source: () => TemplatesSource | undefined) {
  const cluster = new FakeCluster();
  cluster.add(KINDS.configMap, { metadata: NAME, data: { a: '1' } } as KubernetesObject);
  let looks = 0;
  let told = 0;
  cluster.failNext({ verb: 'get', kind: 'ConfigMap' });
  const watch = watchTemplates({
    client: cluster,
    source: () => {
      looks += 1;
      return source();
    },
    onChange: () => (told += 1),
    logger: pino({ level: 'silent' }),
    everyMs: 2,
  });
  stop = () => watch.stop();
  const untilLookedAgain = async () => {
    const until = looks + 3;
    await vi.waitFor(() => expect(looks).toBeGreaterThan(until), PATIENCE);
  };
  return { cluster, untilLookedAgain, told: () => told };
}

test('a source is told of once it is first seen, since it may have changed after it was read, and then at each change', async () => {
  const { cluster, untilLookedAgain, told } = watching(() => ({ source: 'configMap', configMap: NAME }));
  await vi.waitFor(() => expect(told()).toBe(1), PATIENCE);
  await untilLookedAgain();
  expect(told()).toBe(1);
  await cluster.patch(KINDS.configMap, NAME, { data: { a: '2' } });
  await vi.waitFor(() => expect(told()).toBe(2), PATIENCE);
});

test('what comes with the program is not looked at', async () => {
  const { untilLookedAgain, told } = watching(() => ({ source: 'builtin', version: 'v1' }));
  await untilLookedAgain();
  expect(told()).toBe(0);
});
