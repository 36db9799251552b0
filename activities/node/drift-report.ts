import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import { EMPTY_CONFIG_NAME } from '../../machine-config/api/flavour.js';
import { nodeFacts } from '../../machine-config/pool/facts.js';
import { isErrno } from '../host/durable.js';
import { FORCE_FILE } from '../host/force.js';
import { withHostLock } from '../host/lock.js';
import { KINDS } from '../kubernetes/client.js';
import type { NodeDependencies } from './dependencies.js';
import { lookAtDisk, type DiskFinding } from './drift-look.js';
import { driftReason, driftVerdict, type DriftVerdict } from './drift-verdict.js';
import { onFreshNode, swapNode, type Node, type OwnNode } from './own-node.js';

/** What was found, and that the Node says so now. */
export interface DriftReport {
  readonly finding: DiskFinding;
  readonly isForced: boolean;
  readonly news: DriftVerdict['news'];
}

/**
 * Looks at the disk as the only one on this host and brings the Node to say what was found. The Node is read before the
 * disk and written only if it is still as it was read: an update that begins in between says so on the Node first.
 * `told`: the reason that was told last. Throws HostBusyError, and what the API answers.
 */
export async function reportDrift(deps: NodeDependencies, told?: string): Promise<DriftReport> {
  return onFreshNode(async () => {
    const own = await readNode(deps);
    const { finding, isForced } = await withHostLock(deps.host, 'the look for drift', async () => ({
      finding: await lookAtDisk(deps),
      isForced: await isForceAsked(deps),
    }));
    const bootId = await deps.host.bootId();
    const verdict = driftVerdict({ facts: own.facts, finding, isForced, bootId, told, flavour: deps.flavour });
    if (Object.keys(verdict.annotations).length > 0) await swapNode(own, { annotations: verdict.annotations }, deps);
    tell(finding, verdict.news, deps);
    return { finding, isForced, news: verdict.news };
  });
}

/** The force file is there, whatever is in it. */
export async function isForceAsked({ host }: NodeDependencies): Promise<boolean> {
  try {
    await lstat(join(host.root, FORCE_FILE));
    return true;
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return false;
    throw error;
  }
}

function tell(finding: DiskFinding, news: DriftVerdict['news'], { events }: NodeDependencies): void {
  if (news === 'drifted' && finding.outcome === 'drifted') {
    events?.warning('ConfigDriftDetected', driftReason(finding));
  }
  if (news === 'recovered') events?.normal('ConfigDriftResolved', 'the disk is as its config says again');
}

async function readNode({ client, node, flavour, metrics }: NodeDependencies): Promise<OwnNode> {
  const object = await client.get<Node>(KINDS.node, { name: node });
  metrics?.written(object.metadata.annotations ?? {});
  const facts = nodeFacts(object, flavour);
  return {
    facts,
    current: facts.current ?? EMPTY_CONFIG_NAME,
    resourceVersion: object.metadata.resourceVersion ?? '',
  };
}
