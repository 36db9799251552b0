import type { IgnitionConfig, IgnitionResource } from './config.js';
import { decodeResource } from './contents.js';
import type { FieldPath, Findings } from './findings.js';
import { validateDisks } from './validate-disks.js';
import { validateNodes, validateResource } from './validate-nodes.js';
import { validatePaths, type Origin } from './validate-paths.js';
import { validateUnits } from './validate-units.js';

/**
 * Ignition's own rules for a config, and Drydock's: everything that a node or a first boot would stumble over.
 * Paths of the findings begin with `config`.
 */
export function validateConfig(
  config: IgnitionConfig,
  findings: Findings,
  origin: Origin = () => 'in the same config',
): void {
  validateNodes(config, findings);
  validateUnits(config, findings);
  validateDisks(config, findings);
  validatePaths(config, findings, origin);
  validateDuplicates(config, findings);
  validateDropinDuplicates(config, findings);
  validateIgnitionSection(config, findings);
}

function validateDuplicates({ passwd, storage = {}, systemd }: IgnitionConfig, findings: Findings): void {
  const passwdAt = ['config', 'passwd'];
  const storageAt = ['config', 'storage'];
  refuseDuplicates(
    passwd?.groups?.map(({ name }) => name),
    [...passwdAt, 'groups'],
    'group',
    findings,
  );
  refuseDuplicates(
    storage.disks?.map(({ device }) => device),
    [...storageAt, 'disks'],
    'disk',
    findings,
  );
  refuseDuplicates(
    storage.raid?.map(({ name }) => name),
    [...storageAt, 'raid'],
    'array',
    findings,
  );
  refuseDuplicates(
    storage.luks?.map(({ name }) => name),
    [...storageAt, 'luks'],
    'volume',
    findings,
  );
  refuseDuplicates(
    storage.filesystems?.map(({ device }) => device),
    [...storageAt, 'filesystems'],
    'device',
    findings,
  );
  refuseDuplicates(
    systemd?.units?.map(({ name }) => name),
    ['config', 'systemd', 'units'],
    'unit',
    findings,
  );
}

function validateDropinDuplicates({ systemd }: IgnitionConfig, findings: Findings): void {
  systemd?.units?.forEach((unit, index) => {
    const at = ['config', 'systemd', 'units', index, 'dropins'];
    refuseDuplicates(
      unit.dropins?.map(({ name }) => name),
      at,
      'drop-in',
      findings,
    );
  });
}

function refuseDuplicates(names: readonly string[] | undefined, at: FieldPath, what: string, findings: Findings): void {
  const seen = new Set<string>();
  names?.forEach((name, index) => {
    if (seen.has(name)) findings.refuse([...at, index], `the ${what} is listed twice; put both into one entry`);
    seen.add(name);
  });
}

function validateIgnitionSection({ ignition }: IgnitionConfig, findings: Findings): void {
  for (const [key, resources] of Object.entries({
    merge: ignition.config?.merge ?? [],
    replace: ignition.config?.replace === undefined ? [] : [ignition.config.replace],
  })) {
    if (resources.length === 0) continue;
    findings.refuse(
      ['config', 'ignition', 'config', key],
      'pulls in another config at first boot, and a node that runs would ignore it; write its content into this MachineConfig',
    );
  }
  ignition.security?.tls?.certificateAuthorities?.forEach((authority: IgnitionResource, index) => {
    const at = ['config', 'ignition', 'security', 'tls', 'certificateAuthorities', index];
    if (!validateResource(authority, at, findings)) return;
    const decoded = decodeResource(authority);
    if (!decoded.ok) findings.refuse([...at, 'source'], decoded.error);
  });
}
