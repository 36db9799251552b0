import { z } from 'zod';
import type { OsBackend, OsState } from '../host.js';
import { ProgramFailed, type RunProgram } from '../run-program.js';
import { oursOf, sameOs, type Deployment } from './deployment-state.js';
import { runningArguments } from './none.js';
import { readOsRecord, recordIntention, recordSettled } from './record.js';
import { PLAIN_OS, refuseOthers, type Refusals } from './refusal.js';
import { runOrThrow } from './run-or-throw.js';

/** An image of several gigabytes over a slow line. */
const FETCH_TIMEOUT_MS = 45 * 60_000;

const REFUSALS: Refusals = {
  kernelArguments:
    'bootc takes kernel arguments from the image: put them into its /usr/lib/bootc/kargs.d, or set DRYDOCK_OS_BACKEND=rpm-ostree where the host has rpm-ostree',
  kernelType: 'bootc does not exchange the kernel of an image: build the image with it',
  extensions: 'bootc does not add packages to an image: build the image with them',
};

const entrySchema = z.object({
  image: z.object({ image: z.object({ image: z.string(), transport: z.string() }) }).nullish(),
  /** Packages were layered, or something else was done that bootc cannot carry over. */
  incompatible: z.boolean().nullish(),
  ostree: z.object({ checksum: z.string(), deploySerial: z.number() }).nullish(),
});

/** What is read of `bootc status --format=json` (org.containers.bootc/v1 and v1alpha1). */
const statusSchema = z.object({
  status: z.object({
    staged: entrySchema.nullish(),
    booted: entrySchema.nullish(),
    rollback: entrySchema.nullish(),
    rollbackQueued: z.boolean().nullish(),
  }),
});

type Entry = z.infer<typeof entrySchema>;

interface BootcStatus {
  readonly booted: Entry;
  readonly staged: Entry | undefined;
  /** The next boot brings back the image before. */
  readonly queuedRollback: Entry | undefined;
}

/** The host runs an image that bootc can exchange. */
export async function bootedWithBootc(run: RunProgram): Promise<boolean> {
  try {
    const { booted } = await bootcStatus(run);
    return booted.image !== undefined && booted.image !== null && booted.incompatible !== true;
  } catch (error) {
    // A bootc that does not even answer is no reason not to start: the others are asked.
    if (error instanceof ProgramFailed || error instanceof BootcUnusable) return false;
    throw error;
  }
}

class BootcUnusable extends Error {
  override readonly name = 'BootcUnusable';
}

/** Hosts of which the whole operating system is one container image. Only the image is changed. Experimental. */
export function bootcBackend({ root, run, fips }: { root: string; run: RunProgram; fips: Refusals }): OsBackend {
  const refusals: Refusals = { ...REFUSALS, ...fips };
  return {
    name: 'bootc',
    refusal: (field) => refusals[field],
    async staged() {
      const { booted, staged, queuedRollback } = await bootcStatus(run);
      return oursOf(await readOsRecord(root), deploymentOf(staged ?? queuedRollback ?? booted));
    },
    stage: (wanted) => stage(wanted, { root, run }),
    async booted() {
      const { image } = deploymentOf((await bootcStatus(run)).booted);
      return { ...PLAIN_OS, osImageURL: image ?? '', kernelArguments: await runningArguments(root) };
    },
    deployment: async () => deploymentOf((await bootcStatus(run)).booted).id,
  };
}

async function bootcStatus(run: RunProgram): Promise<BootcStatus> {
  const { code, stdout, stderr } = await run('bootc', ['status', '--format=json']);
  if (code !== 0) throw new BootcUnusable(`bootc status: ended with ${code}: ${stderr.trim()}`);
  let parsed;
  try {
    parsed = statusSchema.safeParse(JSON.parse(stdout));
  } catch (cause) {
    throw new BootcUnusable('bootc status --format=json: is not JSON', { cause });
  }
  if (!parsed.success) {
    throw new BootcUnusable(
      `bootc status --format=json: not as known: ${z.prettifyError(parsed.error).replaceAll('\n', ' ')}`,
    );
  }
  const { booted, staged, rollback, rollbackQueued } = parsed.data.status;
  if (!booted) throw new BootcUnusable('bootc status: nothing is booted: was this host installed with bootc?');
  return {
    booted,
    staged: staged ?? undefined,
    queuedRollback: rollbackQueued === true ? (rollback ?? undefined) : undefined,
  };
}

function deploymentOf({ image, ostree }: Entry): Deployment {
  return {
    id: ostree ? `${ostree.checksum}.${ostree.deploySerial}` : '',
    kernelArguments: [],
    image: image?.image.image,
    kernelType: 'default',
    extensions: [],
  };
}

async function stage(wanted: OsState, { root, run }: { root: string; run: RunProgram }): Promise<void> {
  refuseOthers('bootc', wanted, ['osImageURL']);
  const record = await readOsRecord(root);
  const { booted, staged, queuedRollback } = await bootcStatus(run);
  const next = staged ?? queuedRollback ?? booted;
  if (record.intended === undefined && sameOs(oursOf(record, deploymentOf(next)), wanted)) return;
  const ours = oursOf(record, deploymentOf(booted));
  const chooses = ours.osImageURL === '' && wanted.osImageURL !== '' ? sourceOf(booted) : undefined;
  const deployments = { ...record.deployments, [deploymentOf(booted).id]: ours };
  await recordIntention(root, wanted, { deployments, ...(chooses === undefined ? {} : { imageBefore: chooses }) });

  const before = ours.osImageURL === '' ? undefined : record.imageBefore;
  const target = wanted.osImageURL === '' ? before : `registry:${wanted.osImageURL}`;
  if (target === undefined || sourceOf(booted) === target) await stayOnBooted({ run, staged, queuedRollback });
  else await switchTo(run, target);

  const made = await nextDeployment(run, wanted);
  await recordSettled(root, wanted, { [deploymentOf(booted).id]: ours, [made.id]: wanted });
}

async function switchTo(run: RunProgram, source: string): Promise<void> {
  const [transport = '', ...image] = source.split(':');
  const args = ['switch', '--transport', transport, image.join(':')];
  await runOrThrow(run, 'bootc', args, { timeoutMs: FETCH_TIMEOUT_MS });
}

/**
 * `bootc rollback` would also drop what is staged, but then boots the image before the running one; there is no command of
 * bootc for this alone, so ostree's is used.
 */
async function stayOnBooted({ run, staged, queuedRollback }: Omit<BootcStatus, 'booted'> & { run: RunProgram }) {
  if (staged !== undefined) await runOrThrow(run, 'ostree', ['admin', 'undeploy', '0']);
  else if (queuedRollback !== undefined) await runOrThrow(run, 'bootc', ['rollback']);
}

/** What the next boot brings; throws where that is not the wanted image. */
async function nextDeployment(run: RunProgram, { osImageURL }: OsState): Promise<Deployment> {
  const { booted, staged, queuedRollback } = await bootcStatus(run);
  const next = deploymentOf(staged ?? queuedRollback ?? booted);
  if (osImageURL === '' || next.image === osImageURL) return next;
  throw new Error(`bootc: the next boot would bring ${next.image ?? 'no image'} for ${osImageURL}`);
}

/** An image with the way to fetch it, `registry:a.example/os:1`. */
function sourceOf({ image }: Entry): string | undefined {
  return image ? `${image.image.transport}:${image.image.image}` : undefined;
}
