import type { ApiFlavour } from '../../machine-config/api/flavour.js';
import type { SourceProblem, SourceResult } from '../../machine-config/sources/source.js';
import { sourceStatus } from '../../machine-config/sources/status.js';
import type { ReconcileSourcesInput, ReconcileSourcesResult, SourceKind } from '../../workflows/contract/activities.js';
import { ifThere } from '../kubernetes/failures.js';
import { containerRuntimeSource } from './container-runtime-source.js';
import { refuseOtherCluster, type ControlDependencies, type MachineConfigResource } from './control-dependencies.js';
import { controllerConfigSource } from './controller-config-source.js';
import { GeneratedConfigs } from './generated-configs.js';
import { kubeletSource } from './kubelet-source.js';
import { markSource, releaseSource } from './mark-source.js';
import type { Source, SourceResource } from './source.js';
import { writeStatus } from './write-source-status.js';

const SOURCES: Readonly<Record<SourceKind, (flavour: ApiFlavour) => Source>> = {
  KubeletConfig: kubeletSource,
  ContainerRuntimeConfig: containerRuntimeSource,
  ControllerConfig: controllerConfigSource,
};

const MAX_NAMES = 50;
const MAX_REFUSALS = 10;

/**
 * Brings the MachineConfigs that are generated from the objects of a kind up to date, and the status of the objects.
 * Writes nothing where nothing changed. What cannot be generated is said in the object's status, and what was generated
 * from it before stays.
 *
 * @throws WrongCluster, and the client's failures; a Conflict is retried.
 */
export async function reconcileSources(
  dependencies: ControlDependencies,
  input: ReconcileSourcesInput,
): Promise<ReconcileSourcesResult> {
  const { cluster, client, flavour } = dependencies;
  refuseOtherCluster(cluster, input.cluster);
  const source = SOURCES[input.kind](flavour);
  // Past the watches: what is written next depends on what was written last.
  const objects = await ifThere(() => client.list<SourceResource>(source.resource));
  if (objects === undefined) return { known: false, objects: 0, generated: [], refused: [], written: 0 };
  const machineConfigs = await client.list<MachineConfigResource>(flavour.machineConfig);
  const results = await source.generate(dependencies, objects, machineConfigs);
  const configs = new GeneratedConfigs(dependencies, source.resource, { objects, machineConfigs });
  const done: SourceResult[] = [];
  for (const object of objects) {
    const result = results.find((each) => each.source.uid === object.metadata.uid);
    if (result !== undefined) done.push(await reconcileOne(dependencies, source, { object, result, configs }));
  }
  await configs.deleteOrphans();
  await source.finish?.(dependencies, done);
  return {
    known: true,
    objects: objects.length,
    generated: done.flatMap((each) => each.configs.map(({ metadata }) => metadata.name)).slice(0, MAX_NAMES),
    refused: done
      .flatMap((each) => problemsIn(each).map(({ message }) => `${each.source.name}: ${message}`))
      .slice(0, MAX_REFUSALS),
    written: configs.written,
  };
}

function problemsIn({ problem, parts = {} }: SourceResult): SourceProblem[] {
  return problem === undefined ? Object.values(parts).filter((each) => each !== null) : [problem];
}

/** What became of one object; a name that somebody else has taken is a problem that only shows here. */
async function reconcileOne(
  dependencies: ControlDependencies,
  source: Source,
  { object, result, configs }: { object: SourceResource; result: SourceResult; configs: GeneratedConfigs },
): Promise<SourceResult> {
  const { resource } = source;
  if (object.metadata.deletionTimestamp !== undefined) {
    await configs.deleteStale(object, []);
    await releaseSource(dependencies, resource, object);
    return result;
  }
  const taken = result.problem === undefined ? configs.whyTaken(object, result.configs) : undefined;
  const outcome = taken === undefined ? result : { ...result, configs: [], problem: taken };
  if (outcome.problem === undefined) {
    const leavesNothing = outcome.configs.length === 0 && outcome.suffix === undefined;
    if (!leavesNothing) await markSource(dependencies, resource, object, outcome.suffix);
    for (const config of outcome.configs) await configs.write(object, config);
    await configs.deleteStale(object, outcome.configs);
  }
  const now = new Date(dependencies.now()).toISOString();
  const status = source.status?.(object.status, outcome, now) ?? sourceStatus(object.status, outcome, now);
  await writeStatus(dependencies, resource, object, status);
  return outcome;
}
