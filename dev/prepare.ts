import { buildNodePackage } from './package/build.js';
import { whyNoRealNodes } from './real-nodes/availability.js';
import { ensureBaseRoot } from './real-nodes/base-root.js';
import { readLabSettings } from './settings.js';
import { ensureKubernetesTools } from './tools/kubernetes-tools.js';
import { ensureTemporalCli } from './tools/temporal-tools.js';

/**
 * Fetches and builds everything that the lab needs, so that nothing later waits for it. Run by `npm run demo` and
 * `npm test`. argv: `--real-nodes` where those are used as well; that there can be none is no failure.
 */
async function prepare(): Promise<void> {
  const settings = readLabSettings();
  const log = (line: string) => console.error(`[tools] ${line}`);
  await ensureTemporalCli(settings, log);
  await ensureKubernetesTools(settings, log);
  if (!process.argv.includes('--real-nodes')) return;
  const why = await whyNoRealNodes(log);
  if (why !== undefined) {
    log(`no real nodes: ${why}`);
    return;
  }
  await ensureBaseRoot(settings, log);
  await buildNodePackage({ log });
}

try {
  await prepare();
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
