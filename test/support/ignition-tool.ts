import type { TestProject } from 'vitest/node';
import { readLabSettings } from '../../dev/settings.js';
import { ensureIgnitionValidate } from '../../dev/tools/ignition-tools.js';

declare module 'vitest' {
  interface ProvidedContext {
    /** Path of the program; empty where it cannot be had, which test/lab/ignition-validate.test.ts says. */
    readonly ignitionValidate: string;
  }
}

/** Before the first test: where the reference validator of Ignition configs is. */
export default async function setup(project: TestProject): Promise<void> {
  const program = await ensureIgnitionValidate(readLabSettings(), (line) =>
    process.stderr.write(`[tools] ${line}\n`),
  ).catch(() => '');
  project.provide('ignitionValidate', program);
}
