import type { ImageDigestMirrorSet, ImageMirrors, ImageTagMirrorSet } from '../../api/image-mirrors.js';
import { compareText } from '../../render/select.js';
import type { SourceProblem } from '../source.js';

/** How an image may be named to be looked for in a mirror. */
export type PulledBy = 'digest' | 'tag' | 'any';

export interface Mirror {
  /** A registry, or a repository there. */
  readonly location: string;
  readonly for: PulledBy;
}

/** All that is said of one source. */
export interface MirroredSource {
  /** A registry, a repository or `*.domain`. */
  readonly source: string;
  /** In the order in which they are asked. */
  readonly mirrors: readonly Mirror[];
  /** The source itself is never asked. */
  readonly never: boolean;
}

interface Statement extends ImageMirrors {
  readonly set: string;
  readonly by: 'digest' | 'tag';
}

/**
 * Puts all mirror sets together, source by source. Mirrors keep the order that each set gives them; those for digests
 * come before those for tags. Sets that contradict each other are refused, since it would be chance who wins.
 */
export function mergeMirrors(
  digestSets: readonly ImageDigestMirrorSet[],
  tagSets: readonly ImageTagMirrorSet[],
): MirroredSource[] | SourceProblem {
  const statements: Statement[] = [
    ...inOrder(digestSets).flatMap(({ metadata, spec }) =>
      (spec.imageDigestMirrors ?? []).map((entry) => statement('ImageDigestMirrorSet', metadata.name, entry)),
    ),
    ...inOrder(tagSets).flatMap(({ metadata, spec }) =>
      (spec.imageTagMirrors ?? []).map((entry) => statement('ImageTagMirrorSet', metadata.name, entry)),
    ),
  ];
  const bySource = new Map<string, Statement[]>();
  for (const each of statements) bySource.set(each.source, [...(bySource.get(each.source) ?? []), each]);
  const sources: MirroredSource[] = [];
  for (const [source, said] of [...bySource].sort(([one], [other]) => compareText(one, other))) {
    const problem = contradiction(source, said);
    if (problem !== undefined) return { reason: 'ConflictingMirrors', message: problem };
    const mirrors = mirrorsOf(said);
    const never = said.some(({ mirrorSourcePolicy }) => mirrorSourcePolicy === 'NeverContactSource');
    if (mirrors.length > 0 || never) sources.push({ source, mirrors, never });
  }
  return sources;
}

function inOrder<T extends { readonly metadata: { readonly name: string } }>(sets: readonly T[]): T[] {
  return sets.toSorted((one, other) => compareText(one.metadata.name, other.metadata.name));
}

function statement(kind: 'ImageDigestMirrorSet' | 'ImageTagMirrorSet', name: string, entry: ImageMirrors): Statement {
  return { ...entry, set: `${kind} ${name}`, by: kind === 'ImageDigestMirrorSet' ? 'digest' : 'tag' };
}

/** Who says nothing about the source itself contradicts nobody. */
function contradiction(source: string, said: readonly Statement[]): string | undefined {
  const never = said.find(({ mirrorSourcePolicy }) => mirrorSourcePolicy === 'NeverContactSource');
  if (never === undefined) return undefined;
  const allows = said.find(({ mirrorSourcePolicy }) => mirrorSourcePolicy === 'AllowContactingSource');
  if (allows !== undefined) {
    return `${never.set} says NeverContactSource for ${source}, and ${allows.set} AllowContactingSource; let them agree on mirrorSourcePolicy`;
  }
  const itself = said.find(({ mirrors = [] }) => mirrors.includes(source));
  if (itself === undefined) return undefined;
  return `${never.set} says NeverContactSource for ${source}, and ${itself.set} has ${source} as a mirror of itself; take it from the mirrors, or allow the source`;
}

function mirrorsOf(said: readonly Statement[]): Mirror[] {
  const lists = (by: Statement['by']) => said.filter((each) => each.by === by).map(({ mirrors = [] }) => mirrors);
  const digests = united(lists('digest'));
  const tags = united(lists('tag'));
  return [
    ...digests.map((location): Mirror => ({ location, for: tags.includes(location) ? 'any' : 'digest' })),
    ...tags.filter((location) => !digests.includes(location)).map((location): Mirror => ({ location, for: 'tag' })),
  ];
}

/** One list that keeps the order of each as far as they do not contradict each other. */
function united(lists: readonly (readonly string[])[]): string[] {
  const left = new Set(lists.flat());
  const result: string[] = [];
  while (left.size > 0) {
    const candidates = [...left];
    const isFirst = (mirror: string) =>
      lists.every((list) => {
        const at = list.indexOf(mirror);
        return at < 0 || list.slice(0, at).every((before) => !left.has(before));
      });
    const next = candidates.find(isFirst) ?? candidates[0];
    if (next === undefined) break;
    left.delete(next);
    result.push(next);
  }
  return result;
}
