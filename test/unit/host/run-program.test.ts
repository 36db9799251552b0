import { expect, test } from 'vitest';
import { runProgram } from '../../../activities/host/run-program.js';
import { PATIENCE } from '../../support/patience.js';

test('a program that ends with any exit code has answered', async () => {
  expect(await runProgram('sh', ['-c', 'echo out; echo err >&2; exit 3'])).toEqual({
    code: 3,
    stdout: 'out\n',
    stderr: 'err\n',
  });
});

test('one that a signal ended says so as a shell does', async () => {
  expect((await runProgram('sh', ['-c', 'kill -9 $$'])).code).toBe(137);
});

test('input is written to it; without, its input is at the end', async () => {
  expect((await runProgram('cat', [], { input: 'hello' })).stdout).toBe('hello');
  expect((await runProgram('cat', [])).stdout).toBe('');
  expect((await runProgram('true', [], { input: 'x'.repeat(1_000_000) })).code).toBe(0);
});

test('nothing of our own environment reaches it', async () => {
  process.env.DRYDOCK_TEST_SECRET = 'pa55word';
  try {
    const { stdout } = await runProgram('env', [], { environment: { MORE: 'yes' } });
    expect(stdout).not.toContain('pa55word');
    expect(stdout).toContain('LC_ALL=C\n');
    expect(stdout).toContain('MORE=yes\n');
  } finally {
    delete process.env.DRYDOCK_TEST_SECRET;
  }
});

test('a program that the host does not have is named', async () => {
  await expect(runProgram('drydock-no-such-program', [])).rejects.toMatchObject({
    name: 'ProgramFailed',
    isMissing: true,
    message: 'drydock-no-such-program: this host has no such program',
  });
});

test('one that does not end in time is ended with what it started', async () => {
  // The second process would keep the pipe open, and the answer waiting, if it were left.
  const error = await runProgram('sh', ['-c', 'sleep 31415 & echo $! ; wait'], { timeoutMs: 500 }).catch(
    (thrown: unknown) => thrown,
  );
  expect(error).toMatchObject({ isMissing: false, message: 'sh: did not end within 0.5 s' });
  await expect.poll(async () => (await runProgram('pgrep', ['-fx', 'sleep 31415'])).stdout, PATIENCE).toBe('');
});
