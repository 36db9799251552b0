import { z } from 'zod';
import { CLUSTER_SETTINGS, LOG_SETTINGS, setting } from '../activities/process/settings.js';
import { KUBELET_LAYOUTS, type KubeletLayout } from '../machine-config/first-boot/paths.js';

const text = z.string().min(1);
const optionalText = text.optional();
const httpsUrl = z
  .url({ protocol: /^https$/u, error: 'is no https:// URL' })
  .transform((url) => url.replace(/\/+$/u, ''));
const layouts = Object.keys(KUBELET_LAYOUTS) as [KubeletLayout, ...KubeletLayout[]];

/** Networks in CIDR notation, separated by commas or blanks. */
const networks = z
  .string()
  .default('')
  .transform((list) => list.split(/[\s,]+/u).filter((network) => network !== ''))
  .pipe(z.array(z.union([z.cidrv4(), z.cidrv6()], { error: 'is no network such as 10.0.0.0/8 or fd00::/8' })));

const CONTAINER_CA = '/var/run/secrets/kubernetes.io/serviceaccount/ca.crt';

/** All that the Ignition server is told; read once, at its start. */
export const IGNITION_SETTINGS = {
  ...LOG_SETTINGS,
  ...CLUSTER_SETTINGS,
  address: setting('DRYDOCK_IGNITION_ADDRESS', text.default('0.0.0.0:22623'), 'where it listens, host:port'),
  url: setting('DRYDOCK_IGNITION_URL', httpsUrl, 'where machines reach it, https://host:port'),
  certificateFile: setting('DRYDOCK_TLS_CERTIFICATE_FILE', optionalText, "the server's certificate chain, in PEM"),
  keyFile: setting('DRYDOCK_TLS_KEY_FILE', optionalText, "the server's key, in PEM"),
  authorityFile: setting(
    'DRYDOCK_TLS_CA_FILE',
    optionalText,
    "the authorities of the server's certificate, in PEM; default: the certificate file",
  ),
  tlsSecret: setting(
    'DRYDOCK_TLS_SECRET',
    z
      .string()
      .regex(/^[^/\s]+\/[^/\s]+$/u, 'is not namespace/name')
      .optional(),
    'the Secret with tls.crt, tls.key and ca.crt, namespace/name, instead of the files',
  ),
  apiServer: setting('DRYDOCK_API_SERVER_URL', httpsUrl, 'where kubelets reach the API server, https://host:port'),
  apiServerAuthorityFile: setting(
    'DRYDOCK_API_SERVER_CA_FILE',
    text.default(CONTAINER_CA),
    'the authorities of the API server, in PEM',
  ),
  nodePackage: setting('DRYDOCK_NODE_PACKAGE', text, 'the package of the node worker, drydock-node-….tar.gz'),
  nodeEnvironmentFile: setting(
    'DRYDOCK_NODE_ENV_FILE',
    text,
    'the settings of the node workers, as in node.env: where Temporal is, and by which credentials',
  ),
  kubelet: setting(
    'DRYDOCK_KUBELET_LAYOUT',
    z.enum(layouts).default('kubeadm'),
    'where the kubelet of a new machine looks for its bootstrap kubeconfig',
  ),
  tokenFile: setting(
    'DRYDOCK_PROVISIONING_TOKEN_FILE',
    optionalText,
    'the token that a machine must send; absent: none is asked for',
  ),
  clientAuthorityFile: setting(
    'DRYDOCK_CLIENT_CA_FILE',
    optionalText,
    'the authorities of client certificates, in PEM; absent: none is asked for',
  ),
  allowedNetworks: setting(
    'DRYDOCK_ALLOWED_NETWORKS',
    networks,
    'the networks from which configs are given out; absent: all',
  ),
  requestsPerMinute: setting(
    'DRYDOCK_REQUESTS_PER_MINUTE',
    z
      .string()
      .regex(/^\d{1,7}$/u, 'is not a whole number')
      .default('120')
      .transform(Number),
    'how many configs and packages one address may fetch in a minute; 0: any number',
  ),
};
