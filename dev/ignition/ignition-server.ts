import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { IGNITION_USER } from '../../client/install/first-boot.js';
import { findFreePorts } from '../processes/free-ports.js';
import { waitUntil } from '../processes/wait-until.js';
import { CertificateAuthority } from '../kubernetes/certificates.js';
import type { Lab, LabProcess } from '../lab.js';
import { askServer, type ServerAnswer } from './ask-server.js';

export interface LabIgnitionOptions {
  /** The package of the node worker. */
  readonly nodePackage: string;
  /** Settings of the node workers. */
  readonly nodeEnvironment: Readonly<Record<string, string>>;
  /** By which address kubelets reach the API server; default: this host's own. */
  readonly apiServer?: string;
  /** More settings of the server. */
  readonly environment?: Readonly<Record<string, string>>;
}

/** The Ignition server as a process of the lab, with its own identity and a certificate of the lab's authority. */
export interface LabIgnitionServer {
  readonly process: LabProcess;
  readonly url: string;
  /** File with the authority of its certificate, in PEM. */
  readonly authorityFile: string;
  readonly authority: string;
  get(path: string, headers?: Readonly<Record<string, string>>): Promise<ServerAnswer>;
}

const PROGRAM = fileURLToPath(new URL('../../ignition-server/main.ts', import.meta.url));
const READY_TIMEOUT_MS = 60_000;

/** Starts it, beside a control plane of the lab. Resolves once it listens. It ends with the lab. */
export async function startIgnitionServer(lab: Lab, options: LabIgnitionOptions): Promise<LabIgnitionServer> {
  const { kubernetes } = lab;
  const directory = join(lab.directory, 'ignition-server');
  await mkdir(directory, { recursive: true });
  const authorityFile = join(lab.directory, 'kubernetes/ca.crt');
  const authority = await CertificateAuthority.open(join(lab.directory, 'kubernetes'));
  const { key, certificate } = authority.issueServer('ignition-server', { dns: ['localhost'], ip: ['127.0.0.1'] });
  const files = {
    key: join(directory, 'tls.key'),
    certificate: join(directory, 'tls.crt'),
    env: join(directory, 'env'),
  };
  await writeFile(files.key, key, { mode: 0o600 });
  await writeFile(files.certificate, certificate);
  const lines = Object.entries(options.nodeEnvironment).map(([name, value]) => `${name}=${value}\n`);
  await writeFile(files.env, lines.join(''), { mode: 0o600 });
  const [port = 0] = await findFreePorts(1);
  const url = `https://127.0.0.1:${port}`;
  const process = await lab.run({
    id: 'ignition-server',
    command: globalThis.process.execPath,
    args: ['--import', import.meta.resolve('tsx'), PROGRAM],
    env: {
      DRYDOCK_KUBECONFIG: await kubernetes.userKubeconfig(IGNITION_USER),
      DRYDOCK_IGNITION_ADDRESS: `127.0.0.1:${port}`,
      DRYDOCK_IGNITION_URL: url,
      DRYDOCK_TLS_KEY_FILE: files.key,
      DRYDOCK_TLS_CERTIFICATE_FILE: files.certificate,
      DRYDOCK_TLS_CA_FILE: authorityFile,
      DRYDOCK_API_SERVER_URL: options.apiServer ?? kubernetes.server,
      DRYDOCK_API_SERVER_CA_FILE: authorityFile,
      DRYDOCK_NODE_PACKAGE: options.nodePackage,
      DRYDOCK_NODE_ENV_FILE: files.env,
      ...options.environment,
    },
  });
  const get = (path: string, headers: Readonly<Record<string, string>> = {}) =>
    askServer(`${url}${path}`, { ca: authority.certificate, headers });
  await waitUntil(async () => (await get('/healthz')).status === 200, {
    what: 'the Ignition server to listen',
    timeoutMs: READY_TIMEOUT_MS,
    check: () => process.assertRunning(),
  });
  return { process, url, authorityFile, authority: authority.certificate, get };
}
