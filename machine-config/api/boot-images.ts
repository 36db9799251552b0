import { z } from 'zod';
import { labelSelectorSchema } from './label-selector.js';
import { keyedList, withRules, type Rule } from './structural.js';

/**
 * Boot images belong to OpenShift's own machine management. The fields are part of the API, so that manifests that
 * carry them are accepted; nothing here acts on them.
 */
const requiredWith = <T extends { mode: string }>(field: keyof T & string, mode: string): Rule<T> => ({
  cel: `self.mode == '${mode}' ? has(self.${field}) : !has(self.${field})`,
  holds: (value) => (value.mode === mode) === (value[field] !== undefined),
  message: `${field} is needed with mode ${mode}, and not allowed with any other`,
});

const machineManagerSelection = withRules(
  z.strictObject({
    mode: z.enum(['All', 'Partial', 'None']),
    partial: z.strictObject({ machineResourceSelector: labelSelectorSchema }).exactOptional(),
  }),
  requiredWith('partial', 'Partial'),
);

export const managedBootImagesSchema = z.strictObject({
  machineManagers: keyedList(
    z.strictObject({
      resource: z.enum(['machinesets', 'controlplanemachinesets']),
      apiGroup: z.enum(['machine.openshift.io']),
      selection: machineManagerSelection,
    }),
    ['resource', 'apiGroup'],
    5,
  ).exactOptional(),
});

const ocpVersion = z
  .string()
  .min(5)
  .max(10)
  .regex(/^[0-9]+\.[0-9]+\.[0-9]+$/, { error: 'must be a version of three numbers, such as 4.18.2' });
const rhcosVersion = z.string().min(14).max(21);

const manualBootImage = withRules(
  z.strictObject({
    mode: z.enum(['OCPVersion', 'RHCOSVersion']),
    ocpVersion: ocpVersion.exactOptional(),
    rhcosVersion: rhcosVersion.exactOptional(),
  }),
  requiredWith('ocpVersion', 'OCPVersion'),
  requiredWith('rhcosVersion', 'RHCOSVersion'),
);

export const bootImageSkewSchema = withRules(
  z.strictObject({ mode: z.enum(['Manual', 'None']), manual: manualBootImage.exactOptional() }),
  requiredWith('manual', 'Manual'),
);

export const bootImageSkewStatusSchema = withRules(
  z.strictObject({
    mode: z.enum(['Automatic', 'Manual', 'None']),
    automatic: z
      .strictObject({ ocpVersion: ocpVersion.exactOptional(), rhcosVersion: rhcosVersion.exactOptional() })
      .exactOptional(),
    manual: manualBootImage.exactOptional(),
  }),
  requiredWith('automatic', 'Automatic'),
  requiredWith('manual', 'Manual'),
);
