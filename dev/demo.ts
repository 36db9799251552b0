import { parseArgs } from 'node:util';
import { runDemo, type DemoSummary } from './demo/run.js';

const { values: options } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    keep: { type: 'boolean', default: false },
    directory: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});

if (options.help) {
  console.log(
    [
      'npm run demo -- [--json] [--keep] [--directory DIR]',
      '  --json       print one summary object as the last line',
      '  --keep       leave the lab running until Ctrl-C, to play with',
      '  --directory  keep the data of the lab there',
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
    if (!(await runDemo({ keep, directory, onSummary }, say))) process.exitCode = 1;
  } catch (error) {
    console.error(`demo: ${error instanceof Error ? error.message : String(error)}`);
    process.exitCode = 1;
  }
}
