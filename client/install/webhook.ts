import { KINDS, type KubernetesClient, type KubernetesObject } from '../../activities/kubernetes/client.js';
import { ifThere } from '../../activities/kubernetes/failures.js';
import type { ApiFlavour, ResourceKind } from '../../machine-config/api/flavour.js';
import { IMAGE_DIGEST_MIRROR_SET, IMAGE_TAG_MIRROR_SET } from '../../machine-config/api/image-mirrors.js';
import { DRYDOCK_LABELS, type Manifest } from './manifest.js';

/** Where the API server finds the webhook of the control workers. */
export interface WebhookPlace {
  /** `https://host:port/validate`, as the API server reaches it. */
  readonly url: string;
  /** The authority of the webhook's certificate, as PEM. */
  readonly authority: string;
}

/** The API server waits no longer; a control worker that is away must not hold up what people do. */
const TIMEOUT_SECONDS = 5;

const nameOf = (flavour: ApiFlavour): string => `drydock-${flavour.name}`;

/** What the webhook is asked about. */
function judgedKinds(flavour: ApiFlavour): ResourceKind[] {
  return [
    flavour.machineConfig,
    flavour.machineConfigPool,
    flavour.machineConfiguration,
    flavour.controllerConfig,
    flavour.kubeletConfig,
    flavour.containerRuntimeConfig,
    IMAGE_DIGEST_MIRROR_SET,
    IMAGE_TAG_MIRROR_SET,
  ];
}

type WebhookConfiguration = KubernetesObject & {
  readonly webhooks?: readonly { readonly clientConfig: { readonly url?: string; readonly caBundle?: string } }[];
};

/** The webhook that an earlier installation told the API server of; undefined: none. */
export async function installedWebhook(
  client: KubernetesClient,
  flavour: ApiFlavour,
): Promise<WebhookPlace | undefined> {
  const kind = KINDS.validatingWebhookConfiguration;
  const live = await ifThere(() => client.get<WebhookConfiguration>(kind, { name: nameOf(flavour) }));
  const { url, caBundle = '' } = live?.webhooks?.[0]?.clientConfig ?? {};
  return url === undefined ? undefined : { url, authority: Buffer.from(caBundle, 'base64').toString() };
}

/**
 * Has the API server ask the control workers about each change of a MachineConfig and its kin. Their own changes are not asked about, and where
 * no control worker answers a change passes: the render finds what is wrong with it all the same.
 */
export function webhookManifest(flavour: ApiFlavour, place: WebhookPlace, controlUser: string): Manifest {
  return {
    resource: KINDS.validatingWebhookConfiguration,
    object: {
      metadata: { name: nameOf(flavour), labels: DRYDOCK_LABELS },
      webhooks: [
        {
          name: `validate.${flavour.group}`,
          clientConfig: { url: place.url, caBundle: Buffer.from(place.authority).toString('base64') },
          rules: judgedKinds(flavour).map(({ group, version, plural }) => ({
            apiGroups: [group],
            apiVersions: [version],
            operations: ['CREATE', 'UPDATE'],
            resources: [plural],
            scope: 'Cluster',
          })),
          matchConditions: [
            {
              name: 'not-the-control-worker',
              expression: `request.userInfo.username != ${JSON.stringify(controlUser)}`,
            },
          ],
          failurePolicy: 'Ignore',
          matchPolicy: 'Equivalent',
          sideEffects: 'None',
          timeoutSeconds: TIMEOUT_SECONDS,
          admissionReviewVersions: ['v1'],
        },
      ],
    },
  };
}
