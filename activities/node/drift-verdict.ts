import { DRYDOCK_ANNOTATIONS, type ApiFlavour } from '../../machine-config/api/flavour.js';
import { isGranted } from '../../machine-config/pool/availability.js';
import type { NodeFacts } from '../../machine-config/pool/facts.js';
import { LONGEST_REASON } from './degraded.js';
import type { DiskFinding } from './drift-look.js';

/** So many items are named, as far as a reason has room. */
const MOST_NAMED = 10;

/** What the Node has to say after a look at the disk, as changes of its annotations, and what has changed by that. */
export interface DriftVerdict {
  readonly annotations: Readonly<Record<string, string | null>>;
  readonly news: 'drifted' | 'recovered' | 'none';
}

export interface DriftFacts {
  readonly facts: NodeFacts;
  readonly finding: DiskFinding;
  /** The force file is there. */
  readonly isForced: boolean;
  readonly bootId: string;
  /** The drift that was told last, in the words of its reason. */
  readonly told?: string | undefined;
  readonly flavour: ApiFlavour;
}

/**
 * Drift makes a node Degraded, and the end of drift makes it well again. A node whose update failed keeps that as its
 * reason, which drift neither replaces nor ends. In the middle of an update nothing is said: its steps do that.
 */
export function driftVerdict(input: DriftFacts): DriftVerdict {
  const { facts, finding, flavour } = input;
  const { state, reason } = flavour.annotations;
  if (finding.outcome === 'inWork') return { annotations: {}, news: 'none' };
  const isFailed = hasFailed(facts);
  if (finding.outcome === 'drifted' && !isFailed) {
    const words = driftReason(finding);
    const isSaid = facts.state === 'Degraded' && facts.reason === words;
    const said = isSaid ? {} : { [state]: 'Degraded', [reason]: words };
    return { annotations: { ...said, ...force(input, true) }, news: isSaid ? 'none' : 'drifted' };
  }
  if (finding.outcome === 'asDeclared' && !isFailed && facts.state === 'Degraded') {
    // The update that it was granted goes on.
    const well = {
      [state]: isGranted(facts) ? 'Working' : 'Done',
      [reason]: '',
      ...(facts.failure === undefined ? {} : { [DRYDOCK_ANNOTATIONS.failure]: null }),
    };
    return { annotations: { ...well, ...force(input, false) }, news: 'recovered' };
  }
  return untouched(input);
}

/** For a reason of its own: an update that was refused because of drift leaves none behind. */
function hasFailed({ failure, state }: NodeFacts): boolean {
  return (failure !== undefined && failure.code !== 'Drifted') || state === 'Unreconcilable';
}

/** A node that is well, or whose reason is another one. */
function untouched(input: DriftFacts): DriftVerdict {
  const { facts, finding, told } = input;
  const isNew = finding.outcome === 'drifted' && driftReason(finding) !== told;
  const isUnwell = facts.state !== undefined && facts.state !== 'Done';
  return { annotations: force(input, isUnwell), news: isNew ? 'drifted' : 'none' };
}

/**
 * The force file counts on a node that is not well; once told, it holds as long as the file is there. A file that went
 * without an update asks for nothing any more.
 */
function force({ facts, isForced, bootId }: DriftFacts, isUnwell: boolean): Record<string, string | null> {
  if (!isForced) return facts.force === undefined ? {} : { [DRYDOCK_ANNOTATIONS.force]: null };
  const wanted = isUnwell || facts.force !== undefined;
  return wanted && facts.force !== bootId ? { [DRYDOCK_ANNOTATIONS.force]: bootId } : {};
}

/** One line of at most 2,000 characters: which paths, and how; never what is in them. */
export function driftReason({ config, items }: DiskFinding & { outcome: 'drifted' }): string {
  const start = `the disk is not as ${config} says: `;
  const end = '; put it back as declared, or declare what is there';
  const room = LONGEST_REASON - start.length - end.length;
  const lines = items
    .slice(0, MOST_NAMED)
    .map(({ path, words }) => (words.includes(path) ? words : `${path}: ${words}`));
  const more = items.length > MOST_NAMED ? [`and ${items.length - MOST_NAMED} more`] : [];
  return start + clip([...lines, ...more].join('; '), room) + end;
}

function clip(text: string, longest: number): string {
  return text.length <= longest ? text : `${text.slice(0, longest - 1)}…`;
}
