import { KINDS, type KubernetesClient, type KubernetesObject } from '../activities/kubernetes/client.js';
import { failedWith } from '../activities/kubernetes/failures.js';
import { judgeObject } from '../machine-config/admission/judge-object.js';
import type { AdmissionContext, PoolOfCluster } from '../machine-config/admission/question.js';
import { apiVersionOf, type ApiFlavour, type ResourceKind } from '../machine-config/api/flavour.js';
import { isRecord, quote, stepsOfPath } from '../machine-config/ignition/findings.js';
import { readManifests, type Manifest } from './manifest-files.js';

export interface ApplyFilesInput {
  readonly client: KubernetesClient;
  readonly flavour: ApiFlavour;
  readonly files: readonly string[];
  readonly filesDir?: string | undefined;
  readonly role?: string | undefined;
  readonly dryRun: boolean;
  readonly forceConflicts: boolean;
}

export interface AppliedObject {
  readonly kind: string;
  readonly name: string;
  readonly action: 'created' | 'configured' | 'unchanged';
}

export type ApplyFilesResult =
  | { readonly outcome: 'applied'; readonly objects: readonly AppliedObject[]; readonly warnings: readonly string[] }
  /** Nothing was sent. One line for each thing that is wrong. */
  | { readonly outcome: 'refused'; readonly problems: readonly string[]; readonly warnings: readonly string[] };

/** Of kubectl's too, so that people see who applied what. */
const FIELD_MANAGER = 'drydock-apply';

interface Wanted {
  readonly resource: ResourceKind;
  readonly object: KubernetesObject;
  readonly manifest: Manifest;
}

/**
 * Applies the objects of files by server-side apply. First all of them are judged as the admission webhook judges them; if
 * one is wrong, nothing is sent. Configs go before pools, so that no pool is rendered without what comes with it.
 */
export async function applyFiles(input: ApplyFilesInput): Promise<ApplyFilesResult> {
  const { client, flavour, filesDir, role } = input;
  const read = await readManifests(input.files, { flavour, filesDir, role });
  const problems = [...read.errors];
  const warnings = [...(read.warnings ?? [])];
  const wanted = read.manifests.flatMap((manifest): Wanted[] => {
    const sorted = sortManifest(manifest, flavour);
    if (typeof sorted !== 'string') return [sorted];
    problems.push(`${placeOf(manifest, [])}: ${sorted}`);
    return [];
  });
  problems.push(...repeated(wanted));
  if (wanted.length === 0 && problems.length === 0)
    problems.push(`${input.files.join(', ')}: there is no object to apply`);
  if (problems.length > 0) return { outcome: 'refused', problems, warnings };

  const live = await Promise.all(wanted.map((each) => stored(client, each)));
  const context = await contextOf(client, flavour, wanted);
  wanted.forEach(({ object, manifest, resource }, index) => {
    const oldObject = live[index];
    const verdict = judgeObject({ kind: resource.kind, object, ...(oldObject && { oldObject }) }, context);
    warnings.push(...verdict.warnings.map((warning) => withPlace(manifest, warning)));
    if (verdict.refusal !== undefined) problems.push(withPlace(manifest, verdict.refusal));
  });
  if (problems.length > 0) return { outcome: 'refused', problems, warnings };
  const objects: AppliedObject[] = [];
  for (const each of inOrder(wanted)) objects.push(await send(input, each, live[wanted.indexOf(each)]));
  return { outcome: 'applied', objects, warnings };
}

function sortManifest(manifest: Manifest, flavour: ApiFlavour): Wanted | string {
  const { value } = manifest;
  if (!isRecord(value)) return 'is not a Kubernetes object; write apiVersion, kind, metadata and spec';
  const resource = applicableKinds(flavour).find(
    (each) => each.kind === value.kind && apiVersionOf(each) === value.apiVersion,
  );
  if (resource === undefined) {
    const known = applicableKinds(flavour).map((each) => `${each.kind} of ${apiVersionOf(each)}`);
    return `${quote(value.kind ?? 'no kind')} of ${quote(value.apiVersion ?? 'no apiVersion')} is not applied here, use kubectl; applied are ${known.join(', ')}`;
  }
  const { metadata } = value;
  if (!isRecord(metadata) || typeof metadata.name !== 'string' || metadata.name === '') {
    return `the ${resource.kind} has no metadata.name; write one`;
  }
  const object = withoutKeys(value, ['status']);
  return {
    resource,
    manifest,
    object: { ...object, metadata: { ...withoutKeys(metadata, SERVER_SAYS), name: metadata.name } },
  };
}

/** What an object that was read from a cluster has, and an apply may not say. */
const SERVER_SAYS = ['managedFields', 'resourceVersion', 'uid', 'creationTimestamp', 'generation', 'selfLink'];

function withoutKeys(value: Readonly<Record<string, unknown>>, keys: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).filter(([key]) => !keys.includes(key)));
}

/** The kinds of the flavour's own API that people write, configs first. */
function applicableKinds(flavour: ApiFlavour): ResourceKind[] {
  const kinds = Object.values(flavour).filter(isResourceKind);
  const people = kinds.filter(({ kind }) => kind !== flavour.machineConfigNode.kind);
  return people.sort((a, b) => Number(isPool(a)) - Number(isPool(b)));
}

function isResourceKind(value: unknown): value is ResourceKind {
  return isRecord(value) && typeof value.plural === 'string' && typeof value.kind === 'string';
}

function isPool({ kind }: ResourceKind): boolean {
  return kind === 'MachineConfigPool';
}

function inOrder(wanted: readonly Wanted[]): Wanted[] {
  return wanted.toSorted((a, b) => Number(isPool(a.resource)) - Number(isPool(b.resource)));
}

/** The same object twice in the files is a mistake: only one of them would be there afterwards. */
function repeated(wanted: readonly Wanted[]): string[] {
  const nameOf = ({ resource, object }: Wanted) => `${resource.kind} ${object.metadata.name}`;
  const names = wanted.map(nameOf);
  return wanted
    .filter((each, index) => names.indexOf(nameOf(each)) < index)
    .map((each) => `${placeOf(each.manifest, [])}: ${nameOf(each)} is in the files twice; take one out`);
}

async function stored(client: KubernetesClient, { resource, object }: Wanted): Promise<KubernetesObject | undefined> {
  try {
    return await client.get(resource, { name: object.metadata.name });
  } catch (error) {
    if (failedWith(error, 'NotFound')) return undefined;
    throw error;
  }
}

/** The cluster as it will be when all of the files are there. */
async function contextOf(
  client: KubernetesClient,
  flavour: ApiFlavour,
  wanted: readonly Wanted[],
): Promise<AdmissionContext> {
  const all = async (resource: ResourceKind) => {
    const coming = wanted.filter((each) => each.resource.kind === resource.kind).map(({ object }) => object);
    const names = new Set(coming.map(({ metadata }) => metadata.name));
    const there = await client.list(resource);
    return [...there.filter(({ metadata }) => !names.has(metadata.name)), ...coming];
  };
  const nodes = await client.list(KINDS.node);
  const [pools, machineConfigs] = await Promise.all([all(flavour.machineConfigPool), all(flavour.machineConfig)]);
  return {
    flavour,
    nodes: nodes.map(({ metadata }) => ({ name: metadata.name, labels: metadata.labels ?? {} })),
    // Those of the files are judged themselves, by the schema first.
    pools: pools.filter(hasSpec),
    machineConfigs,
  };
}

function hasSpec(object: KubernetesObject): object is KubernetesObject & PoolOfCluster {
  return 'spec' in object && isRecord(object.spec);
}

async function send(
  { client, dryRun, forceConflicts }: ApplyFilesInput,
  { resource, object }: Wanted,
  before: KubernetesObject | undefined,
): Promise<AppliedObject> {
  const after = await client.apply(resource, object, { fieldManager: FIELD_MANAGER, force: forceConflicts, dryRun });
  const isSame = before !== undefined && before.metadata.resourceVersion === after.metadata.resourceVersion;
  const action = before === undefined ? 'created' : isSame ? 'unchanged' : 'configured';
  return { kind: resource.kind, name: object.metadata.name, action };
}

function placeOf(manifest: Manifest, path: readonly (string | number)[]): string {
  const line = manifest.lineOf(path);
  return `${manifest.place}${line === undefined ? '' : ` (line ${line})`}`;
}

/** Puts file and line before a sentence of the form `MachineConfig 99-x: spec.config.…: …`. */
function withPlace(manifest: Manifest, sentence: string): string {
  const path = /^\S+ \S+: ((?:spec|metadata)[^\s:]*): /.exec(sentence)?.[1] ?? '';
  return `${placeOf(manifest, stepsOfPath(path))}: ${sentence}`;
}
