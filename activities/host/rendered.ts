import type { MachineConfig } from '../../machine-config/api/machine-config.js';
import type { IgnitionConfig, IgnitionFile } from '../../machine-config/ignition/config.js';
import { fileContents } from '../../machine-config/ignition/contents.js';
import { splitKernelArguments } from '../../machine-config/render/kernel-arguments.js';
import { NotPossibleHere } from './entry.js';
import type { OsState } from './host.js';
import { readSpec } from '../../machine-config/render/spec.js';

/** The Ignition part of a rendered config. Its shape was checked when it was rendered, and its hash when it was fetched. */
export function ignitionOf(config: MachineConfig): Partial<IgnitionConfig> {
  return config.spec?.config ?? {};
}

/** The decoded contents of a file; empty where it has none. Throws ContentError. */
export function contentsOf(file: IgnitionFile): Buffer {
  return Buffer.from(fileContents(file));
}

/** What a config asks of the operating system itself. Throws NotPossibleHere. */
export function osStateOf(config: MachineConfig): OsState {
  const { osImageURL, kernelType, extensions } = readSpec(config.spec);
  return { kernelArguments: kernelArgumentsOf(config), osImageURL, kernelType, extensions };
}

/** Drydock's kernel arguments one by one: a string may hold several. Throws NotPossibleHere. */
function kernelArgumentsOf(config: MachineConfig): string[] {
  return (config.spec?.kernelArguments ?? []).flatMap((entry, index) => {
    const split = splitKernelArguments(entry);
    if (!split.ok) throw new NotPossibleHere(`spec.kernelArguments[${index}] ${split.error}`);
    return split.arguments;
  });
}
