import { stringify } from 'yaml';
import { customResourceDefinitions } from './crd.js';
import { apiFlavour, FLAVOUR_NAMES } from './flavour.js';

const HEADER = '# Generated from machine-config/api by dev/generate-crds.ts. Change the schemas and run it again.\n';

/** The files below `deploy/crds/`, by path relative to it: `<flavour>/<plural>.<group>.yaml`. */
export function renderCrdFiles(): Map<string, string> {
  return new Map(
    FLAVOUR_NAMES.flatMap((name) =>
      customResourceDefinitions(apiFlavour(name)).map((crd): [string, string] => [
        `${name}/${crd.metadata.name}.yaml`,
        HEADER + stringify(crd, { lineWidth: 0, aliasDuplicateObjects: false }),
      ]),
    ),
  );
}
