import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Lab } from '../lab.js';
import type { Log } from '../tools/cache.js';
import { writeMachineFiles } from './machine-files.js';
import type { Machine } from './machine.js';
import { machineMaker, type BareMachineSpec } from './real-node.js';

/** Only what is named here, and what Ignition names, is enabled at a first boot; Debian would enable all there is. */
const PRESETS = 'enable kubelet.service\ndisable *\n';

/**
 * A machine whose disk is as an image brings it: a kubelet, no identity, nothing of Drydock, never booted. It is off, so
 * that Ignition can do its part.
 */
export async function makeFirstBootMachine(
  lab: Lab,
  spec: BareMachineSpec,
  log: Log = () => undefined,
): Promise<Machine> {
  const make = await machineMaker(lab, [], log);
  const machine = await make(spec);
  const { root } = machine;
  await writeMachineFiles({ root, hostname: spec.name, kubelet: true });
  const put = async (path: string, text: string) => {
    await mkdir(join(root, path, '..'), { recursive: true });
    await writeFile(join(root, path), text);
  };
  await mkdir(join(root, 'etc/kubernetes/manifests'), { recursive: true });
  // By this systemd knows a first boot, at which it makes the links that presets ask for.
  await put('etc/machine-id', 'uninitialized\n');
  await put('usr/lib/systemd/system-preset/98-lab.preset', PRESETS);
  return machine;
}
