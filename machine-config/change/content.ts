import type { IgnitionConfig } from '../ignition/config.js';

/** What a rendered config says, parsed; `readSpec` of machine-config/render gives it. */
export interface ConfigContent {
  readonly osImageURL: string;
  readonly baseOSExtensionsContainerImage: string;
  readonly kernelArguments: readonly string[];
  readonly extensions: readonly string[];
  readonly fips: boolean;
  /** `default`, `realtime` or `64k-pages`. */
  readonly kernelType: string;
  readonly config?: IgnitionConfig;
}

/** What a node has that was never given a config. */
export const EMPTY_CONTENT: ConfigContent = {
  osImageURL: '',
  baseOSExtensionsContainerImage: '',
  kernelArguments: [],
  extensions: [],
  fips: false,
  kernelType: 'default',
};
