import { describe, expect, it } from 'vitest';
import { parseEnvironment } from '../../../activities/process/settings.js';
import { IGNITION_SETTINGS } from '../../../ignition-server/config.js';

const LEAST = {
  DRYDOCK_IGNITION_URL: 'https://boot.example:22623/',
  DRYDOCK_API_SERVER_URL: 'https://api.example:6443',
  DRYDOCK_NODE_PACKAGE: '/packages/node.tar.gz',
  DRYDOCK_NODE_ENV_FILE: '/etc/drydock/ignition/node.env',
};
const parse = (more: Record<string, string> = {}) => parseEnvironment(IGNITION_SETTINGS, { ...LEAST, ...more });

describe('the settings of the Ignition server', () => {
  it('have defaults for all that need not be said', () => {
    expect(parse()).toMatchObject({
      address: '0.0.0.0:22623',
      url: 'https://boot.example:22623',
      kubelet: 'kubeadm',
      allowedNetworks: [],
      requestsPerMinute: 120,
      tokenFile: undefined,
    });
  });

  it('name everything that is missing, at once', () => {
    expect(() => parseEnvironment(IGNITION_SETTINGS, {})).toThrow(
      /DRYDOCK_IGNITION_URL[^]*DRYDOCK_API_SERVER_URL[^]*DRYDOCK_NODE_PACKAGE[^]*DRYDOCK_NODE_ENV_FILE/u,
    );
  });

  it('take several networks', () => {
    expect(parse({ DRYDOCK_ALLOWED_NETWORKS: '10.0.0.0/8, fd00::/8 192.168.0.0/16' }).allowedNetworks).toEqual([
      '10.0.0.0/8',
      'fd00::/8',
      '192.168.0.0/16',
    ]);
  });

  it.each([
    ['DRYDOCK_IGNITION_URL', 'http://boot.example', 'is no https:// URL'],
    ['DRYDOCK_ALLOWED_NETWORKS', '10.0.0.0', 'is no network'],
    ['DRYDOCK_TLS_SECRET', 'just-a-name', 'is not namespace/name'],
    ['DRYDOCK_REQUESTS_PER_MINUTE', 'many', 'is not a whole number'],
    ['DRYDOCK_KUBELET_LAYOUT', 'k0s', 'kubeadm'],
  ])('refuse %s=%s', (variable, value, why) => {
    expect(() => parse({ [variable]: value })).toThrow(why);
  });
});
