import { usedOsFields, type OsField } from '../change/os-fields.js';
import { readSpec, type KernelType } from '../render/spec.js';
import type { HostFacts, NodeFacts } from './facts.js';
import { clip, nameSome } from './sentences.js';

/** What a config asks of the operating system of a node. */
export interface OsDemands {
  readonly fields: readonly OsField[];
  readonly kernelType: KernelType;
}

export const NO_DEMANDS: OsDemands = { fields: [], kernelType: 'default' };

/** The one architecture whose kernels come with large pages. */
const LARGE_PAGES_ARCH = 'arm64';

/** A field that a host cannot do, and why. */
export interface Incapability {
  readonly field: OsField;
  readonly why: string;
}

/** Reads the demands of a MachineConfig's spec; its Ignition part, the large one, is not looked at. */
export function osDemands(spec: object | undefined): OsDemands {
  const content = readSpec({ ...spec, config: undefined });
  return { fields: usedOsFields(content), kernelType: content.kernelType };
}

/** The first field that a host cannot do. A node whose worker has told nothing of its host is asked by `prepare`. */
export function whyIncapable(host: HostFacts | undefined, demands: OsDemands): Incapability | undefined {
  if (host === undefined) return undefined;
  for (const field of demands.fields) {
    const why = host.cannot[field];
    if (why !== undefined) return { field, why };
    if (field === 'kernelType' && demands.kernelType === '64k-pages' && host.arch !== LARGE_PAGES_ARCH) {
      return { field, why: `64k-pages kernels exist for ${LARGE_PAGES_ARCH} only, and this host is ${host.arch}` };
    }
  }
  return undefined;
}

/**
 * Why a config must not become the target of a pool with these members, in one sentence; undefined: all of them can do
 * what it asks. Members without a worker are not asked.
 */
export function whyNotForMembers(demands: OsDemands, members: readonly NodeFacts[]): string | undefined {
  const unable = members.flatMap(({ name, worker, host }) => {
    const found = worker === undefined ? undefined : whyIncapable(host, demands);
    return found === undefined ? [] : [{ name, ...found }];
  });
  const [first] = unable;
  if (first === undefined) return undefined;
  const same = unable.filter(({ field, why }) => field === first.field && why === first.why);
  const names = same.map(({ name }) => name).sort();
  return (
    `spec.${first.field} cannot be done on ${nameSome(names)}: ${clip(first.why, 300)}; ` +
    `leave it out of the MachineConfigs of this pool, or move these nodes to a pool without it`
  );
}
