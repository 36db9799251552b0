import { randomInt } from 'node:crypto';
import {
  BOOTSTRAP_TOKEN_IDS,
  BOOTSTRAP_TOKEN_NAMESPACE,
  bootstrapTokenSecretName,
  TOKEN_TIMES,
  tokenFields,
  tokenRenewal,
  type BootstrapTokenId,
  type BootstrapTokenSecret,
} from '../../machine-config/first-boot/bootstrap-token.js';
import type { RenewBootstrapTokenInput, RenewBootstrapTokenResult } from '../../workflows/contract/activities.js';
import { KINDS, type KubernetesClient, type KubernetesObject } from '../kubernetes/client.js';
import { failedWith } from '../kubernetes/failures.js';
import { refuseOtherCluster, type ControlDependencies } from './control-dependencies.js';

type TokenSecret = KubernetesObject & BootstrapTokenSecret;
type TokenSecrets = Readonly<Record<BootstrapTokenId, TokenSecret>>;

const LETTERS = 'abcdefghijklmnopqrstuvwxyz0123456789';
const SECRET_LENGTH = 16;

/**
 * Makes the bootstrap token anew if that is due. Whether it is, is read off the Secrets themselves and by this process's
 * own clock: whoever asks can neither make one early nor have it last longer. The token never leaves this function.
 */
export async function renewBootstrapToken(
  { client, cluster, now }: Pick<ControlDependencies, 'client' | 'cluster' | 'now'>,
  input: RenewBootstrapTokenInput,
): Promise<RenewBootstrapTokenResult> {
  refuseOtherCluster(cluster, input.cluster);
  const secrets = await bootstrapTokenSecrets(client);
  if (secrets === undefined) return { outcome: 'absent' };
  const { renew, dueInMs } = tokenRenewal(secrets, now());
  const dueInSeconds = Math.ceil(dueInMs / 1000);
  if (renew === undefined) return { outcome: 'kept', dueInSeconds };
  await write(client, renew, { version: secrets[renew].metadata.resourceVersion, now: now() });
  return { outcome: 'renewed', id: renew, dueInSeconds };
}

/** Undefined: no first boots were asked for when Drydock was installed here. */
export async function bootstrapTokenSecrets(client: KubernetesClient): Promise<TokenSecrets | undefined> {
  try {
    const [first, second] = await Promise.all(
      BOOTSTRAP_TOKEN_IDS.map((id) =>
        client.get<TokenSecret>(KINDS.secret, {
          namespace: BOOTSTRAP_TOKEN_NAMESPACE,
          name: bootstrapTokenSecretName(id),
        }),
      ),
    );
    return first === undefined || second === undefined ? undefined : { drydka: first, drydkb: second };
  } catch (error) {
    if (failedWith(error, 'NotFound', 'Forbidden')) return undefined;
    throw error;
  }
}

/** Two control workers that find the same one due make one of it: the later write is a conflict, and finds it kept. */
async function write(
  client: KubernetesClient,
  id: BootstrapTokenId,
  { version, now }: { version: string | undefined; now: number },
): Promise<void> {
  const secret = Array.from({ length: SECRET_LENGTH }, () => LETTERS[randomInt(LETTERS.length)]).join('');
  const fields = Object.entries(tokenFields(id, secret, now + TOKEN_TIMES.lastsMs));
  const data = Object.fromEntries(fields.map(([key, value]) => [key, Buffer.from(value).toString('base64')]));
  const name = { namespace: BOOTSTRAP_TOKEN_NAMESPACE, name: bootstrapTokenSecretName(id) };
  await client.patch(KINDS.secret, name, { metadata: { resourceVersion: version }, data });
}
