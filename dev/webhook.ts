import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { WebhookPlace } from '../client/install/webhook.js';
import { CertificateAuthority } from './kubernetes/certificates.js';
import type { Lab } from './lab.js';
import { findFreePorts } from './processes/free-ports.js';

export interface LabWebhook {
  /** For the installation. */
  readonly place: WebhookPlace;
  /** For the control worker. */
  readonly environment: Readonly<Record<string, string>>;
}

/** Where the first control worker of a lab serves its webhook, with a certificate of the lab's own authority. */
export async function prepareWebhook(lab: Lab): Promise<LabWebhook> {
  const authority = await CertificateAuthority.open(join(lab.directory, 'kubernetes'));
  const { key, certificate } = authority.issueServer('drydock-webhook', { dns: ['localhost'], ip: ['127.0.0.1'] });
  const keyFile = join(lab.directory, 'webhook.key');
  const certificateFile = join(lab.directory, 'webhook.crt');
  await writeFile(keyFile, key, { mode: 0o600 });
  await writeFile(certificateFile, certificate);
  const [port] = await findFreePorts(1);
  const address = `127.0.0.1:${port}`;
  return {
    place: { url: `https://${address}/validate`, authority: authority.certificate },
    environment: {
      DRYDOCK_WEBHOOK_ADDRESS: address,
      DRYDOCK_WEBHOOK_KEY_FILE: keyFile,
      DRYDOCK_WEBHOOK_CERTIFICATE_FILE: certificateFile,
    },
  };
}
