import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { WorkflowLab } from '../support/workflow-lab.js';
import { SCENARIOS, type Scenario } from './scenarios.js';

/*
 * Plays the scenarios that have no histories yet and stores what they leave. Histories that are there are never written
 * again: they are what running workflows of released versions look like.
 */
const HISTORIES = fileURLToPath(new URL('histories', import.meta.url));

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

async function record(scenario: Scenario): Promise<void> {
  const lab = await WorkflowLab.start(scenario.tuning);
  try {
    const recorded = await scenario.play(lab, scenario.name);
    const folder = `${HISTORIES}/${scenario.name}`;
    await mkdir(folder, { recursive: true });
    for (const [index, { workflowId, runId }] of recorded.entries()) {
      const history = await lab.environment.client.workflow.getHandle(workflowId, runId).fetchHistory();
      const file = `${folder}/${index + 1}-${workflowId.replaceAll('/', '-')}.json`;
      const text = JSON.stringify({ workflowId, history: JSON.parse(historyToJSON(history)) as unknown });
      // Stack traces name the folder of whoever recorded; nothing reads them.
      await writeFile(
        file,
        `${text.replaceAll(ROOT, '')}
`,
      );
      process.stdout.write(`recorded ${file}\n`);
    }
  } finally {
    await lab.stop();
  }
}

for (const scenario of SCENARIOS) {
  if (existsSync(`${HISTORIES}/${scenario.name}`)) process.stdout.write(`${scenario.name} is there already\n`);
  else await record(scenario);
}
process.exit(0);
