import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { WAITING_CODES } from '../../../machine-config/pool/turn.js';

const root = path.join(import.meta.dirname, '../../..');
const read = (file: string) => readFileSync(path.join(root, file), 'utf8');

/** Where the metrics are made: the names there are the ones that there are. */
const SOURCES = ['activities/cluster/pool-metrics.ts', 'workers/control-status.ts', 'activities/node/metrics.ts'];
const made = new Set(SOURCES.flatMap((file) => [...read(file).matchAll(/'(drydock_\w+)'/g)].map(([, name]) => name)));
const used = (text: string) => [...text.matchAll(/\bdrydock_\w+/g)].map(([name]) => name);

interface Rules {
  groups: { name: string; rules: { alert: string; expr: string; annotations: Record<string, string> }[] }[];
}

describe.each([
  ['the alerts', 'deploy/alerts/drydock.yaml'],
  ['the dashboard', 'deploy/dashboard/drydock.json'],
])('%s', (_, file) => {
  it('ask for metrics that there are', () => {
    const names = used(read(file));
    expect(names.length).toBeGreaterThan(5);
    expect(names.filter((name) => !made.has(name))).toEqual([]);
  });
});

describe('the alerts', () => {
  const rules = (parse(read('deploy/alerts/drydock.yaml')) as Rules).groups.flatMap((group) => group.rules);

  it('each say what is the matter and what to look at', () => {
    for (const { alert, annotations } of rules) {
      expect(annotations.summary?.length, alert).toBeGreaterThan(10);
      expect(annotations.description?.length, alert).toBeGreaterThan(10);
    }
    expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
  });

  it('leave out of a standstill only reasons that there are', () => {
    const expr = rules.find(({ alert }) => alert === 'DrydockRolloutStandsStill')?.expr ?? '';
    const excluded = /code!~"([^"]+)"/.exec(expr)?.[1]?.split('|') ?? [];
    expect(excluded.length).toBeGreaterThan(3);
    const known: readonly string[] = [...WAITING_CODES, 'DrainBlocked'];
    expect(excluded.filter((code) => !known.includes(code))).toEqual([]);
  });
});

describe('the dashboard', () => {
  it('is JSON with panels that do not lie over each other', () => {
    const { panels } = JSON.parse(read('deploy/dashboard/drydock.json')) as {
      panels: { title: string; gridPos: { x: number; y: number; w: number; h: number } }[];
    };
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, index) => `${x + (index % w)}/${y + Math.floor(index / w)}`),
    );
    expect(panels.length).toBeGreaterThan(3);
    expect(new Set(cells).size).toBe(cells.length);
  });
});
