import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startLab } from '../../dev/lab.js';
import { Supervisor } from '../../dev/processes/supervisor.js';

/**
 * A process that holds a lab until it is ended; started by lifetime.test.ts. argv: `lab`, or `one-process` for a lab's
 * supervisor with one small process, whose command line names the directory.
 */
async function hold(): Promise<string> {
  if (process.argv[2] === 'lab') return (await startLab()).directory;
  const directory = await mkdtemp(join(tmpdir(), 'drydock-lab-'));
  const script = 'setInterval(() => undefined, 2 ** 30)';
  const supervisor = Supervisor.start(directory, true);
  await supervisor.run({ id: 'idle', command: process.execPath, args: ['--eval', script, directory] });
  return directory;
}

process.send?.(await hold());
process.on('message', () => {
  // Out of the promise: an exception that nobody handles.
  setImmediate(() => {
    throw new Error('crash on purpose');
  });
});
