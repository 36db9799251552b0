import { stringify } from 'yaml';
import { apiVersionOf, apiFlavour, FLAVOUR_NAMES } from '../../machine-config/api/flavour.js';
import { admissionManifests } from './admission.js';
import { firstBootManifests, IGNITION_USER } from './first-boot.js';
import type { Manifest } from './manifest.js';
import { CONTROL_USER, rbacManifests } from './rbac.js';

/** Path below `deploy/` to the content of the file: what install applies, for those who apply files. */
export function renderManifestFiles(): Map<string, string> {
  return new Map(
    FLAVOUR_NAMES.map(apiFlavour).flatMap((flavour) => [
      [`rbac/${flavour.name}.yaml`, fileOf(rbacManifests(flavour, CONTROL_USER))],
      [
        `rbac/first-boot-${flavour.name}.yaml`,
        fileOf(firstBootManifests(flavour, { controlUser: CONTROL_USER, ignitionUser: IGNITION_USER })),
      ],
      [`admission/${flavour.name}.yaml`, fileOf(admissionManifests(flavour, CONTROL_USER))],
    ]),
  );
}

function fileOf(manifests: readonly Manifest[]): string {
  const documents = manifests.map(({ resource, object }) =>
    stringify(
      { apiVersion: apiVersionOf(resource), kind: resource.kind, ...object },
      { lineWidth: 0, aliasDuplicateObjects: false },
    ),
  );
  return `# Written by npm run generate, from client/install.\n${documents.join('---\n')}`;
}
