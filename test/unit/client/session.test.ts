import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { clusterSource } from '../../../client/session.js';
import { ageOf, shortConfig } from '../../../client/table.js';

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'drydock-home-'));
});
afterEach(() => rmSync(home, { recursive: true }));

const file = (name: string): string => {
  const path = join(home, name);
  mkdirSync(join(path, '..'), { recursive: true });
  writeFileSync(path, '');
  return path;
};

test('the cluster is the one that is named first: option, own variable, KUBECONFIG, the usual file, the pod', () => {
  const [one, two] = [file('one'), file('two')];
  const usual = file('.kube/config');
  const pod = { KUBERNETES_SERVICE_HOST: '10.0.0.1', KUBERNETES_SERVICE_PORT: '443' };
  const all = { ...pod, KUBECONFIG: [one, join(home, 'missing'), two].join(delimiter), DRYDOCK_KUBECONFIG: '/own' };
  expect(clusterSource({ kubeconfig: '/given', context: 'c' }, all, home)).toEqual({
    kubeconfigPath: '/given',
    context: 'c',
  });
  expect(clusterSource({}, all, home)).toEqual({ kubeconfigPath: '/own' });
  expect(clusterSource({}, { ...all, DRYDOCK_KUBECONFIG: '' }, home)).toEqual({ kubeconfigPath: [one, two] });
  expect(clusterSource({}, pod, home)).toEqual({ kubeconfigPath: usual });
  rmSync(usual);
  expect(clusterSource({}, pod, home)).toEqual({ inCluster: true, host: '10.0.0.1', port: '443' });
});

test('a KUBECONFIG that leads nowhere does not fall back to another cluster', () => {
  file('.kube/config');
  expect(() => clusterSource({}, { KUBECONFIG: '/nowhere' }, home)).toThrow('no cluster: KUBECONFIG (/nowhere)');
  expect(() => clusterSource({}, {}, join(home, 'empty'))).toThrow(/name one with --kubeconfig FILE$/);
});

test.each([
  [0, '0s'],
  [119, '119s'],
  [120, '2m'],
  [7199, '119m'],
  [7200, '2h'],
  [172_799, '47h'],
  [172_800, '2d'],
  [-5, '0s'],
])('an age of %i seconds is %s', (seconds, age) => {
  const now = new Date('2026-11-30T12:00:00Z');
  expect(ageOf(new Date(now.getTime() - seconds * 1000).toISOString(), now)).toBe(age);
});

test('only the names of rendered configs are shortened', () => {
  expect(shortConfig(`rendered-gpu-pool-${'0'.repeat(32)}`)).toBe('rendered-gpu-pool-00000000');
  expect(shortConfig('drydock-empty')).toBe('drydock-empty');
  expect(shortConfig(null)).toBe('');
});
