import type { ConfigContent } from './content.js';

/** The fields of a MachineConfig that the operating system itself has to carry out, and that not every host can. */
export const OS_FIELDS = ['osImageURL', 'extensions', 'kernelType', 'kernelArguments', 'fips'] as const;
export type OsField = (typeof OS_FIELDS)[number];

/** The fields of which a config asks something; what is at its default asks nothing. */
export function usedOsFields(content: ConfigContent): OsField[] {
  const isUsed: Record<OsField, boolean> = {
    osImageURL: content.osImageURL !== '',
    extensions: content.extensions.length > 0,
    kernelType: content.kernelType !== 'default',
    kernelArguments: content.kernelArguments.length > 0,
    fips: content.fips,
  };
  return OS_FIELDS.filter((field) => isUsed[field]);
}
