import { writeFile } from 'node:fs/promises';
import { request as httpsRequest, type RequestOptions } from 'node:https';
import { TLSSocket } from 'node:tls';
import { generate } from 'selfsigned';
import type { KubernetesObject } from '../../activities/kubernetes/client.js';
import { KINDS } from '../../activities/kubernetes/client.js';
import type { ServerIdentity } from '../../ignition-server/certificates.js';
import {
  BOOTSTRAP_TOKEN_TYPE,
  bootstrapTokenSecretName,
  type BootstrapTokenId,
} from '../../machine-config/first-boot/bootstrap-token.js';
import { apiVersionOf, type ApiFlavour } from '../../machine-config/api/flavour.js';
import { renderedName } from '../../machine-config/render/name.js';

const DAY_MS = 24 * 60 * 60_000;

/** A certificate for this machine, which is its own authority. */
export async function selfSignedIdentity(address = '127.0.0.1'): Promise<ServerIdentity> {
  const notAfterDate = new Date(Date.now() + DAY_MS);
  const { cert, private: key } = await generate([{ name: 'commonName', value: 'drydock ignition' }], {
    keyType: 'ec',
    notAfterDate,
    extensions: [
      { name: 'basicConstraints', cA: true },
      { name: 'subjectAltName', altNames: [{ type: 7, ip: address }] },
    ],
  });
  return {
    certificate: cert,
    key,
    authority: `${cert.trim()}\n`,
    expiresAt: Math.floor(notAfterDate.getTime() / 1000) * 1000,
  };
}

/** As an administrator writes them to disk. */
export async function writeIdentity(folder: string, { certificate, key }: ServerIdentity): Promise<void> {
  await writeFile(`${folder}/tls.crt`, certificate);
  await writeFile(`${folder}/tls.key`, key);
}

/** A rendered config of the pool that the pool owns. */
export function renderedConfig(flavour: ApiFlavour, pool: string, ignition: object, size = 0): KubernetesObject {
  const padding = { path: '/srv/padding', contents: { source: `data:,${'x'.repeat(size)}` } };
  const spec = {
    config: {
      ignition: { version: '3.4.0' },
      ...ignition,
      ...(size === 0 ? {} : { storage: { files: [padding] } }),
    },
  };
  const owner = { apiVersion: apiVersionOf(flavour.machineConfigPool), kind: flavour.machineConfigPool.kind };
  return {
    metadata: {
      name: renderedName(pool, spec),
      ownerReferences: [{ ...owner, name: pool, uid: 'uid-of-the-pool', controller: true }],
    },
    spec,
  } as KubernetesObject;
}

/** As the control worker writes it. */
export function tokenSecret(id: BootstrapTokenId, secret: string, expiresAt: number): KubernetesObject {
  const data = {
    'token-id': id,
    'token-secret': secret,
    'usage-bootstrap-authentication': 'true',
    expiration: new Date(expiresAt).toISOString(),
  };
  return {
    metadata: { name: bootstrapTokenSecretName(id), namespace: 'kube-system' },
    type: BOOTSTRAP_TOKEN_TYPE,
    data: Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString('base64')])),
  } as KubernetesObject;
}

export const SECRET = KINDS.secret;

export interface HttpsAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  /** TLSv1.2, TLSv1.3 */
  readonly protocol: string | null;
  /** Of the certificate that the server showed. */
  readonly fingerprint: string;
}

/** One request on a connection of its own. */
export function ask(url: string, options: RequestOptions): Promise<HttpsAnswer> {
  return new Promise((resolve, reject) => {
    const call = httpsRequest(url, { agent: false, ...options }, (response) => {
      const { socket } = response;
      if (!(socket instanceof TLSSocket)) throw new Error('unreachable: https is over TLS');
      const [protocol, fingerprint] = [socket.getProtocol(), socket.getPeerCertificate().fingerprint256];
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (piece: string) => (text += piece));
      response.once('error', reject);
      response.once('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text, protocol, fingerprint }),
      );
    });
    call.once('error', reject);
    call.end();
  });
}
