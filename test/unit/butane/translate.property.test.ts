import { fc, test } from '@fast-check/vitest';
import { afterAll, expect, inject } from 'vitest';
import { stringify } from 'yaml';
import { parseMachineConfig } from '../../../machine-config/api/parse.js';
import type { MachineConfig } from '../../../machine-config/api/machine-config.js';
import type { IgnitionConfig } from '../../../machine-config/ignition/config.js';
import { parseIgnition } from '../../../machine-config/ignition/parse.js';
import { BUTANE_VARIANTS } from '../../../machine-config/butane/specs.js';
import { invalidConfigs } from '../../support/ignition-validate.js';
import { machineConfigOf, textOf, translate } from './translating.js';

const WORKER = { machineConfig: { name: '99-worker-b', role: 'worker' } };
/** A text that YAML can hold and a file of a config too. */
const contents = fc.string({ unit: 'grapheme', maxLength: 400 });
const name = fc.stringMatching(/^[a-z][a-z0-9]{0,7}$/);

const files = fc.uniqueArray(
  fc.record({ path: name.map((word) => `/etc/${word}`), mode: fc.integer({ min: 0, max: 0o777 }), inline: contents }),
  { selector: ({ path }) => path, maxLength: 5 },
);
const units = fc.uniqueArray(
  fc.record({ name: name.map((word) => `${word}.service`), enabled: fc.boolean(), line: name }),
  { selector: (unit) => unit.name, maxLength: 4 },
);
const source = fc.record({
  version: fc.constantFrom('4.8.0', '4.12.0', '4.14.0', '4.18.0', '4.20.0'),
  files,
  units,
  keys: fc.uniqueArray(
    name.map((word) => `ssh-ed25519 ${word}`),
    { maxLength: 3 },
  ),
  kernelArguments: fc.array(name, { maxLength: 3 }),
});

function butaneOf(given: typeof source extends fc.Arbitrary<infer S> ? S : never): string {
  return stringify(
    {
      variant: 'openshift',
      version: given.version,
      metadata: { name: '99-worker-a', labels: { 'machineconfiguration.openshift.io/role': 'worker' } },
      openshift: { kernel_arguments: given.kernelArguments },
      passwd: { users: [{ name: 'core', ssh_authorized_keys: given.keys }] },
      storage: { files: given.files.map(({ path, mode, inline }) => ({ path, mode, contents: { inline } })) },
      systemd: {
        units: given.units.map((unit) => ({
          name: unit.name,
          enabled: unit.enabled,
          contents: `[Unit]\nDescription=${unit.line}\n`,
        })),
      },
    },
    { lineWidth: 0 },
  );
}

const translatedConfigs: MachineConfig[] = [];
afterAll(async () => {
  const program = inject('ignitionValidate');
  if (program !== '') expect(await invalidConfigs(program, translatedConfigs.slice(0, 40))).toEqual([]);
}, 60_000);

test.prop([source])('what is translated is a MachineConfig by our own schema, and says what the file says', (given) => {
  const machineConfig = machineConfigOf(butaneOf(given));
  translatedConfigs.push(machineConfig);
  expect(parseMachineConfig(machineConfig)).toMatchObject({ ok: true });
  expect(parseIgnition(machineConfig.spec?.config).problems).toEqual([]);
  const config = machineConfig.spec?.config as unknown as IgnitionConfig;
  expect((config.storage?.files ?? []).map((file) => [file.path, file.mode, textOf(file.contents)])).toEqual(
    given.files.map(({ path, mode, inline }) => [path, mode, inline]),
  );
  expect((config.systemd?.units ?? []).map((unit) => [unit.name, unit.enabled])).toEqual(
    given.units.map((unit) => [unit.name, unit.enabled]),
  );
  expect(config.passwd?.users?.[0]?.sshAuthorizedKeys ?? []).toEqual(given.keys);
  expect(machineConfig.spec?.kernelArguments ?? []).toEqual(given.kernelArguments);
});

/** Anything below the sections of Butane: known keys and unknown ones, values of all kinds. */
const key = fc.constantFrom(
  ...[
    'storage',
    'files',
    'path',
    'contents',
    'inline',
    'local',
    'mode',
    'systemd',
    'units',
    'name',
    'trees',
    'openshift',
  ],
  ...[
    'passwd',
    'users',
    'ignition',
    'config',
    'luks',
    'filesystems',
    'with_mount_unit',
    'device',
    'boot_device',
    'mirror',
  ],
  ...['devices', 'tpm2', 'kernel_arguments', 'should_exist', 'metadata', 'labels', 'grub', 'append', '__proto__', 'x'],
);
const { document } = fc.letrec((tie) => ({
  document: fc.oneof(
    { maxDepth: 6 },
    fc.constantFrom('/etc/a', 'a.service', true, 420, null, '', 'ext4', '/dev/a', 'data:,'),
    fc.array(tie('document'), { maxLength: 3 }),
    fc.dictionary(key, tie('document'), { maxKeys: 5 }),
  ),
}));

test.prop([fc.constantFrom(...BUTANE_VARIANTS), fc.dictionary(key, document), fc.boolean()])(
  'whatever stands in a file, it is translated to what our schema accepts, or refused with a place in it',
  (variant, sections, asMachineConfig) => {
    const version = { openshift: '4.20.0', fcos: '1.6.0', flatcar: '1.1.0' }[variant];
    const text = `variant: ${variant}\nversion: ${version}\n${stringify(sections)}`;
    const lines = text.split('\n').length;
    const result = translate(text, asMachineConfig ? WORKER : {});
    if (result.outcome === 'machineConfig') {
      expect(parseMachineConfig(result.machineConfig)).toMatchObject({ ok: true });
      expect(parseIgnition(result.machineConfig.spec?.config).problems).toEqual([]);
    }
    if (result.outcome !== 'refused') return;
    expect(result.problems.length).toBeGreaterThan(0);
    for (const { line, column, message } of result.problems) {
      expect(message).not.toMatch(/\n|^$/);
      expect(line >= 1 && line <= lines && column >= 1).toBe(true);
    }
  },
);

test.prop([fc.string({ maxLength: 300 })])('any text is refused or translated, and never an exception', (text) => {
  expect(translate(`variant: fcos\nversion: 1.6.0\n${text}`).outcome).toMatch(/^(refused|ignition)$/);
  expect(translate(text).outcome).toBe('refused');
});
