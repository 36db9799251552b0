import { z } from 'zod';
import { splitCommandLine } from '../../../machine-config/change/command-line.js';
import type { RunProgram } from '../run-program.js';
import type { Deployment } from './deployment-state.js';
import { extensionsOfPackages, kernelOfPackages } from './packages.js';
import { runOrThrow } from './run-or-throw.js';

/** What is read of `rpm-ostree status --json`; of many more fields. */
const statusSchema = z.object({
  deployments: z.array(
    z.object({
      id: z.string(),
      checksum: z.string(),
      serial: z.number(),
      booted: z.boolean(),
      origin: z.string().nullish(),
      'container-image-reference': z.string().nullish(),
      'requested-packages': z.array(z.string()).nullish(),
    }),
  ),
});

export interface RpmOstreeDeployment extends Deployment {
  readonly booted: boolean;
  readonly packages: readonly string[];
  /** By which rpm-ostree finds its image or commit again. */
  readonly reference: string | undefined;
  /** Commit and serial number, as its folder is called. */
  readonly folder: string;
}

interface RpmOstreeStatus {
  readonly booted: RpmOstreeDeployment;
  /** What the next boot brings: the booted one, or one that is made ready. */
  readonly next: RpmOstreeDeployment;
  readonly ids: readonly string[];
}

export async function rpmOstreeStatus(run: RunProgram): Promise<RpmOstreeStatus> {
  const parsed = statusSchema.safeParse(JSON.parse(await runOrThrow(run, 'rpm-ostree', ['status', '--json'])));
  if (!parsed.success) {
    throw new Error(`rpm-ostree status --json: not as known: ${z.prettifyError(parsed.error).replaceAll('\n', ' ')}`);
  }
  const { deployments } = parsed.data;
  const bootedAt = deployments.findIndex(({ booted }) => booted);
  const [next] = deployments;
  const booted = deployments[bootedAt];
  if (booted === undefined || next === undefined) {
    throw new Error('rpm-ostree status --json: no deployment is booted: was the host booted with ostree?');
  }
  const read = async (found: typeof booted, index: number): Promise<RpmOstreeDeployment> => {
    const packages = found['requested-packages'] ?? [];
    const reference = found['container-image-reference'] ?? undefined;
    const line = await runOrThrow(run, 'rpm-ostree', ['kargs', `--deploy-index=${index}`]);
    return {
      id: found.id,
      booted: found.booted,
      folder: `${found.checksum}.${found.serial}`,
      kernelArguments: splitCommandLine(line),
      image: reference === undefined ? undefined : imageOf(reference),
      reference: reference ?? found.origin ?? undefined,
      kernelType: kernelOfPackages(packages),
      extensions: extensionsOfPackages(packages),
      packages,
    };
  };
  const readBooted = await read(booted, bootedAt);
  return {
    booted: readBooted,
    next: bootedAt === 0 ? readBooted : await read(next, 0),
    ids: deployments.map(({ id }) => id),
  };
}

/** The image without how it was fetched: `ostree-unverified-registry:a.example/os:1` is `a.example/os:1`. */
export function imageOf(reference: string): string {
  return reference
    .replace(/^ostree-(?:unverified-registry|unverified-image|image-signed|remote-(?:image|registry):[^:]*):/, '')
    .replace(/^(?:docker:\/\/|registry:|containers-storage:)/, '');
}
