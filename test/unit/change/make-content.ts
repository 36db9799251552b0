import { EMPTY_CONTENT, type ConfigContent } from '../../../machine-config/change/content.js';
import { ignitionSchema, type IgnitionConfig } from '../../../machine-config/ignition/config.js';

export type Sections = Omit<IgnitionConfig, 'ignition'> & { ignition?: Omit<IgnitionConfig['ignition'], 'version'> };

/** A rendered config with these Ignition sections and these other fields. */
export function makeContent(sections: Sections = {}, fields: Partial<ConfigContent> = {}): ConfigContent {
  const { ignition, ...others } = sections;
  const config = ignitionSchema.parse({ ...others, ignition: { version: '3.4.0', ...ignition } });
  return { ...EMPTY_CONTENT, config, ...fields };
}

export const file = (path: string, text = '', more: object = {}) => ({
  path,
  contents: { source: `data:,${encodeURIComponent(text)}` },
  ...more,
});
export const withFiles = (...files: ReturnType<typeof file>[]): ConfigContent => makeContent({ storage: { files } });
