import { describe, expect, it } from 'vitest';
import type { Turn } from '../../../machine-config/pool/turn.js';
import { shortConfigName, updateSummary } from '../../../workflows/progress.js';
import { rolloutDetails } from '../../../workflows/rollout-details.js';

const rendered = (pool: string, start: string) => `rendered-${pool}-${start.padEnd(32, '0')}`;

const turn: Turn = {
  start: [],
  cancel: [],
  reconsider: [],
  waiting: null,
  done: false,
  counts: { machines: 100, updated: 40, ready: 40, unavailable: 50, degraded: 1, unmanaged: 0 },
  target: rendered('worker', '3c4d'),
  maxUnavailable: 50,
};

describe('what a stranger reads in the UI', () => {
  it('names revisions by the start of their hash', () => {
    expect(shortConfigName(rendered('worker', '1a2b'))).toBe('rendered-worker-1a2b');
    expect(shortConfigName('drydock-empty')).toBe('drydock-empty');
  });

  it('summarises an update in one line', () => {
    expect(updateSummary('worker-3', rendered('worker', '1a2b'), rendered('worker', '3c4d'))).toBe(
      'worker-3: rendered-worker-1a2b → 3c4d',
    );
    expect(updateSummary('worker-3', 'drydock-empty', rendered('worker', '3c4d'))).toBe(
      'worker-3: drydock-empty → rendered-worker-3c4d',
    );
  });

  it('names at most thirty nodes in at most 8 KB', () => {
    const nodes = Array.from({ length: 50 }, (_, index) => `${'n'.repeat(240)}-${index}`);
    const details = rolloutDetails(turn, nodes);
    expect(details.split('\n').filter((line) => line.startsWith('- n')).length).toBeLessThanOrEqual(30);
    expect(Buffer.byteLength(details)).toBeLessThanOrEqual(8192);
    expect(details).toContain('40 of 100 updated');
  });

  it('begins with why it waits', () => {
    const sentence = 'PDB shop/cart allows 0 disruptions; scale up cart';
    const waiting = { code: 'UpdatesRunning' as const, sentence };
    expect(rolloutDetails({ ...turn, waiting }, [])).toMatch(/^Waiting: PDB shop\/cart allows 0 disruptions/);
  });
});
