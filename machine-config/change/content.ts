import type { SpecContent } from '../render/spec.js';

/** What a rendered config says, parsed; `readSpec` gives it. */
export type ConfigContent = Omit<SpecContent, 'problems' | 'warnings' | 'unknownKeys'>;

/** What a node has that was never given a config. */
export const EMPTY_CONTENT: ConfigContent = {
  osImageURL: '',
  baseOSExtensionsContainerImage: '',
  kernelArguments: [],
  extensions: [],
  fips: false,
  kernelType: 'default',
};
