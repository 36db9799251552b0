import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { KINDS, type KubernetesObject } from '../../../activities/kubernetes/client.js';
import { CommandError } from '../../../client/command-error.js';
import { EXIT_CODES } from '../../../client/exit-codes.js';
import { apiFlavour } from '../../../machine-config/api/flavour.js';
import { DEFAULT_TUNING } from '../../../workflows/contract/inputs.js';
import { FakeTerminal } from '../../support/command-run.js';
import { PATIENCE } from '../../support/patience.js';

const flavour = apiFlavour('openshift');
const OLD = `rendered-worker-${'a'.repeat(32)}`;
const NEW = `rendered-worker-${'b'.repeat(32)}`;

let terminal: FakeTerminal;
beforeEach(() => (terminal = new FakeTerminal()));

interface PoolState {
  readonly paused?: boolean;
  readonly target?: string;
  readonly current?: string;
  readonly conditions?: Record<string, [status: string, message?: string]>;
  readonly counts?: [machines: number, ready: number, updated: number, degraded: number];
}

function addPool(name: string, state: PoolState = {}): void {
  const [machineCount, readyMachineCount, updatedMachineCount, degradedMachineCount] = state.counts ?? [0, 0, 0, 0];
  const conditions = Object.entries(state.conditions ?? {}).map(([type, [status, message]]) => ({
    type,
    status,
    message: message ?? '',
  }));
  terminal.cluster.add(flavour.machineConfigPool, {
    metadata: { name },
    spec: {
      nodeSelector: { matchLabels: { [`node-role.kubernetes.io/${name}`]: '' } },
      ...(state.paused === undefined ? {} : { paused: state.paused }),
      ...(state.target === undefined ? {} : { configuration: { name: state.target } }),
    },
    status: {
      observedGeneration: 1,
      configuration: { name: state.current },
      conditions,
      machineCount,
      readyMachineCount,
      updatedMachineCount,
      degradedMachineCount,
      unavailableMachineCount: 0,
    },
  } as KubernetesObject);
}

interface NodeState {
  readonly roles?: readonly string[];
  readonly current?: string;
  readonly desired?: string;
  readonly state?: string;
  readonly reason?: string;
  readonly unschedulable?: boolean;
  readonly ready?: boolean;
  readonly worker?: string;
}

function addNode(name: string, state: NodeState = {}): void {
  const { annotations } = flavour;
  const values = {
    [annotations.currentConfig]: state.current,
    [annotations.desiredConfig]: state.desired,
    [annotations.state]: state.state,
    [annotations.reason]: state.reason,
    'drydock.dev/worker': state.worker,
  };
  terminal.cluster.add(KINDS.node, {
    metadata: {
      name,
      creationTimestamp: '2026-11-30T09:00:00Z',
      labels: Object.fromEntries((state.roles ?? ['worker']).map((role) => [`node-role.kubernetes.io/${role}`, ''])),
      annotations: Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)),
    },
    ...(state.unschedulable ? { spec: { unschedulable: true } } : {}),
    status: { conditions: [{ type: 'Ready', status: state.ready === false ? 'False' : 'True' }] },
  } as KubernetesObject);
}

/** Cells of a table, which are apart by three blanks. */
const cells = (out: string): string[][] =>
  out
    .trimEnd()
    .split('\n')
    .map((line) => line.split(/ {3,}/));

describe('nodes', () => {
  beforeEach(() => {
    addPool('master');
    addPool('worker');
    addPool('infra');
    addPool('gpu');
    addNode('worker-10', { current: OLD, desired: OLD, state: 'Done', worker: '0.1.0' });
    addNode('worker-2', { current: OLD, desired: NEW, state: 'Working', worker: '0.1.0', unschedulable: true });
    addNode('master-0', { roles: ['master'], ready: false });
    addNode('odd', { roles: ['worker', 'infra', 'gpu'] });
    addNode('windows', { roles: [] });
  });

  test('a table by pool and name, numbers in their order, what is missing as a dash', async () => {
    const { code, out, err } = await terminal.run('nodes');
    expect([code, err]).toEqual([0, '']);
    const rows = cells(out);
    expect(rows[0]).toEqual([
      'NAME',
      'POOL',
      'STATE',
      'CURRENT',
      'DESIRED',
      'READY',
      'SCHEDULABLE',
      'WORKER',
      'AGE',
      'REASON',
    ]);
    expect(rows.slice(1).map(([name]) => name)).toEqual(['odd', 'windows', 'master-0', 'worker-2', 'worker-10']);
    expect(rows[3]).toEqual([
      'master-0',
      'master',
      'Unmanaged',
      '-',
      '-',
      'False',
      'True',
      '-',
      '3h',
      'Ready is False',
    ]);
    expect(rows[4]).toEqual([
      'worker-2',
      'worker',
      'Working',
      'rendered-worker-aaaaaaaa',
      'rendered-worker-bbbbbbbb',
      'True',
      'False',
      '0.1.0',
      '3h',
      '-',
    ]);
    expect(rows[1]?.[9]).toContain('Node odd is selected by 2 custom pools, gpu and infra');
  });

  test('JSON has the full names and no table', async () => {
    const { out } = await terminal.run('nodes', '--pool', 'worker', '-o', 'json');
    expect(JSON.parse(out)).toMatchObject({
      nodes: [
        { name: 'worker-2', pool: 'worker', state: 'Working', current: OLD, desired: NEW, schedulable: false },
        { name: 'worker-10', state: 'Done', worker: '0.1.0', createdAt: '2026-11-30T09:00:00Z', reason: '' },
      ],
    });
    expect((await terminal.run('nodes', '--pool', 'worker', '-o', 'wide')).out).toContain(NEW);
  });

  test('colours only for a terminal, and not with NO_COLOR', async () => {
    const escape = '\u001b[';
    expect((await terminal.run('nodes')).out).not.toContain(escape);
    terminal.isTTY = true;
    expect((await terminal.run('nodes')).out).toContain(escape);
    terminal.environment = { NO_COLOR: '1' };
    expect((await terminal.run('nodes')).out).not.toContain(escape);
  });

  test('a pool that is not there is refused with those that are', async () => {
    expect(await terminal.run('nodes', '--pool', 'wroker')).toEqual({
      code: 1,
      out: '',
      err: 'drydock: MachineConfigPool wroker not found: there are gpu, infra, master, worker\n',
    });
  });
});

describe('pool pause and resume', () => {
  test('they change the object in Kubernetes, twice like once, and need no Temporal', async () => {
    addPool('worker', { target: NEW });
    terminal.temporalProblem = new Error('down');
    const paused = (): unknown =>
      terminal.cluster.peek<KubernetesObject & { spec?: { paused?: boolean } }>(flavour.machineConfigPool, 'worker')
        ?.spec?.paused;
    const expected = 'worker: paused; node updates that run finish, no new one starts\n';
    expect((await terminal.run('pool', 'pause', 'worker')).out).toBe(expected);
    expect((await terminal.run('pool', 'pause', 'worker')).out).toBe(expected);
    expect(paused()).toBe(true);
    const { code, out } = await terminal.run('pool', 'resume', 'worker', '--output', 'json');
    expect([code, JSON.parse(out)]).toMatchObject([0, { name: 'worker', paused: false, target: NEW }]);
    expect(paused()).toBe(false);
  });

  test('the flavour decides which pool is meant', async () => {
    addPool('worker');
    const { code, err } = await terminal.run('pool', 'pause', 'worker', '--flavour', 'alauda');
    expect([code, err]).toEqual([
      1,
      'drydock: MachineConfigPool worker not found: there is none; run drydock install\n',
    ]);
  });
});

describe('rollout start', () => {
  test('asks the manager of the pool, in the name of the cluster', async () => {
    addPool('worker');
    const { code, out, err } = await terminal.run('rollout', 'start', 'worker');
    expect([code, out, err]).toEqual([0, 'worker: yes: worker is looked at now\n', '']);
    expect(terminal.engine.started).toEqual([{ cluster: 'cluster-1', pool: 'worker', tuning: DEFAULT_TUNING }]);
    expect(terminal.engine.closed).toBe(true);
  });

  test('says that nothing will start in a paused pool', async () => {
    addPool('worker', { paused: true });
    const { code, out, err } = await terminal.run('rollout', 'start', 'worker', '-o', 'json');
    expect(JSON.parse(out)).toEqual({
      pool: 'worker',
      workflowId: 'pool/worker',
      answer: 'worker is looked at now',
      paused: true,
    });
    expect([code, err]).toEqual([0, 'worker is paused: no node update starts before drydock pool resume worker\n']);
  });

  test('says that nothing will start while everything is stopped', async () => {
    addPool('worker');
    await terminal.run('stop', '--reason', 'the storage is full');
    const { code, err } = await terminal.run('rollout', 'start', 'worker');
    expect([code, err]).toEqual([
      0,
      'everything is stopped (the storage is full): no node update starts before drydock go\n',
    ]);
  });

  test('passes on the no of the engine, on one line and with exit code 1', async () => {
    addPool('worker');
    terminal.engine.refusal = new CommandError('refused', 'no: pool worker: it is being deleted');
    const { code, out, err } = await terminal.run('rollout', 'start', 'worker');
    expect([code, out, err]).toEqual([1, '', 'drydock: no: pool worker: it is being deleted\n']);
  });

  test('starts nothing for a pool that does not exist', async () => {
    addPool('worker');
    const { code, err } = await terminal.run('rollout', 'start', 'workers');
    expect([code, err]).toEqual([1, 'drydock: MachineConfigPool workers not found: there are worker\n']);
    expect(terminal.engine.started).toEqual([]);
  });

  test('ends with 4 when Temporal is not there', async () => {
    addPool('worker');
    terminal.temporalProblem = new CommandError('unreachable', 'Temporal at localhost:7233 was not reached');
    const { code, err } = await terminal.run('rollout', 'start', 'worker');
    expect([code, err]).toEqual([4, 'drydock: Temporal at localhost:7233 was not reached\n']);
  });
});

describe('rollout status', () => {
  const turn = {
    start: [],
    cancel: [],
    reconsider: [],
    waiting: { code: 'SlotsTaken', sentence: 'Waiting: 1 of 1 slots taken by worker-2' },
    done: false,
    counts: { machines: 3, updated: 1, ready: 1, unavailable: 1, degraded: 0, unmanaged: 0 },
    target: NEW,
    maxUnavailable: 1,
  } as const;

  test('shows the pools, what waits, and what each update in work says', async () => {
    addPool('worker', {
      target: NEW,
      current: OLD,
      conditions: { Updating: ['True', '1 of 3 nodes run it'], Updated: ['False'], Degraded: ['False'] },
      counts: [3, 1, 1, 0],
    });
    terminal.engine.views.set('worker', {
      manager: 'running',
      rollout: 'running',
      status: { pool: 'worker', turn, inFlight: ['worker-2'] },
    });
    terminal.engine.updates = [
      { node: 'worker-2', target: NEW, step: 'drain', sentence: 'PDB shop/cart allows 0 disruptions' },
    ];
    const { code, out } = await terminal.run('rollout', 'status', 'worker');
    expect(code).toBe(0);
    const [table, details] = out.trimEnd().split('\n\n');
    expect(cells(table ?? '')[1]).toEqual([
      'worker',
      'rendered-worker-bbbbbbbb',
      'False',
      'True',
      'False',
      'False',
      '3',
      '1',
      '1',
      '0',
      '1',
      'running',
    ]);
    expect(details?.split('\n')).toEqual([
      'worker: 1 of 3 nodes run it',
      'worker: waiting: Waiting: 1 of 1 slots taken by worker-2',
      'worker: in work: worker-2',
      'worker: worker-2: drain: PDB shop/cart allows 0 disruptions',
    ]);
  });

  test('without Temporal it tells what Kubernetes knows, and why that is all', async () => {
    addPool('master', { target: 'm', current: 'm', conditions: { Updated: ['True'] } });
    addPool('worker', { conditions: { Degraded: ['True'], RenderDegraded: ['True', '99-x: bad mode'] } });
    terminal.temporalProblem = new CommandError('unreachable', 'Temporal at localhost:7233 was not reached');
    const { code, out } = await terminal.run('rollout', 'status');
    expect(code).toBe(0);
    expect(
      cells(out)
        .slice(1, 3)
        .map((row) => [row[0], row[2], row[4], row[11]]),
    ).toEqual([
      ['master', 'True', 'False', 'unknown'],
      ['worker', 'False', 'True', 'unknown'],
    ]);
    expect(out).toContain('worker: 99-x: bad mode\n');
    expect(out).toContain('master: Temporal at localhost:7233 was not reached\n');
    const json = await terminal.run('rollout', 'status', 'worker', '--output', 'json');
    expect(JSON.parse(json.out)).toMatchObject({
      pools: [{ name: 'worker', degraded: true, target: null, engine: { rollout: 'unknown' } }],
    });
  });

  test('a query that no worker answers leaves what describe knows', async () => {
    addPool('worker', { target: NEW });
    const problem = 'rollout/worker does not say how far it is: no worker answered within 5 s';
    terminal.engine.views.set('worker', { manager: 'running', rollout: 'running', problem });
    const { code, out } = await terminal.run('rollout', 'status', 'worker');
    expect(code).toBe(0);
    expect(cells(out)[1]?.[11]).toBe('running');
    expect(out).toContain(`worker: ${problem}`);
  });

  test('a cluster that does not answer ends with 4 and one line', async () => {
    terminal.cluster.failNext({ verb: 'list' });
    const { code, out, err } = await terminal.run('rollout', 'status');
    expect([code, out]).toEqual([4, '']);
    expect(err).toBe('drydock: list MachineConfigPool: 503 injected fault\n');
  });
});

describe('rollout watch', () => {
  const update = (name: string, patch: Record<string, string>) =>
    terminal.cluster.patch(KINDS.node, { name }, { metadata: { annotations: patch } });
  const status = (state: object) =>
    terminal.cluster.patch(flavour.machineConfigPool, { name: 'worker' }, { status: state }, 'status');

  beforeEach(() => {
    addPool('worker', { target: NEW, current: OLD, conditions: { Updating: ['True'] }, counts: [2, 1, 1, 0] });
    addNode('worker-1', { current: NEW, desired: NEW, state: 'Done', worker: '0.1.0' });
    addNode('worker-2', { current: OLD, desired: OLD, state: 'Done', worker: '0.1.0' });
  });

  test('prints each change until the pool is Updated', async () => {
    const watching = terminal.run('rollout', 'watch', 'worker');
    await vi.waitFor(() => expect(terminal.out).toContain('worker-2  Done, rendered-worker-aaaaaaaa\n'), PATIENCE);
    await update('worker-2', { [flavour.annotations.desiredConfig]: NEW, [flavour.annotations.state]: 'Working' });
    await vi.waitFor(() => expect(terminal.out).toContain('worker-2  Working, '), PATIENCE);
    await update('worker-2', { [flavour.annotations.currentConfig]: NEW, [flavour.annotations.state]: 'Done' });
    await status({
      configuration: { name: NEW },
      updatedMachineCount: 2,
      conditions: [{ type: 'Updated', status: 'True' }],
    });
    const { code, out } = await watching;
    expect(code).toBe(0);
    expect(out.split('\n')).toEqual([
      '12:00:00  worker  Updating to rendered-worker-bbbbbbbb: 1 of 2 updated',
      '12:00:00  worker-2  Done, rendered-worker-aaaaaaaa',
      '12:00:00  worker-2  Working, rendered-worker-aaaaaaaa → rendered-worker-bbbbbbbb',
      '12:00:00  worker  Updated to rendered-worker-bbbbbbbb: 2 of 2 updated',
      '12:00:00  worker-2  Done, rendered-worker-bbbbbbbb',
      '',
    ]);
  });

  test('Updated of an older config does not end it', async () => {
    const watching = terminal.run('rollout', 'watch', 'worker', '--timeout', '0.6');
    await status({ conditions: [{ type: 'Updated', status: 'True' }] });
    const { code, err } = await watching;
    expect([code, err]).toEqual([5, 'drydock: pool worker was not Updated within 0.6 s\n']);
  });

  test('ends with 3 and the reason when the pool is Degraded', async () => {
    const watching = terminal.run('rollout', 'watch', 'worker', '-o', 'json');
    const conditions = [
      { type: 'Degraded', status: 'True' },
      { type: 'NodeDegraded', status: 'True', message: 'worker-2: no room' },
    ];
    await status({ conditions });
    const { code, out } = await watching;
    expect(code).toBe(EXIT_CODES.degraded.code);
    const lines = out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { kind: string; sentence: string });
    expect(lines.filter(({ kind }) => kind === 'pool').at(-1)?.sentence).toMatch(/^Degraded .*: worker-2: no room$/);
  });

  test('Ctrl-C ends it with 130, and a deleted pool with 1', async () => {
    const interrupted = terminal.run('rollout', 'watch', 'worker');
    await vi.waitFor(() => expect(terminal.out).not.toBe(''), PATIENCE);
    terminal.interrupt.abort();
    expect((await interrupted).code).toBe(130);

    const cluster = terminal.cluster;
    terminal = new FakeTerminal(cluster);
    const deleted = terminal.run('rollout', 'watch', 'worker');
    await vi.waitFor(() => expect(terminal.out).not.toBe(''), PATIENCE);
    await cluster.delete(flavour.machineConfigPool, { name: 'worker' });
    expect((await deleted).code).toBe(1);
  });

  test('tells what the rollout waits for, and goes on without Temporal', async () => {
    terminal.temporalProblem = new CommandError('unreachable', 'Temporal at localhost:7233 was not reached');
    const watching = terminal.run('rollout', 'watch', 'worker');
    await vi.waitFor(() => expect(terminal.out).toContain('worker (problem)  Temporal at localhost:7233'), PATIENCE);
    await status({ configuration: { name: NEW }, conditions: [{ type: 'Updated', status: 'True' }] });
    expect((await watching).code).toBe(0);
  });
});

describe('the command line', () => {
  test.each([
    ['an unknown command', ['frobnicate'], /unknown command/],
    ['an unknown option', ['nodes', '--colour'], /unknown option/],
    ['a missing argument', ['rollout', 'watch'], /missing required argument/],
    ['an unknown output format', ['nodes', '-o', 'xml'], /Allowed choices are table, text, wide, json/],
    ['an unknown flavour', ['nodes', '--flavour', 'vanilla'], /unknown flavour vanilla/],
    ['a time that is none', ['rollout', 'watch', 'worker', '--timeout', 'soon'], /must be a number above 0/],
    ['files that are missing', ['render'], /required option '-f, --file/],
    ['nothing at all', [], /Usage: drydock/],
  ])('%s ends with 2', async (_, words, message) => {
    const { code, out, err } = await terminal.run(...words);
    expect([code, out]).toEqual([2, '']);
    expect(err).toMatch(message);
  });

  test('help names every exit code', async () => {
    const { code, out } = await terminal.run('--help');
    expect(code).toBe(0);
    for (const { code: one, meaning } of Object.values(EXIT_CODES)) expect(out).toContain(`${one}`.padEnd(5) + meaning);
  });

  test('an error is one line, and has its stack only with --debug', async () => {
    terminal.cluster.failNext({ kind: 'Node' }, { code: 'Forbidden', times: 2 });
    const plain = await terminal.run('nodes');
    expect([plain.code, plain.err]).toEqual([1, 'drydock: list Node: 403 injected fault\n']);
    const debug = await terminal.run('nodes', '--debug');
    expect(debug.code).toBe(1);
    expect(debug.err).toMatch(/list Node: 403 injected fault\n\s+at /);
  });
});

describe('render', () => {
  const withFile = async (text: string, ...words: string[]) => {
    const folder = mkdtempSync(join(tmpdir(), 'drydock-render-'));
    const file = join(folder, 'config.yaml');
    writeFileSync(file, text);
    try {
      return await terminal.run('render', '-f', file, ...words);
    } finally {
      rmSync(folder, { recursive: true });
    }
  };
  const config = (mode: string): string => `
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata: {name: 50-motd, labels: {machineconfiguration.openshift.io/role: worker}}
spec:
  config:
    ignition: {version: 3.4.0}
    storage: {files: [{path: /etc/motd, mode: ${mode}, contents: {source: "data:,hello"}}]}
`;

  test('prints the rendered config as YAML, or as JSON', async () => {
    const { code, out } = await withFile(config('420'));
    expect(code).toBe(0);
    expect(out).toMatch(/^kind: MachineConfig$/m);
    expect(out).toContain('/etc/motd');
    const json = await withFile(config('420'), '-o', 'json');
    expect(JSON.parse(json.out)).toMatchObject({ kind: 'MachineConfig' });
  });

  test('a refused config ends with 1 and one line that names the file', async () => {
    const { code, out, err } = await withFile(config('"0644"'));
    expect([code, out]).toEqual([1, '']);
    expect(err).toMatch(/^drydock: .*config\.yaml.*\n$/);
  });
});
