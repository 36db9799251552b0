import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { LabTemporal } from '../../temporal.js';
import type { Log } from '../../tools/cache.js';
import type { Histories } from './histories.js';
import type { RolloutBenchOptions } from './options.js';

const PROGRAM = fileURLToPath(new URL('floor-process.ts', import.meta.url));

export interface FloorRequest {
  readonly temporal: Pick<LabTemporal, 'address' | 'namespace'>;
  readonly options: RolloutBenchOptions;
}

/** Of one message just one is there. */
export interface FloorAnswer {
  readonly line?: string;
  readonly histories?: Histories;
  readonly failure?: string;
}

/**
 * Measures the floor in a process of its own, as the product's are measured: thousands of workers leave nothing behind
 * that takes memory from what is measured next.
 */
export function measureFloorApart(temporal: LabTemporal, options: RolloutBenchOptions, log: Log): Promise<Histories> {
  const child = fork(PROGRAM, { execArgv: ['--import', import.meta.resolve('tsx')] });
  const { address, namespace } = temporal;
  const request: FloorRequest = { temporal: { address, namespace }, options };
  child.send(request);
  return new Promise((resolve, reject) => {
    let answer: FloorAnswer = {};
    child.on('message', (message) => {
      const { line, ...rest } = message as FloorAnswer;
      if (line === undefined) answer = rest;
      else log(line);
    });
    child.once('exit', (code, signal) => {
      const { histories, failure = `its process ended with ${signal ?? code ?? '?'}` } = answer;
      if (histories === undefined) reject(new Error(`the floor could not be measured: ${failure}`));
      else resolve(histories);
    });
  });
}
