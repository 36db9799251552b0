import { readFileSync } from 'node:fs';
import { z } from 'zod';

const { version } = z
  .object({ version: z.string() })
  .parse(JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')));

/** Of this program: the project's in a clone, the package's where it is installed from one. */
export const VERSION = version;
