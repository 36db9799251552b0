import { parseArgs } from 'node:util';
import { runDemo, type DemoSummary } from './demo/run.js';

const { values: options } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    keep: { type: 'boolean', default: false },
    directory: { type: 'string' },
    'real-nodes': { type: 'string', default: '0' },
    help: { type: 'boolean', default: false },
  },
});

function readCount(text: string): number {
  if (/^\d{1,2}$/.test(text)) return Number(text);
  throw new Error(`--real-nodes ${text}: is not a number from 0 to 99`);
}

if (options.help) {
  console.log(
    [
      'npm run demo -- [--json] [--keep] [--directory DIR] [--real-nodes N]',
      '  --json       print one summary object as the last line',
      '  --keep       leave the lab running until Ctrl-C, to play with',
      '  --directory  keep the data of the lab there',
      '  --real-nodes so many workers more that are real systemd machines (Linux, as root); default 0',
    ].join('\n'),
  );
} else {
  try {
    const { json, keep, directory } = options;
    const onSummary = (summary: DemoSummary) => {
      if (json) console.log(JSON.stringify(summary));
    };
    // With --json, standard output carries the summary and nothing else.
    const say = (line: string) => (json ? console.error(line) : console.log(line));
    const realNodes = readCount(options['real-nodes']);
    if (!(await runDemo({ keep, directory, realNodes, onSummary }, say))) process.exitCode = 1;
  } catch (error) {
    console.error(`demo: ${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = 1;
  }
}
