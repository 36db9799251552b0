import { sameArguments } from '../../../machine-config/change/command-line.js';
import type { OsField } from '../../../machine-config/change/os-fields.js';
import type { OsBackend, OsState } from '../host.js';
import type { RunProgram } from '../run-program.js';
import { oursOf, sameOs } from './deployment-state.js';
import { runningArguments } from './none.js';
import { DEFAULT_KERNEL_PACKAGES, packagesOfExtensions, packagesOfKernel, unknownExtensions } from './packages.js';
import { possiblyOurs, readOsRecord, recordIntention, recordSettled, type OsRecord } from './record.js';
import type { Refusals } from './refusal.js';
import { rpmOstreeStatus, type RpmOstreeDeployment } from './rpm-ostree-status.js';
import { runOrThrow } from './run-or-throw.js';

/** An image of several gigabytes over a slow line. */
const FETCH_TIMEOUT_MS = 45 * 60_000;
/** Making a deployment ready without fetching anything. */
const STAGE_TIMEOUT_MS = 15 * 60_000;

interface RpmOstreeOptions {
  readonly root: string;
  readonly run: RunProgram;
  readonly fips: Refusals;
  /** As Node names it: x64, arm64. */
  readonly arch: string;
}

/**
 * Fedora CoreOS, RHEL CoreOS and their kin. Whatever is changed becomes one new deployment, made from the booted one; a
 * deployment that is waiting for the next boot is replaced. Packages of kernels and extensions come from the
 * repositories that the host has. Experimental.
 */
export function rpmOstreeBackend({ root, run, fips, arch }: RpmOstreeOptions): OsBackend {
  return {
    name: 'rpm-ostree',
    refusal: (field, wanted) => fips[field] ?? (wanted === undefined ? undefined : valueRefusal(field, wanted, arch)),
    staged: async () => oursOf(await readOsRecord(root), (await rpmOstreeStatus(run)).next),
    stage: (wanted) => stage(wanted, { root, run }),
    async booted() {
      const { booted } = await rpmOstreeStatus(run);
      const ours = oursOf(await readOsRecord(root), booted);
      return { ...ours, osImageURL: booted.image ?? '', kernelArguments: await runningArguments(root) };
    },
    deployment: async () => (await rpmOstreeStatus(run)).booted.folder,
  };
}

function valueRefusal(field: OsField, { kernelType, extensions }: OsState, arch: string): string | undefined {
  if (field === 'kernelType' && kernelType === '64k-pages' && arch !== 'arm64') {
    return 'a kernel with 64k pages exists for aarch64 only';
  }
  const unknown = unknownExtensions(extensions);
  if (field === 'extensions' && unknown.length > 0) return `unknown extensions: ${unknown.join(', ')}`;
  return undefined;
}

async function stage(wanted: OsState, { root, run }: { root: string; run: RunProgram }): Promise<void> {
  const record = await readOsRecord(root);
  const { booted, next } = await rpmOstreeStatus(run);
  if (record.intended === undefined && sameOs(oursOf(record, next), wanted)) return;
  const ours = oursOf(record, booted);
  const chooses = ours.osImageURL === '' && wanted.osImageURL !== '' && booted.reference !== undefined;
  // What is ours in the booted deployment is known now; later only what is ours in the next one would be.
  const deployments = { ...record.deployments, [booted.id]: ours };
  await recordIntention(root, wanted, { deployments, ...(chooses ? { imageBefore: booted.reference } : {}) });
  if (next.id !== booted.id) await cleanUp(run);
  if (!sameOs(ours, wanted)) {
    try {
      await build({ run, booted, ours, wanted, record });
    } catch (error) {
      await cleanUp(run);
      throw error;
    }
  }
  const now = await rpmOstreeStatus(run);
  const known = Object.entries(deployments).filter(([id]) => now.ids.includes(id));
  await recordSettled(root, wanted, { ...Object.fromEntries(known), [now.next.id]: wanted });
}

/** Removes what waits for the next boot. */
async function cleanUp(run: RunProgram): Promise<void> {
  await runOrThrow(run, 'rpm-ostree', ['cleanup', '--pending'], { timeoutMs: STAGE_TIMEOUT_MS });
}

interface Build {
  readonly run: RunProgram;
  readonly booted: RpmOstreeDeployment;
  readonly ours: OsState;
  readonly wanted: OsState;
  readonly record: OsRecord;
}

/** Each command goes on from what the one before it made ready. Throws if the result is not what is wanted. */
async function build({ run, booted, ours, wanted, record }: Build): Promise<void> {
  const ostree = (args: readonly string[], timeoutMs = STAGE_TIMEOUT_MS) =>
    runOrThrow(run, 'rpm-ostree', args, { timeoutMs });
  const image = targetReference({ booted, ours, wanted, record });
  // A kernel that somebody else exchanged stays as it is.
  const kernel = ours.kernelType;
  const exchangesBack = kernel !== 'default' && (image !== undefined || kernel !== wanted.kernelType);
  if (exchangesBack) {
    const uninstall = packagesOfKernel(kernel).filter((name) => booted.packages.includes(name));
    await ostree(['override', 'reset', ...DEFAULT_KERNEL_PACKAGES, ...each('--uninstall', uninstall)]);
  }
  if (image !== undefined) await ostree(['rebase', '--experimental', image], FETCH_TIMEOUT_MS);
  if (!sameArguments(ours.kernelArguments, wanted.kernelArguments)) {
    await ostree(['kargs', ...argumentChanges({ booted, wanted, record })]);
  }
  if (wanted.kernelType !== 'default' && (exchangesBack || booted.kernelType !== wanted.kernelType)) {
    const install = each('--install', packagesOfKernel(wanted.kernelType));
    await ostree(['override', 'remove', ...DEFAULT_KERNEL_PACKAGES, ...install], FETCH_TIMEOUT_MS);
  }
  const needed = packagesOfExtensions(wanted.extensions);
  const surplus = packagesOfExtensions(ours.extensions).filter((name) => !needed.includes(name));
  if (surplus.length > 0) await ostree(['uninstall', '--idempotent', ...surplus]);
  const lacking = needed.filter((name) => !booted.packages.includes(name));
  if (lacking.length > 0) await ostree(['install', '--idempotent', ...lacking], FETCH_TIMEOUT_MS);

  const { next } = await rpmOstreeStatus(run);
  const made = oursOf({ ...record, deployments: { [next.id]: wanted } }, next);
  if (!sameOs(made, wanted)) {
    throw new Error(
      `rpm-ostree: what it made ready for the next boot is not what was asked for: ${differing(made, wanted)}`,
    );
  }
}

/** What to rebase to; undefined: the booted image is the right one. */
function targetReference({ booted, ours, wanted, record }: Omit<Build, 'run'>): string | undefined {
  if (wanted.osImageURL === '') return ours.osImageURL === '' ? undefined : record.imageBefore;
  return booted.image === wanted.osImageURL ? undefined : `ostree-unverified-registry:${wanted.osImageURL}`;
}

function argumentChanges({ booted, wanted, record }: Pick<Build, 'booted' | 'wanted' | 'record'>): string[] {
  const old = record.deployments?.[booted.id]?.kernelArguments ?? possiblyOurs(record);
  return [
    ...old.map((argument) => `--delete-if-present=${argument}`),
    ...wanted.kernelArguments.map((argument) => `--append=${argument}`),
  ];
}

function each(option: string, values: readonly string[]): string[] {
  return values.flatMap((value) => [option, value]);
}

function differing(made: OsState, wanted: OsState): string {
  const words: string[] = [];
  if (!sameArguments(made.kernelArguments, wanted.kernelArguments)) {
    words.push(`kernel arguments "${made.kernelArguments.join(' ')}" for "${wanted.kernelArguments.join(' ')}"`);
  }
  if (made.osImageURL !== wanted.osImageURL) words.push(`image ${made.osImageURL} for ${wanted.osImageURL}`);
  if (made.kernelType !== wanted.kernelType) words.push(`kernel ${made.kernelType} for ${wanted.kernelType}`);
  const missing = wanted.extensions.filter((extension) => !made.extensions.includes(extension));
  if (missing.length > 0) words.push(`without the extensions ${missing.join(', ')}`);
  return words.join(', ');
}
