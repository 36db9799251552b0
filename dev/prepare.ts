import { buildNodePackage } from './package/build.js';
import { whyNoRealNodes } from './real-nodes/availability.js';
import { ensureBaseRoot } from './real-nodes/base-root.js';
import { readLabSettings, type LabSettings } from './settings.js';
import { ensureIgnition, ensureIgnitionValidate, whyNoIgnition } from './tools/ignition-tools.js';
import { ensureKubernetesTools } from './tools/kubernetes-tools.js';
import { ensurePrometheus } from './tools/prometheus.js';
import { ensureTemporalCli } from './tools/temporal-tools.js';

const log = (line: string) => console.error(`[tools] ${line}`);

/**
 * Fetches and builds everything that the lab needs, so that nothing later waits for it. Run by `npm run demo` and
 * `npm test`. argv: `--real-nodes` where those are used as well, and `--tests` for what only tests use; that there can
 * be none of them here is no failure.
 */
async function prepare(): Promise<void> {
  const settings = readLabSettings();
  const tests = process.argv.includes('--tests');
  await ensureTemporalCli(settings, log);
  await ensureKubernetesTools(settings, log);
  if (tests) {
    const { missing } = await ensurePrometheus(settings, log);
    if (missing !== undefined) log(`no Prometheus: ${missing}`);
    await ensureIgnitionValidate(settings, log).catch(sayWhyMissing);
  }
  if (!process.argv.includes('--real-nodes')) return;
  const why = await whyNoRealNodes(log);
  if (why !== undefined) {
    log(`no real nodes: ${why}`);
    return;
  }
  await ensureBaseRoot(settings, log);
  await buildNodePackage({ log });
  if (tests) await prepareIgnition(settings).catch(sayWhyMissing);
}

async function prepareIgnition(settings: LabSettings): Promise<void> {
  const why = await whyNoIgnition(settings);
  if (why !== undefined) throw new Error(`no Ignition: ${why}`);
  await ensureIgnition(settings, log);
}

/** The tests that need it say so as well, and are skipped or fail. */
function sayWhyMissing(error: unknown): void {
  log(error instanceof Error ? error.message : String(error));
}

try {
  await prepare();
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
