/** Opens a shell in a machine of a lab, or runs a command in it. argv: the lab's directory, the machine, the command. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const [directory, machine, ...command] = process.argv.slice(2);
const { leader } = JSON.parse(readFileSync(join(directory, 'machines', machine, 'state.json'), 'utf8'));
if (leader === undefined) {
  console.error(`machine ${machine} is off`);
  process.exitCode = 1;
} else {
  const shell = ['env', '-i', '--chdir=/root', `TERM=${process.env.TERM ?? 'dumb'}`, 'HOME=/root', 'bash', '--login'];
  const args = [`--target=${leader.pid}`, '--all', '--', ...(command.length > 0 ? command : shell)];
  const { status, error } = spawnSync('nsenter', args, { stdio: 'inherit' });
  if (error !== undefined) console.error(error.message);
  process.exitCode = status ?? 1;
}
