import { beforeEach, describe, expect, test } from 'vitest';
import { KINDS, type KubernetesObject } from '../../../activities/kubernetes/client.js';
import { apiFlavour, DRYDOCK_ANNOTATIONS } from '../../../machine-config/api/flavour.js';
import { FakeTerminal } from '../../support/command-run.js';

const flavour = apiFlavour('openshift');
const OLD = `rendered-worker-${'a'.repeat(32)}`;
const NEW = `rendered-worker-${'b'.repeat(32)}`;
const NEWER = `rendered-worker-${'c'.repeat(32)}`;
const STAGES = [
  { name: 'canary', count: 1, approval: 'Required' },
  { name: 'wide', percent: '50%' },
  { name: 'last', approval: 'Required' },
];

let terminal: FakeTerminal;
beforeEach(() => (terminal = new FakeTerminal()));

interface PoolState {
  readonly rollout?: object;
  readonly target?: string;
  readonly paused?: boolean;
  readonly maxUnavailable?: number;
  readonly annotations?: Record<string, string>;
}

function addPool({ annotations = {}, target = NEW, ...spec }: PoolState = {}): void {
  terminal.cluster.add(flavour.machineConfigPool, {
    metadata: { name: 'worker', annotations },
    spec: {
      nodeSelector: { matchLabels: { 'node-role.kubernetes.io/worker': '' } },
      ...(target === '' ? {} : { configuration: { name: target } }),
      ...spec,
    },
    status: { configuration: { name: OLD }, observedGeneration: 1 },
  } as KubernetesObject);
}

interface NodeState {
  readonly current?: string;
  readonly annotations?: Record<string, string>;
  readonly unschedulable?: boolean;
  readonly state?: string;
}

function addNode(
  name: string,
  { current = OLD, annotations = {}, unschedulable, state = 'Done' }: NodeState = {},
): void {
  const { annotations: keys } = flavour;
  terminal.cluster.add(KINDS.node, {
    metadata: {
      name,
      labels: { 'node-role.kubernetes.io/worker': '' },
      annotations: {
        [keys.currentConfig]: current,
        [keys.desiredConfig]: current,
        [keys.state]: state,
        [DRYDOCK_ANNOTATIONS.worker]: '0.1.0',
        ...annotations,
      },
    },
    spec: unschedulable ? { unschedulable } : {},
    status: { conditions: [{ type: 'Ready', status: 'True' }] },
  } as KubernetesObject);
}

const failure = (attempts: number, at = '2026-11-30T11:00:00.000Z') => ({
  [DRYDOCK_ANNOTATIONS.failure]: JSON.stringify({ target: NEW, attempts, at, code: 'ApplyFailed' }),
});

type WithSpec = KubernetesObject & { spec?: { unschedulable?: boolean } };
const poolSays = (key: keyof typeof DRYDOCK_ANNOTATIONS) =>
  terminal.cluster.peek(flavour.machineConfigPool, 'worker')?.metadata.annotations?.[DRYDOCK_ANNOTATIONS[key]];
const nodeSays = (name: string, key: keyof typeof DRYDOCK_ANNOTATIONS) =>
  terminal.cluster.peek(KINDS.node, name)?.metadata.annotations?.[DRYDOCK_ANNOTATIONS[key]];
const isCordoned = (name: string) => terminal.cluster.peek<WithSpec>(KINDS.node, name)?.spec?.unschedulable === true;
const approval = (config: string, ...stages: string[]) => ({
  [DRYDOCK_ANNOTATIONS.approval]: JSON.stringify({ config, stages }),
  [DRYDOCK_ANNOTATIONS.approvedBy]: 'alice',
});

describe('rollout approve', () => {
  beforeEach(() => {
    for (const name of ['w-1', 'w-2', 'w-3', 'w-4']) addNode(name);
  });

  test('approves the stage that waits, for the config of the pool, as the user of the API server', async () => {
    addPool({ rollout: { stages: STAGES } });
    const { code, out, err } = await terminal.run('rollout', 'approve', 'worker');
    expect([code, err]).toEqual([0, '']);
    expect(out).toContain(`worker: stage canary is approved for ${NEW} by admin`);
    expect(JSON.parse(poolSays('approval') ?? '')).toEqual({ config: NEW, stages: ['canary'] });
    expect(poolSays('approvedBy')).toBe('admin');
  });

  test('a later stage beforehand, beside what is approved; twice like once', async () => {
    addPool({ rollout: { stages: STAGES }, annotations: approval(NEW, 'canary') });
    await terminal.run('rollout', 'approve', 'worker', '--stage', 'last');
    expect(JSON.parse(poolSays('approval') ?? '')).toEqual({ config: NEW, stages: ['canary', 'last'] });
    const { code, out } = await terminal.run('rollout', 'approve', 'worker', '--stage', 'last', '-o', 'json');
    expect([code, JSON.parse(out)]).toMatchObject([0, { pool: 'worker', stage: 'last', config: NEW, changed: false }]);
  });

  test('what was approved of another config counts for nothing', async () => {
    addPool({ rollout: { stages: STAGES }, annotations: approval(OLD, 'canary', 'last') });
    await terminal.run('rollout', 'approve', 'worker');
    expect(JSON.parse(poolSays('approval') ?? '')).toEqual({ config: NEW, stages: ['canary'] });
  });

  test.each([
    [['--stage', 'nope'], 'pool worker has no stage nope in spec.rollout.stages: there are canary, wide, last'],
    [['--stage', 'wide'], 'stage wide of pool worker needs no approval; those that do: canary, last'],
    [[], `nothing of pool worker waits for an approval: approved for ${NEW}: canary; approve a later stage`],
  ])('refuses %j and writes nothing', async (words, why) => {
    addPool({ rollout: { stages: STAGES }, annotations: approval(NEW, 'canary') });
    const { code, out, err } = await terminal.run('rollout', 'approve', 'worker', ...words);
    expect([code, out, err]).toEqual([1, '', expect.stringContaining(why)]);
    expect(poolSays('approval')).toBe(JSON.stringify({ config: NEW, stages: ['canary'] }));
  });

  test('refuses where nothing asks for one, and where nothing is rendered', async () => {
    addPool({ target: '', rollout: { stages: STAGES } });
    expect((await terminal.run('rollout', 'approve', 'worker')).err).toContain('nothing is rendered for pool worker');
    terminal = new FakeTerminal();
    addPool();
    expect((await terminal.run('rollout', 'approve', 'worker')).err).toContain('none of its stages asks for one');
  });

  test('is decided again when the pool is written meanwhile, and not for a config that nobody looked at', async () => {
    addPool({ rollout: { stages: STAGES } });
    const write = async (patch: object) => {
      let isFirst = true;
      const stop = terminal.cluster.intercept(async (call) => {
        if (!isFirst || call.verb !== 'patch' || call.identity !== 'admin') return;
        isFirst = false;
        await terminal.cluster.as('control').patch(flavour.machineConfigPool, { name: 'worker' }, patch);
      });
      const ran = await terminal.run('rollout', 'approve', 'worker');
      stop();
      return ran;
    };
    expect(await write({ spec: { configuration: { name: NEWER } } })).toMatchObject({
      code: 1,
      err: expect.stringContaining(`wants ${NEWER} by now, no longer ${NEW}`) as string,
    });
    expect(poolSays('approval')).toBeUndefined();
    expect(await write({ metadata: { annotations: { [DRYDOCK_ANNOTATIONS.lastGrant]: '{}' } } })).toMatchObject({
      code: 0,
    });
    expect(JSON.parse(poolSays('approval') ?? '')).toEqual({ config: NEWER, stages: ['canary'] });
  });
});

describe('rollout resume', () => {
  test('forgets what failed in a rollout that has halted, also by a clock that is ahead', async () => {
    addPool();
    addNode('w-1', { state: 'Degraded', annotations: failure(3, '2026-11-30T12:05:00.000Z') });
    const { code, out } = await terminal.run('rollout', 'resume', 'worker');
    expect([code, out]).toEqual([0, expect.stringContaining(`the rollout to ${NEW} goes on`)]);
    expect(Date.parse(poolSays('resume') ?? '')).toBeGreaterThan(Date.parse('2026-11-30T12:05:00.000Z'));
    const again = await terminal.run('rollout', 'resume', 'worker');
    expect([again.code, again.err]).toEqual([1, expect.stringContaining('the rollout of pool worker has not halted')]);
  });

  test('refuses for a pool that is only paused', async () => {
    addPool({ paused: true });
    expect((await terminal.run('rollout', 'resume', 'worker')).err).toContain('drydock pool resume worker');
    expect(poolSays('resume')).toBeUndefined();
  });
});

describe('rollout run-now', () => {
  test('names the config, and needs windows', async () => {
    addPool({ rollout: { windows: { timeZone: 'UTC', allow: [] } } });
    expect((await terminal.run('rollout', 'run-now', 'worker')).out).toContain('the next config does again');
    expect(poolSays('runNow')).toBe(NEW);
    expect((await terminal.run('rollout', 'run-now', 'worker')).out).toContain('as was said before');
    terminal = new FakeTerminal();
    addPool();
    const { code, err } = await terminal.run('rollout', 'run-now', 'worker');
    expect([code, err]).toEqual([1, expect.stringContaining('pool worker has no windows')]);
  });
});

describe('node hold and release', () => {
  beforeEach(() => addPool());

  test('hold writes the reason, and does not replace the hold of somebody else', async () => {
    addNode('w-1');
    const { code, out } = await terminal.run('node', 'hold', 'w-1', '--reason', ' disk\nis slow ');
    expect([code, out]).toEqual([0, expect.stringContaining('w-1: held (disk is slow); no update starts on it')]);
    expect(nodeSays('w-1', 'hold')).toBe('disk is slow');
    const other = await terminal.run('node', 'hold', 'w-1', '--reason', 'mine');
    expect([other.code, other.err]).toEqual([1, expect.stringContaining('w-1 is held already: disk is slow')]);
    expect(nodeSays('w-1', 'hold')).toBe('disk is slow');
  });

  test('hold says what becomes of an update that runs', async () => {
    addNode('w-1', { unschedulable: true, annotations: { [DRYDOCK_ANNOTATIONS.cordonedFor]: NEW } });
    const { out } = await terminal.run('node', 'hold', 'w-1', '--reason', 'x');
    expect(out).toContain('its update that runs is finished and leaves it cordoned');
  });

  test('release takes the hold back and lifts only the cordon that it kept', async () => {
    addNode('kept', {
      unschedulable: true,
      annotations: { [DRYDOCK_ANNOTATIONS.hold]: 'x', [DRYDOCK_ANNOTATIONS.heldCordon]: 'true' },
    });
    addNode('other', { unschedulable: true, annotations: { [DRYDOCK_ANNOTATIONS.hold]: 'x' } });
    expect((await terminal.run('node', 'release', 'kept')).out).toBe('kept: no longer held (x), and uncordoned\n');
    expect([isCordoned('kept'), nodeSays('kept', 'hold'), nodeSays('kept', 'heldCordon')]).toEqual([
      false,
      undefined,
      undefined,
    ]);
    expect((await terminal.run('node', 'release', 'other')).out).toContain('somebody else has cordoned it');
    expect([isCordoned('other'), nodeSays('other', 'hold'), nodeSays('other', 'release')]).toEqual([
      true,
      undefined,
      undefined,
    ]);
  });

  test('release of a node that somebody else cordoned allows this one config, and leaves the cordon', async () => {
    addNode('w-1', { unschedulable: true });
    expect((await terminal.run('node', 'release', 'w-1')).out).toContain(`may be updated to ${NEW} as it is`);
    expect([isCordoned('w-1'), nodeSays('w-1', 'release')]).toEqual([true, NEW]);
  });

  test('refuses where there is nothing to release, and for a node that is not there', async () => {
    addNode('w-1');
    expect((await terminal.run('node', 'release', 'w-1')).err).toContain('neither held nor cordoned by somebody else');
    const { code, err } = await terminal.run('node', 'hold', 'nope', '--reason', 'x');
    expect([code, err]).toEqual([1, 'drydock: Node nope not found: drydock nodes lists those that there are\n']);
  });
});

describe('node retry', () => {
  test('forgets a failure, refuses where there is none', async () => {
    addPool();
    addNode('w-1', { state: 'Degraded', annotations: failure(2) });
    addNode('w-2');
    expect((await terminal.run('node', 'retry', 'w-1')).out).toContain(`is tried again with ${NEW}`);
    expect(nodeSays('w-1', 'retry')).toBe('2026-11-30T12:00:00.000Z');
    expect((await terminal.run('node', 'retry', 'w-2')).err).toContain('no update of w-2 has failed');
    expect(nodeSays('w-2', 'retry')).toBeUndefined();
  });
});

describe('stop and go', () => {
  const stopSays = () =>
    terminal.cluster.peek(flavour.machineConfiguration, 'cluster')?.metadata.annotations?.[DRYDOCK_ANNOTATIONS.stop];

  test('stop creates MachineConfiguration cluster if need be, keeps the first reason, and go takes it back', async () => {
    expect((await terminal.run('go')).out).toBe('nothing is stopped\n');
    const { code, out } = await terminal.run('stop', '--reason', 'fire');
    expect([code, out]).toEqual([0, expect.stringContaining('everything is stopped (fire)')]);
    expect(stopSays()).toBe('fire');
    expect((await terminal.run('stop', '--reason', 'other')).out).toBe('everything is stopped already (fire)\n');
    expect((await terminal.run('go')).out).toBe('everything goes on (was stopped: fire)\n');
    expect(stopSays()).toBeUndefined();
    await terminal.run('stop', '--reason', 'again');
    expect(stopSays()).toBe('again');
  });

  test('a reason is needed', async () => {
    expect((await terminal.run('stop')).code).toBe(2);
    expect((await terminal.run('stop', '--reason', '  ')).code).toBe(2);
    expect(stopSays()).toBeUndefined();
  });
});

describe('rollout status', () => {
  test('tells stages, approvals, pace, the next window and who is held', async () => {
    addPool({
      maxUnavailable: 2,
      annotations: approval(NEW, 'canary'),
      rollout: {
        stages: STAGES,
        pace: { growth: 'Linear' },
        windows: { timeZone: 'UTC', allow: [{ start: '22:00', length: '2h' }] },
      },
    });
    addNode('w-1', { annotations: { [DRYDOCK_ANNOTATIONS.hold]: 'disk' } });
    for (const name of ['w-2', 'w-3', 'w-4', 'w-5']) addNode(name);
    await terminal.run('stop', '--reason', 'fire');
    const { out } = await terminal.run('rollout', 'status', 'worker');
    expect(out.split('\n')).toEqual(
      expect.arrayContaining([
        'worker: everything is stopped (fire): drydock go',
        'worker: stages: canary 0 of 1, approved by alice; wide 0 of 2; last 0 of 1, not approved yet',
        'worker: pace: 1 at once, at most 2',
        'worker: window: closed, the next one opens 2026-11-30T22:00:00.000Z',
        'worker: held: w-1 (disk)',
        expect.stringMatching(/^worker: waiting: Pool worker waits for its window/u),
      ]),
    );
  });

  test('tells of a halt', async () => {
    addPool();
    addNode('w-1', { state: 'Degraded', annotations: failure(3) });
    const { out } = await terminal.run('rollout', 'status', 'worker');
    expect(out).toContain('worker: halted: The rollout of pool worker');
    expect(out).toContain('drydock rollout resume worker');
  });
});
