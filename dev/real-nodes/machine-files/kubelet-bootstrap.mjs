/**
 * How a kubelet joins a cluster: with a bootstrap token it asks for a certificate of its own, waits until that is signed,
 * and from then on is its node. Node built-ins only.
 */
import { generateKeyPairSync, sign } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const PEM = '/var/lib/kubelet/pki/kubelet-client-current.pem';
/** A name of the API server's certificate: the lab's machines reach it by an address that is not in it. */
const SERVER_NAME = 'kubernetes';
const RETRY_MS = 500;
const REQUESTS = '/apis/certificates.k8s.io/v1/certificatesigningrequests';

/** Writes the kubeconfig of the node, and the certificate that it names. Does not give up. */
export async function bootstrap({ node, from, kubeconfig }) {
  const text = readFileSync(from, 'utf8');
  const value = (key) => new RegExp(`^\\s*${key}: *"?([^"\\n]+)"?$`, 'm').exec(text)?.[1];
  const server = value('server');
  const ca = value('certificate-authority-data');
  const call = caller({ server, ca: Buffer.from(ca, 'base64'), token: value('token') });
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const certificate = await signed(call, node, certificateRequest(node, publicKey, privateKey));
  mkdirSync(dirname(PEM), { recursive: true });
  put(PEM, `${certificate}${privateKey.export({ type: 'pkcs8', format: 'pem' })}`);
  put(
    kubeconfig,
    `apiVersion: v1
kind: Config
clusters:
  - name: lab
    cluster:
      server: ${server}
      tls-server-name: ${SERVER_NAME}
      certificate-authority-data: ${ca}
users:
  - name: kubelet
    user:
      client-certificate: ${PEM}
      client-key: ${PEM}
contexts:
  - name: lab
    context:
      cluster: lab
      user: kubelet
current-context: lab
`,
  );
}

function put(file, text) {
  writeFileSync(`${file}.new`, text, { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

async function signed(call, node, csr) {
  const metadata = { generateName: `node-csr-${node}-` };
  const usages = ['digital signature', 'client auth'];
  const signerName = 'kubernetes.io/kube-apiserver-client-kubelet';
  const body = {
    ...{ apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest', metadata },
    spec: { request: Buffer.from(csr).toString('base64'), signerName, usages },
  };
  const made = await untilAnswered(() => call('POST', REQUESTS, body));
  for (;;) {
    const { status } = await untilAnswered(() => call('GET', `${REQUESTS}/${made.metadata.name}`));
    if (status?.certificate) return Buffer.from(status.certificate, 'base64').toString();
    await sleep(RETRY_MS);
  }
}

async function untilAnswered(ask) {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      console.error(`bootstrap: ${error.message}`);
      await sleep(RETRY_MS);
    }
  }
}

function caller({ server, ca, token }) {
  return (method, path, body) =>
    new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
      const tls = { ca, servername: SERVER_NAME };
      const asked = request(new URL(path, server), { method, headers, ...tls }, (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (piece) => (text += piece));
        response.once('end', () =>
          response.statusCode < 300
            ? resolve(JSON.parse(text))
            : reject(new Error(`${method} ${path}: ${response.statusCode} ${text.slice(0, 300)}`)),
        );
      });
      asked.once('error', reject);
      asked.end(body === undefined ? undefined : JSON.stringify(body));
    });
}

/** PKCS #10 (RFC 2986), in PEM. */
function certificateRequest(node, publicKey, privateKey) {
  const named = (oid, text) => der(0x31, der(0x30, oid, der(0x0c, Buffer.from(text))));
  const organization = Buffer.from([0x06, 3, 0x55, 4, 10]);
  const commonName = Buffer.from([0x06, 3, 0x55, 4, 3]);
  const subject = der(0x30, named(organization, 'system:nodes'), named(commonName, `system:node:${node}`));
  const key = publicKey.export({ type: 'spki', format: 'der' });
  const info = der(0x30, Buffer.from([0x02, 1, 0]), subject, key, der(0xa0));
  // ecdsa-with-SHA256
  const algorithm = der(0x30, Buffer.from([0x06, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2]));
  const signature = der(0x03, Buffer.from([0]), sign('sha256', info, privateKey));
  const lines = der(0x30, info, algorithm, signature)
    .toString('base64')
    .match(/.{1,64}/g);
  return ['-----BEGIN CERTIFICATE REQUEST-----', ...lines, '-----END CERTIFICATE REQUEST-----', ''].join('\n');
}

function der(tag, ...parts) {
  const content = Buffer.concat(parts);
  const size = content.length;
  if (size < 0x80) return Buffer.concat([Buffer.from([tag, size]), content]);
  const bytes = size < 0x100 ? [0x81, size] : [0x82, size >> 8, size & 0xff];
  return Buffer.concat([Buffer.from([tag, ...bytes]), content]);
}
