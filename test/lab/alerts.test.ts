import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { readLabSettings } from '../../dev/settings.js';
import { ensurePrometheus } from '../../dev/tools/prometheus.js';

const run = promisify(execFile);
const RULES = fileURLToPath(new URL('../../deploy/alerts/drydock.yaml', import.meta.url));
const found = await ensurePrometheus(readLabSettings(), (line) => process.stderr.write(`[tools] ${line}\n`));
if (found.missing !== undefined) process.stderr.write(`the alerts are not tried: ${found.missing}\n`);

interface Case {
  readonly alert: string;
  readonly series: string;
  /** For an hour and a half, a value each minute. */
  readonly values: string;
  /** Minutes after which it is not there yet, and after which it is. */
  readonly quietAt: number;
  readonly firingAt: number;
}

const CASES: readonly Case[] = [
  { alert: 'DrydockPoolDegraded', series: 'drydock_pool_degraded{pool="p"}', values: '1x90', quietAt: 5, firingAt: 15 },
  { alert: 'DrydockRolloutHalted', series: 'drydock_pool_halted{pool="p"}', values: '1x90', quietAt: 0, firingAt: 2 },
  {
    alert: 'DrydockMembershipConflict',
    series: 'drydock_pool_conflict{pool="p"}',
    values: '1x90',
    quietAt: 2,
    firingAt: 6,
  },
  {
    alert: 'DrydockDrainBlocked',
    series: 'drydock_pool_drain_blocked_nodes{pool="p"}',
    values: '2x90',
    quietAt: 20,
    firingAt: 40,
  },
  {
    alert: 'DrydockRolloutStandsStill',
    series: 'drydock_pool_waiting{pool="p",code="NodesNotReady"}',
    values: '1x90',
    quietAt: 50,
    firingAt: 70,
  },
];

/** A test of promtool: from these series this alert, and no other, at that minute. */
function check({ alert, series, values }: Pick<Case, 'alert' | 'series' | 'values'>, minute: number, fires: boolean) {
  const code = /code="(\w+)"/.exec(series)?.[1];
  return {
    interval: '1m',
    input_series: [{ series, values }],
    promql_expr_test: [
      {
        expr: `count(ALERTS{alertname="${alert}",alertstate="firing"}) or vector(0)`,
        eval_time: `${minute}m`,
        exp_samples: [{ labels: '{}', value: fires ? 1 : 0 }],
      },
    ],
    ...(code === undefined ? {} : { name: code }),
  };
}

describe.skipIf(found.missing !== undefined)('the alerts, in Prometheus itself', () => {
  const promtool = join(dirname(found.program ?? ''), 'promtool');
  const tryRules = async (tests: readonly object[]) => {
    const directory = await mkdtemp(join(tmpdir(), 'drydock-alerts-'));
    try {
      const file = join(directory, 'tests.yaml');
      await writeFile(file, stringify({ rule_files: [RULES], evaluation_interval: '1m', tests }));
      return (await run(promtool, ['test', 'rules', file])).stdout;
    } finally {
      await rm(directory, { recursive: true });
    }
  };

  test('are rules that it accepts', async () => {
    expect((await run(promtool, ['check', 'rules', RULES])).stdout).toContain('SUCCESS');
  });

  test.each(CASES)('$alert fires once it has lasted, and not before', async (each) => {
    expect(await tryRules([check(each, each.quietAt, false), check(each, each.firingAt, true)])).toContain('SUCCESS');
  });

  test('what people decide to wait for raises none, and a missing control worker does', async () => {
    const waiting = 'DrydockRolloutStandsStill';
    const decided = ['ApprovalMissing', 'WindowClosed', 'PoolPaused', 'Stopped'].map((code) =>
      check({ alert: waiting, series: `drydock_pool_waiting{pool="p",code="${code}"}`, values: '1x90' }, 80, false),
    );
    const missing = { alert: 'DrydockControlWorkerMissing', values: '1x90' };
    const there = check({ ...missing, series: 'drydock_control_info{version="1"}' }, 80, false);
    const away = check({ ...missing, series: 'other{}' }, 80, true);
    expect(await tryRules([...decided, there, away])).toContain('SUCCESS');
  });
});
