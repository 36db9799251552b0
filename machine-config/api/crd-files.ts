import { stringify } from 'yaml';
import { customResourceDefinitions, sharedDefinitions, type CustomResourceDefinition } from './crd.js';
import { apiFlavour, FLAVOUR_NAMES } from './flavour.js';

const HEADER = '# Generated from machine-config/api by dev/generate-crds.ts. Change the schemas and run it again.\n';

const entry = (folder: string, crd: CustomResourceDefinition): [string, string] => [
  `${folder}/${crd.metadata.name}.yaml`,
  HEADER + stringify(crd, { lineWidth: 0, aliasDuplicateObjects: false }),
];

/**
 * The files below `deploy/crds/`, by path relative to it: `<flavour>/<plural>.<group>.yaml`, and below `shared` what is
 * the same in every flavour.
 */
export function renderCrdFiles(): Map<string, string> {
  return new Map([
    ...FLAVOUR_NAMES.flatMap((name) => customResourceDefinitions(apiFlavour(name)).map((crd) => entry(name, crd))),
    ...sharedDefinitions().map((crd) => entry('shared', crd)),
  ]);
}
