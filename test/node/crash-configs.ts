import { DRYDOCK_ANNOTATIONS } from '../../machine-config/api/flavour.js';
import { freezePolicies } from '../../machine-config/change/frozen-policies.js';
import { mergePolicies } from '../../machine-config/change/policies.js';
import { file, rendered } from '../support/fake-host.js';

/** What the machine has before Drydock ever sees it. */
export const ORIGINAL_FILES: readonly (readonly [path: string, contents: string])[] = [
  ['/etc/motd', 'The motd of the operating system.\n'],
  ['/etc/issue.net', 'Original.\n'],
  ['/usr/lib/systemd/system/vendor.service', service('ExecStart=/bin/sleep infinity')],
];

function service(...lines: string[]): string {
  return ['[Unit]', 'Description=Of a test', '[Service]', ...lines, '[Install]', 'WantedBy=multi-user.target', ''].join(
    '\n',
  );
}

const none = { type: 'None' } as const;
const POLICIES = mergePolicies({
  files: [{ path: '/', actions: [none] }],
  units: [
    {
      name: 'clock.service',
      actions: [{ type: 'DaemonReload' }, { type: 'Restart', restart: { serviceName: 'clock.service' } }],
    },
    ...['leaving', 'coming', 'vendor', 'masked', 'templated@', 'templated@one'].map((name) => ({
      name: `${name}.service`,
      actions: [none],
    })),
  ],
});

const withPolicies = (config: ReturnType<typeof rendered>) => ({
  ...config,
  metadata: {
    ...config.metadata,
    annotations: { [DRYDOCK_ANNOTATIONS.disruptionPolicies]: freezePolicies(POLICIES, 1) },
  },
});

const key = (name: string) => `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI${name.padEnd(43, 'A')} ${name}`;
const users = (...keys: string[]) => ({ users: [{ name: 'core', sshAuthorizedKeys: keys.map(key) }] });

/** Two configs between which every kind of item comes, changes and goes, and services are acted upon, without a reboot. */
export const OLD_CONFIG = withPolicies(
  rendered('rendered-worker-old', {
    storage: {
      files: [
        file('/etc/motd', 'The old motd.\n'),
        file('/etc/app/changing.conf', 'old\n', { mode: 0o640, user: { name: 'core' }, group: { name: 'core' } }),
        file('/etc/app/leaving.conf', 'leaving\n'),
        file('/usr/local/bin/tool', '#!/bin/sh\necho old\n', { mode: 0o755 }),
      ],
    },
    systemd: {
      units: [
        {
          name: 'clock.service',
          enabled: true,
          contents: service('ExecStart=/bin/sleep infinity'),
          dropins: [{ name: '10-mode.conf', contents: '[Service]\nEnvironment=MODE=old\n' }],
        },
        { name: 'leaving.service', enabled: true, contents: service('ExecStart=/bin/sleep infinity') },
        { name: 'vendor.service', enabled: true },
        { name: 'masked.service', mask: true },
      ],
    },
    passwd: users('old', 'both'),
  }),
);

export const NEW_CONFIG = withPolicies(
  rendered('rendered-worker-new', {
    storage: {
      files: [
        file('/etc/issue.net', 'The new issue.\n', { mode: 0o600 }),
        file('/etc/app/changing.conf', 'new\n', { mode: 0o400 }),
        file('/etc/deep/er/coming.conf', `coming\n${'x'.repeat(3 * 1024 * 1024)}\n`),
        file('/usr/local/bin/tool', '#!/bin/sh\necho new\n', { mode: 0o755 }),
      ],
    },
    systemd: {
      units: [
        {
          name: 'clock.service',
          enabled: true,
          contents: service('ExecStart=/bin/sleep 1000000'),
          dropins: [{ name: '20-mode.conf', contents: '[Service]\nEnvironment=MODE=new\n' }],
        },
        { name: 'coming.service', enabled: true, contents: service('ExecStart=/usr/local/bin/tool') },
        { name: 'templated@.service', contents: service('ExecStart=/bin/sleep infinity') },
        { name: 'templated@one.service', enabled: true },
        { name: 'vendor.service', enabled: false },
        { name: 'masked.service', mask: false, contents: service('ExecStart=/bin/true') },
      ],
    },
    passwd: users('both', 'new'),
  }),
);
