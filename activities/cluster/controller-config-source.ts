import type { ApiFlavour, ResourceKind } from '../../machine-config/api/flavour.js';
import type { ControllerConfig } from '../../machine-config/api/controller-config.js';
import {
  IMAGE_DIGEST_MIRROR_SET,
  IMAGE_TAG_MIRROR_SET,
  type ImageDigestMirrorSet,
  type ImageTagMirrorSet,
} from '../../machine-config/api/image-mirrors.js';
import { generateForControllerConfig } from '../../machine-config/sources/controller-config/generate.js';
import { controllerConfigStatus } from '../../machine-config/sources/controller-config/status.js';
import type { SourceProblem, SourceResult } from '../../machine-config/sources/source.js';
import { sourceStatus } from '../../machine-config/sources/status.js';
import type { KubernetesObject } from '../kubernetes/client.js';
import { ifThere } from '../kubernetes/failures.js';
import { syncCertificateAccess } from './certificate-access.js';
import type { ControlDependencies, PoolResource } from './control-dependencies.js';
import type { ControllerConfigResource } from './controller-config.js';
import { readTemplates } from './read-templates.js';
import type { Source, SourceResource } from './source.js';
import { writeStatus } from './write-source-status.js';

type MirrorSets<T> = readonly (KubernetesObject & T)[];

/**
 * Templates and image mirrors become configs that the ControllerConfig owns: mirror sets are merged, so none of them
 * could own what comes of it.
 */
export function controllerConfigSource(flavour: ApiFlavour): Source {
  return {
    resource: flavour.controllerConfig,
    async generate(dependencies, objects, machineConfigs) {
      const { client } = dependencies;
      const common = {
        flavour,
        machineConfigs,
        pools: await client.list<PoolResource>(flavour.machineConfigPool),
        digestMirrorSets: await mirrorSets<ImageDigestMirrorSet>(dependencies, IMAGE_DIGEST_MIRROR_SET),
        tagMirrorSets: await mirrorSets<ImageTagMirrorSet>(dependencies, IMAGE_TAG_MIRROR_SET),
      };
      const mayNotGrant = await syncCertificateAccess(dependencies, objects[0] as ControllerConfigResource | undefined);
      return Promise.all(
        (objects as readonly ControllerConfigResource[]).map(async (controllerConfig) =>
          generateForControllerConfig({
            ...common,
            controllerConfig,
            templates: await readTemplates(client, controllerConfig.spec.templates),
            ...(mayNotGrant === undefined ? {} : { mayNotGrant }),
          }),
        ),
      );
    },
    status: (previous, result, now) => controllerConfigStatus(previous as ControllerConfig['status'], result, now),
    finish: reportToMirrorSets,
  };
}

async function mirrorSets<T>({ client }: ControlDependencies, resource: ResourceKind): Promise<MirrorSets<T>> {
  return (await ifThere(() => client.list<KubernetesObject & T>(resource))) ?? [];
}

const NO_CONTROLLER_CONFIG: SourceProblem = {
  reason: 'NoControllerConfig',
  message:
    'there is no ControllerConfig machine-config-controller, which says for which container runtime mirrors are written and owns what is generated; create it',
};

/** Every mirror set has a part in all of it. */
async function reportToMirrorSets(dependencies: ControlDependencies, results: readonly SourceResult[]): Promise<void> {
  const [result] = results;
  // One that is about to go has no parts any more.
  const problem =
    result?.problem ?? (result?.parts === undefined ? NO_CONTROLLER_CONFIG : result.parts['imageMirrors']);
  for (const resource of [IMAGE_DIGEST_MIRROR_SET, IMAGE_TAG_MIRROR_SET]) {
    for (const set of await mirrorSets<SourceResource>(dependencies, resource)) {
      const { name, uid = '', generation = 0 } = set.metadata;
      const source = { kind: resource.kind, name, uid, generation };
      const outcome = { source, warnings: [], ...(problem ? { problem } : {}) };
      const now = new Date(dependencies.now()).toISOString();
      await writeStatus(dependencies, resource, set, sourceStatus(set.status, outcome, now));
    }
  }
}
