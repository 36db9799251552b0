import type { PoolFacts } from './facts.js';
import { countOf, nameSome } from './sentences.js';
import type { MemberCounts } from './status-counts.js';
import { no, yes, type Verdict } from './status-verdict.js';

interface Progress {
  readonly Updated: Verdict;
  readonly Updating: Verdict;
}

const neither = (reason: string, message: string): Progress => ({
  Updated: no(reason, message),
  Updating: no(reason, message),
});

function unmanagedNote({ unmanaged }: MemberCounts): string {
  if (unmanaged.length === 0) return '';
  const names = nameSome(unmanaged.map((node) => node.name));
  return `; no node worker has registered on ${names}: install it there`;
}

/** How far the rollout of a pool is. A pool that went back to an older config is not Updated: it wants another one. */
export function progressOf(pool: PoolFacts, counts: MemberCounts): Progress {
  const { name, target, rollingBack = false } = pool;
  if (target === undefined) return neither('NothingRendered', `There is no rendered config for pool ${name} yet`);
  if (counts.allUpdated && rollingBack) {
    return neither('RolledBack', `Every node of the pool is back on ${target}; give the pool another config`);
  }
  if (counts.allUpdated) {
    return { Updated: yes('AllUpdated', `Every node of the pool runs ${target}`), Updating: no('AllUpdated') };
  }
  const share = `${counts.updated} of ${countOf(counts.total, 'node')} run ${target}`;
  if (pool.paused) {
    return neither('Paused', `The pool is paused and stays short of ${target}: ${share}${unmanagedNote(counts)}`);
  }
  const ready = counts.ready < counts.updated ? `, ${counts.ready} of them ready` : '';
  return {
    Updated: no('NotAllUpdated', share),
    Updating: yes(rollingBack ? 'RollingBack' : 'RollingOut', `${share}${ready}${unmanagedNote(counts)}`),
  };
}
