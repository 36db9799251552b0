import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { z } from 'zod';

/** A name of the API server's certificate: a machine reaches it by an address that is not in it. */
const SERVER_NAME = 'kubernetes';
const PKI = '/var/lib/kubelet/pki';
const CURRENT = `${PKI}/kubelet-client-current.pem`;

export const KUBELET_KUBECONFIG = '/etc/kubernetes/kubelet.conf';

const kubeconfigSchema = z.object({
  clusters: z.tuple([z.object({ cluster: z.object({ server: z.url(), 'certificate-authority-data': z.string() }) })]),
  users: z.tuple([
    z.object({
      user: z.strictObject({ 'client-certificate-data': z.string(), 'client-key-data': z.string() }),
    }),
  ]),
});

export interface IdentityInput {
  readonly root: string;
  /** As the lab wrote it for this node, for use on this host. */
  readonly kubeconfig: string;
  /** Where the machine reaches this host. */
  readonly gateway: string;
}

/** Gives a machine the kubelet's kubeconfig and client certificate, where kubeadm puts them. */
export async function writeIdentity({ root, kubeconfig, gateway }: IdentityInput): Promise<void> {
  const parsed = kubeconfigSchema.safeParse(parse(await readFile(kubeconfig, 'utf8')));
  if (!parsed.success) {
    throw new Error(
      'real nodes need the control plane of the lab: they cannot join a cluster of your own (--kubeconfig)',
    );
  }
  const [{ cluster }] = parsed.data.clusters;
  const [{ user }] = parsed.data.users;
  const decode = (data: string) => Buffer.from(data, 'base64').toString('utf8');
  await mkdir(join(root, PKI), { recursive: true, mode: 0o755 });
  await mkdir(join(root, 'etc/kubernetes/manifests'), { recursive: true });
  const pem = 'kubelet-client-2026-01-01-00-00-00.pem';
  const keyAndCertificate = `${decode(user['client-certificate-data'])}${decode(user['client-key-data'])}`;
  await writeFile(join(root, PKI, pem), keyAndCertificate, { mode: 0o600 });
  await symlink(`${PKI}/${pem}`, join(root, CURRENT));
  const { port } = new URL(cluster.server);
  const name = 'lab';
  const content = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name,
        cluster: {
          server: `https://${gateway}:${port}`,
          'tls-server-name': SERVER_NAME,
          'certificate-authority-data': cluster['certificate-authority-data'],
        },
      },
    ],
    users: [{ name: 'kubelet', user: { 'client-certificate': CURRENT, 'client-key': CURRENT } }],
    contexts: [{ name, context: { cluster: name, user: 'kubelet' } }],
    'current-context': name,
  };
  await writeFile(join(root, KUBELET_KUBECONFIG), stringify(content, { lineWidth: 0 }), { mode: 0o600 });
}
