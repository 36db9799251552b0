import type { RealNode } from '../real-nodes/real-node.js';
import { realDiskDifferences, SSH_KEY } from './expected-disk.js';

/** What one real machine shows of itself after the rollout, asked of systemd, sshd and the kernel. */
export interface RealNodeReport {
  readonly name: string;
  /** Every file and link of the configs is on the disk, byte for byte. */
  readonly filesVerified: boolean;
  /** Unit to what `systemctl is-active` says. */
  readonly units: Readonly<Record<string, string>>;
  /** The drop-in of the configs, as `systemctl show` says that it is in force. */
  readonly dropIn: { readonly unit: string; readonly path: string; readonly environment: string };
  /** The file in which sshd looks for keys of the account has the key of the configs. */
  readonly sshKeyVerified: boolean;
  /** The kernel was booted with the arguments of the configs. */
  readonly kernelArgumentsVerified: boolean;
  readonly bootsBefore: number;
  readonly bootsAfter: number;
  readonly bootIdBefore: string;
  readonly bootIdAfter: string;
}

export interface BootRecord {
  readonly boots: number;
  readonly bootId: string;
}

export const SITE_UNIT = 'site-report.service';
const UNITS = ['drydock-node.service', 'kubelet.service', SITE_UNIT, 'ssh.service'];
const DROP_IN = { unit: 'kubelet.service', path: '/etc/systemd/system/kubelet.service.d/20-site.conf' };
const ENVIRONMENT = 'SITE_ZONE=lab';
const KERNEL_ARGUMENTS = ['transparent_hugepage=never', 'console=ttyS0,115200'];
const ACCOUNT = 'core';

export async function recordBoot(node: RealNode): Promise<BootRecord> {
  return { boots: await node.boots(), bootId: await node.bootId() };
}

/** Looks at a machine; `say` gets a line for each thing that is not as it shall be. */
export async function reportRealNode(
  node: RealNode,
  before: BootRecord,
  say: (line: string) => void,
): Promise<RealNodeReport> {
  const differences = await realDiskDifferences(node.root);
  differences.forEach((line) => say(`${node.name}: ${line}`));
  const states = await Promise.all(UNITS.map(async (unit) => [unit, await stateOf(node, unit)] as const));
  const shown = await showUnit(node, DROP_IN.unit, ['DropInPaths', 'Environment']);
  const inForce = (shown.get('DropInPaths') ?? '').split(' ').includes(DROP_IN.path);
  const commandLine = (await node.succeed(['cat', '/proc/cmdline'])).trim().split(' ');
  const after = await recordBoot(node);
  return {
    name: node.name,
    filesVerified: differences.length === 0,
    units: Object.fromEntries(states),
    dropIn: {
      unit: DROP_IN.unit,
      path: inForce ? DROP_IN.path : '',
      environment: shown.get('Environment') ?? '',
    },
    sshKeyVerified: await hasSshKey(node),
    kernelArgumentsVerified: KERNEL_ARGUMENTS.every((argument) => commandLine.includes(argument)),
    bootsBefore: before.boots,
    bootsAfter: after.boots,
    bootIdBefore: before.bootId,
    bootIdAfter: after.bootId,
  };
}

/** Whether everything in the report is as the configs say, and the machine was booted. */
export function isAsConfigured(report: RealNodeReport): boolean {
  return (
    report.filesVerified &&
    report.sshKeyVerified &&
    report.kernelArgumentsVerified &&
    Object.values(report.units).every((state) => state === 'active') &&
    report.dropIn.path === DROP_IN.path &&
    report.dropIn.environment.split(' ').includes(ENVIRONMENT) &&
    report.bootsAfter > report.bootsBefore &&
    report.bootIdAfter !== report.bootIdBefore
  );
}

export function describeRealNode(report: RealNodeReport): string[] {
  const units = Object.entries(report.units).map(([unit, state]) => `${unit} ${state}`);
  return [
    `${report.name}: a real machine, boots in the rollout: ${report.bootsAfter - report.bootsBefore}`,
    `    boot ID          ${report.bootIdBefore} → ${report.bootIdAfter}`,
    `    files and links  ${report.filesVerified ? 'as the configs say' : 'NOT as the configs say'}`,
    `    units            ${units.join(', ')}`,
    `    drop-in          ${report.dropIn.unit}: ${report.dropIn.path || 'NOT in force'} (${report.dropIn.environment})`,
    `    SSH key          ${report.sshKeyVerified ? 'where sshd reads it' : 'MISSING'}`,
    `    kernel           ${report.kernelArgumentsVerified ? 'booted with the arguments' : 'NOT booted with the arguments'}`,
  ];
}

async function stateOf(node: RealNode, unit: string): Promise<string> {
  return (await node.exec(['systemctl', 'is-active', unit])).stdout.trim();
}

/** `systemctl show`: property to value. */
export async function showUnit(
  node: RealNode,
  unit: string,
  properties: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const output = await node.succeed(['systemctl', 'show', `--property=${properties.join(',')}`, unit]);
  const lines = output.split('\n').filter(Boolean);
  return new Map(lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]));
}

/** In one of the files that sshd itself says it reads. */
async function hasSshKey(node: RealNode): Promise<boolean> {
  const connection = `user=${ACCOUNT},host=anywhere,addr=${node.gateway}`;
  const settings = await node.succeed(['sshd', '-T', '-C', connection]);
  const files = /^authorizedkeysfile (.*)$/m.exec(settings)?.[1]?.split(' ') ?? [];
  const home = (await node.succeed(['getent', 'passwd', ACCOUNT])).split(':')[5] ?? '';
  for (const file of files) {
    const expanded = file.replaceAll('%h', home).replaceAll('%u', ACCOUNT);
    const path = expanded.startsWith('/') ? expanded : `${home}/${expanded}`;
    const { stdout } = await node.exec(['cat', path]);
    if (stdout.split('\n').includes(SSH_KEY)) return true;
  }
  return false;
}
