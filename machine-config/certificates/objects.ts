import type { NodeCertificate } from '../api/controller-config.js';
import type { ApiFlavour } from '../api/flavour.js';

/** A Secret or ConfigMap that files of nodes follow. */
export interface CertificateObject {
  readonly kind: 'Secret' | 'ConfigMap';
  readonly namespace: string;
  readonly name: string;
}

/** Each is one more watch of every node at the API server. */
export const MOST_OBJECTS = 20;

export function objectOf({ secret, configMap }: NodeCertificate): CertificateObject {
  const { namespace, name } = secret ?? configMap ?? { namespace: '', name: '' };
  return { kind: secret === undefined ? 'ConfigMap' : 'Secret', namespace, name };
}

/** `Secret drydock/ca`: tells objects apart, and is how people are told of them. */
export function objectName({ kind, namespace, name }: CertificateObject): string {
  return `${kind} ${namespace}/${name}`;
}

/** The objects that nodes have to read, each once, and no more than one node may watch. */
export function certificateObjects(certificates: readonly NodeCertificate[]): CertificateObject[] {
  const byName = new Map<string, CertificateObject>();
  for (const object of certificates.map(objectOf)) {
    if (byName.size < MOST_OBJECTS) byName.set(objectName(object), object);
  }
  return [...byName.values()];
}

interface AccessRule {
  readonly apiGroups: string[];
  readonly resources: string[];
  readonly resourceNames: string[];
  readonly verbs: string[];
}

/** To list with the name in the field selector is to read that one object, and how a watch of it begins. */
export const READ_BY_NAME = ['get', 'list', 'watch'];

/** Of the Role in each namespace with such an object: one name, so that the control worker needs rights on no other. */
export function certificateRoleName(flavour: Pick<ApiFlavour, 'name'>): string {
  return `drydock:${flavour.name}:certificates`;
}

/** What a Role in each namespace has to allow, so that nodes can read the objects and nothing else. */
export function accessByNamespace(objects: readonly CertificateObject[]): Map<string, AccessRule[]> {
  const namespaces = [...new Set(objects.map(({ namespace }) => namespace))].sort();
  return new Map(
    namespaces.map((namespace) => {
      const namesOf = (kind: CertificateObject['kind']) =>
        objects.filter((object) => object.kind === kind && object.namespace === namespace).map(({ name }) => name);
      const rule = (resource: string, names: string[]): AccessRule[] =>
        names.length === 0
          ? []
          : [{ apiGroups: [''], resources: [resource], resourceNames: names.sort(), verbs: READ_BY_NAME }];
      return [namespace, [...rule('configmaps', namesOf('ConfigMap')), ...rule('secrets', namesOf('Secret'))]];
    }),
  );
}
