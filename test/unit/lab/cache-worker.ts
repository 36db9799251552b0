import { appendFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ensureCached } from '../../../dev/tools/cache.js';

/** A process that fills one cache entry slowly; started by cache.test.ts. argv: cache, journal, milliseconds. */
const [cache = '', journal = '', slow = '0'] = process.argv.slice(2);
const entry = { name: 'tool', version: '1', recipe: ['r'], usually: 'a moment', doing: 'making the tool' };
await ensureCached(
  cache,
  entry,
  async (aside) => {
    await writeFile(join(aside, 'first'), 'half');
    await appendFile(journal, 'begin\n');
    process.send?.('filling');
    await sleep(Number(slow));
    await writeFile(join(aside, 'second'), 'whole');
    await appendFile(journal, 'end\n');
  },
  (line) => process.send?.(line),
);
