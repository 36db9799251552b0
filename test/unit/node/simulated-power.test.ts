import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { NodeActivities } from '../../../workflows/contract/activities.js';
import { EnvironmentError, NODE_SETTINGS, parseEnvironment } from '../../../workers/config.js';
import { Power } from '../../../workers/simulated-power.js';
import { PATIENCE } from '../../support/patience.js';

const STEP = { cluster: 'c', pool: 'p', node: 'n', nodeUid: 'u' };

describe('the power of a simulated machine', () => {
  it('lets nothing end that runs when it goes off, and nothing begin afterwards', async () => {
    let begun = 0;
    let finish: () => void = () => undefined;
    let taken = 0;
    const power = new Power(() => taken++);
    const release = () => {
      begun++;
      return new Promise<{ uncordoned: boolean }>((resolve) => (finish = () => resolve({ uncordoned: true })));
    };
    const activities = power.activities({ release } as unknown as NodeActivities);
    const running = activities.release(STEP);
    const ended: string[] = [];
    void running.finally(() => ended.push('running'));
    await expect.poll(() => begun, PATIENCE).toBe(1);
    power.turnOff();
    finish();
    void activities.release(STEP).finally(() => ended.push('later'));
    await sleep(20);
    expect({ begun, taken, ended }).toEqual({ begun: 1, taken: 1, ended: [] });
  });
});

describe('the environment of a node worker', () => {
  it('names every variable that is missing or wrong at once', () => {
    const read = () => parseEnvironment(NODE_SETTINGS, { DRYDOCK_NODE_NAME: 'n1', DRYDOCK_ROOT: 'relative' });
    expect(read).toThrow(EnvironmentError);
    expect(read).toThrow(/DRYDOCK_CLUSTER_UID .*is not set/);
    expect(read).toThrow(/DRYDOCK_ROOT /);
    expect(read).not.toThrow(/DRYDOCK_NODE_NAME/);
  });

  it('fills in defaults, and takes an empty variable as unset', () => {
    const environment = {
      DRYDOCK_NODE_NAME: 'n1',
      DRYDOCK_KUBECONFIG: '/k',
      DRYDOCK_CLUSTER_UID: 'u',
      DRYDOCK_ROOT: '',
    };
    expect(parseEnvironment(NODE_SETTINGS, environment)).toMatchObject({ node: 'n1', nodeKubeconfig: '/k', root: '/' });
  });
});
