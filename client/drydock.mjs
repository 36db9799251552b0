#!/usr/bin/env node
// Runs the TypeScript sources as they are: in a clone the command works right after `npm ci`, without a build.
import { fileURLToPath } from 'node:url';

try {
  const { register } = await import('tsx/esm/api');
  register();
} catch (error) {
  if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
  const folder = fileURLToPath(new URL('..', import.meta.url));
  console.error(`drydock: its packages are not installed: run npm ci in ${folder}`);
  process.exit(1);
}

const { main } = await import('./main.ts');
const loadLab = async () => (await import('./lab-command.ts')).addLabCommand;
process.exitCode = await main(process.argv.slice(2), { loadLab });
