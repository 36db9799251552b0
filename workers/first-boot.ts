import { verifyRenderedName } from '../machine-config/render/name.js';
import { firstBootConfig, stageFirstBoot } from '../activities/host/first-boot.js';
import { LOG_SETTINGS, NODE_SETTINGS, parseEnvironment } from './config.js';
import { openNodeHost } from './node-host.js';

/** For first-boot.sh: the machine has to be rebooted before its kubelet starts. */
const REBOOT_IS_DUE = 10;

/** The part of a first boot that Ignition cannot do; see deploy/node/first-boot.sh. */
async function main(): Promise<number> {
  const { root, osBackend } = parseEnvironment({
    ...LOG_SETTINGS,
    root: NODE_SETTINGS.root,
    osBackend: NODE_SETTINGS.osBackend,
  });
  const config = await firstBootConfig(root);
  if (config === undefined) return 0;
  if (!verifyRenderedName(config)) {
    throw new Error(`the record of ${config.metadata.name} is damaged: the operating system is left as it is`);
  }
  const host = await openNodeHost({ root, osBackend, ownKubeconfigs: () => [], onDown: () => undefined });
  const { reboot } = await stageFirstBoot(config, host);
  return reboot ? REBOOT_IS_DUE : 0;
}

try {
  process.exitCode = await main();
} catch (error) {
  process.stderr.write(`drydock-first-boot: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
