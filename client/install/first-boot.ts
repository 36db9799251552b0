import { KINDS, type KubernetesClient, type KubernetesObject } from '../../activities/kubernetes/client.js';
import { ifThere } from '../../activities/kubernetes/failures.js';
import type { ApiFlavour } from '../../machine-config/api/flavour.js';
import {
  BOOTSTRAP_TOKEN_IDS,
  BOOTSTRAP_TOKEN_NAMESPACE,
  BOOTSTRAP_TOKEN_TYPE,
  bootstrapTokenSecretName,
} from '../../machine-config/first-boot/bootstrap-token.js';
import { DRYDOCK_LABELS, type Manifest } from './manifest.js';
import { NAMESPACE, READ, grantedTo, on, userOf, type Rule } from './rbac.js';

const IGNITION_ACCOUNT = 'drydock-ignition';
/** The user as whom an Ignition server works, unless told otherwise. */
export const IGNITION_USER = `system:serviceaccount:${NAMESPACE}:${IGNITION_ACCOUNT}`;
/** The Secret with its certificate, if it is one: tls.crt, tls.key, ca.crt. */
export const IGNITION_TLS_SECRET = 'drydock-ignition-tls';

/** What kubeadm lets join, and approves the certificates of. */
const JOINING_GROUPS = 'system:bootstrappers:kubeadm:default-node-token';

const roleName = (flavour: ApiFlavour): string => `drydock:${flavour.name}:ignition-server`;

const onSecrets = (resourceNames: readonly string[], verbs: readonly string[]): Rule => ({
  ...on('', ['secrets'], verbs),
  resourceNames,
});

/** The user as whom the Ignition server of this cluster works; undefined: it was installed without one. */
export async function installedIgnitionUser(
  client: KubernetesClient,
  flavour: ApiFlavour,
): Promise<string | undefined> {
  type Binding = KubernetesObject & { readonly subjects?: Parameters<typeof userOf>[0][] };
  const live = await ifThere(() => client.get<Binding>(KINDS.clusterRoleBinding, { name: roleName(flavour) }));
  const [subject] = live?.subjects ?? [];
  return subject && userOf(subject);
}

/**
 * What first boots need beside the rest: the Ignition server's own identity, which reads what it gives out and nothing
 * else; and two Secrets for the bootstrap tokens, empty, since a control worker that could create Secrets there could
 * make itself the token of any account. It renews them, and the server reads them.
 */
export function firstBootManifests(
  flavour: ApiFlavour,
  { controlUser, ignitionUser }: { readonly controlUser: string; readonly ignitionUser: string },
): Manifest[] {
  const { group, machineConfig, machineConfigPool } = flavour;
  const tokens = BOOTSTRAP_TOKEN_IDS.map(bootstrapTokenSecretName);
  const account = { name: IGNITION_ACCOUNT, namespace: NAMESPACE, labels: DRYDOCK_LABELS };
  return [
    { resource: KINDS.serviceAccount, object: { metadata: account } },
    ...grantedTo(ignitionUser, { name: roleName(flavour) }, [
      on(group, [machineConfig.plural, machineConfigPool.plural], READ),
      { ...on('', ['namespaces'], ['get']), resourceNames: [BOOTSTRAP_TOKEN_NAMESPACE] },
    ]),
    ...grantedTo(ignitionUser, { name: 'drydock:ignition-server', namespace: BOOTSTRAP_TOKEN_NAMESPACE }, [
      onSecrets(tokens, READ),
    ]),
    ...grantedTo(ignitionUser, { name: 'drydock:ignition-server', namespace: NAMESPACE }, [
      onSecrets([IGNITION_TLS_SECRET], READ),
    ]),
    ...grantedTo(controlUser, { name: 'drydock:bootstrap-tokens', namespace: BOOTSTRAP_TOKEN_NAMESPACE }, [
      onSecrets(tokens, ['get', 'patch']),
    ]),
    ...tokens.map(emptyToken),
  ];
}

/** A token without a secret is none. Of its contents only the groups are ours to keep. */
function emptyToken(name: string): Manifest {
  return {
    resource: KINDS.secret,
    object: {
      metadata: { name, namespace: BOOTSTRAP_TOKEN_NAMESPACE, labels: DRYDOCK_LABELS },
      type: BOOTSTRAP_TOKEN_TYPE,
      data: { 'auth-extra-groups': Buffer.from(JOINING_GROUPS).toString('base64') },
    },
  };
}
