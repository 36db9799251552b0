import { readLabSettings } from './settings.js';
import { ensureKubernetesTools } from './tools/kubernetes-tools.js';
import { ensureTemporalCli } from './tools/temporal-tools.js';

/** Fetches and builds everything that the lab needs, so that nothing later waits for it. Run by `npm run demo` and `npm test`. */
async function prepare(): Promise<void> {
  const settings = readLabSettings();
  const log = (line: string) => console.error(`[tools] ${line}`);
  await ensureTemporalCli(settings, log);
  await ensureKubernetesTools(settings, log);
}

try {
  await prepare();
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
