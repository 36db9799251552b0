import { stringify } from 'yaml';
import type { KeyAndCertificate } from './certificates.js';

/** How a user of the lab's cluster proves who he is. */
export interface Credentials {
  readonly server: string;
  readonly authority: string;
  readonly client: KeyAndCertificate;
}

/** A kubeconfig with everything in it: it works wherever it is copied to on this machine. */
export function formatKubeconfig(user: string, { server, authority, client }: Credentials): string {
  const encode = (text: string) => Buffer.from(text).toString('base64');
  return stringify(
    {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'drydock-lab', cluster: { server, 'certificate-authority-data': encode(authority) } }],
      users: [
        {
          name: user,
          user: { 'client-certificate-data': encode(client.certificate), 'client-key-data': encode(client.key) },
        },
      ],
      contexts: [{ name: 'drydock-lab', context: { cluster: 'drydock-lab', user } }],
      'current-context': 'drydock-lab',
    },
    { lineWidth: 0 },
  );
}
