import { isDeepStrictEqual } from 'node:util';
import { apiVersionOf, type ResourceKind } from '../../machine-config/api/flavour.js';
import type { MachineConfig } from '../../machine-config/api/machine-config.js';
import { nameOfContent } from '../../machine-config/render/name.js';
import { readSpec } from '../../machine-config/render/spec.js';
import type { SourceProblem } from '../../machine-config/sources/source.js';
import { failedWith } from '../kubernetes/failures.js';
import type { ControlDependencies, MachineConfigResource } from './control-dependencies.js';
import type { SourceResource } from './source.js';

type OwnerReference = NonNullable<MachineConfigResource['metadata']['ownerReferences']>[number];

/** The MachineConfigs that are generated from the objects of one kind; each is owned by its object. */
export class GeneratedConfigs {
  readonly #dependencies: ControlDependencies;
  readonly #resource: ResourceKind;
  readonly #uids: ReadonlySet<string | undefined>;
  readonly #present: ReadonlyMap<string, MachineConfigResource>;
  #written = 0;

  constructor(
    dependencies: ControlDependencies,
    resource: ResourceKind,
    seen: { objects: readonly SourceResource[]; machineConfigs: readonly MachineConfigResource[] },
  ) {
    this.#dependencies = dependencies;
    this.#resource = resource;
    this.#uids = new Set(seen.objects.map(({ metadata }) => metadata.uid));
    this.#present = new Map(seen.machineConfigs.map((config) => [config.metadata.name, config]));
  }

  /** How many were written or deleted. */
  get written(): number {
    return this.#written;
  }

  /** Why the names of an object's configs are not to be had; what an object left that does not exist any more is. */
  whyTaken({ metadata }: SourceResource, configs: readonly MachineConfig[]): SourceProblem | undefined {
    const taken = configs.find((config) => {
      const present = this.#present.get(config.metadata.name);
      if (present === undefined) return false;
      if (isUnused(present)) return false;
      const owner = this.#ownerOf(present)?.uid;
      return owner === undefined || (owner !== metadata.uid && this.#uids.has(owner));
    });
    if (taken === undefined) return undefined;
    const message = `there is a MachineConfig ${taken.metadata.name} already that was not generated from this object; give that one another name, or delete it`;
    return { reason: 'NameTaken', message };
  }

  /** Creates the config, or makes it what it is to be if it is not; what others added to it stays. */
  async write(owner: SourceResource, config: MachineConfig): Promise<void> {
    const { client, flavour } = this.#dependencies;
    const present = this.#present.get(config.metadata.name);
    const wanted: MachineConfigResource = {
      apiVersion: apiVersionOf(flavour.machineConfig),
      kind: 'MachineConfig',
      ...config,
      metadata: { ...config.metadata, ownerReferences: [this.#referenceTo(owner)] },
    };
    if (present === undefined) {
      await client.create(flavour.machineConfig, wanted);
    } else {
      const labels = { ...present.metadata.labels, ...wanted.metadata.labels };
      const annotations = { ...present.metadata.annotations, ...wanted.metadata.annotations };
      const { ownerReferences = [] } = wanted.metadata;
      const next = { ...wanted, metadata: { ...present.metadata, labels, annotations, ownerReferences } };
      if (isDeepStrictEqual(meaningOf(present), meaningOf(next))) return;
      await client.replace(flavour.machineConfig, next);
    }
    this.#written += 1;
  }

  /** Deletes what an object owns and is not generated from it any more. */
  async deleteStale({ metadata }: SourceResource, wanted: readonly MachineConfig[]): Promise<void> {
    const names = new Set(wanted.map((config) => config.metadata.name));
    await this.#deleteWhere((owner, name) => owner.uid === metadata.uid && !names.has(name));
  }

  /** Deletes what belonged to objects that went without being asked; a cluster may have no garbage collector. */
  async deleteOrphans(): Promise<void> {
    await this.#deleteWhere(({ uid }) => !this.#uids.has(uid));
  }

  async #deleteWhere(isStale: (owner: OwnerReference, name: string) => boolean): Promise<void> {
    const { client, flavour } = this.#dependencies;
    for (const config of this.#present.values()) {
      const { name, uid } = config.metadata;
      const owner = this.#ownerOf(config);
      if (owner === undefined || !isStale(owner, name)) continue;
      try {
        await client.delete(flavour.machineConfig, { name, uid });
        this.#written += 1;
      } catch (error) {
        if (!failedWith(error, 'NotFound')) throw error;
      }
    }
  }

  #ownerOf({ metadata }: MachineConfigResource): OwnerReference | undefined {
    const { kind, group } = this.#resource;
    return metadata.ownerReferences?.find((each) => each.kind === kind && each.apiVersion.startsWith(`${group}/`));
  }

  #referenceTo({ metadata }: SourceResource): OwnerReference {
    return {
      apiVersion: apiVersionOf(this.#resource),
      kind: this.#resource.kind,
      name: metadata.name,
      uid: metadata.uid ?? '',
      controller: true,
      blockOwnerDeletion: true,
    };
  }
}

/** It says nothing and is nobody's, as `install` creates `00-<role>`: whoever takes it over takes nothing away. */
function isUnused({ metadata, spec = {} }: MachineConfigResource): boolean {
  if ((metadata.ownerReferences ?? []).length > 0) return false;
  const content = readSpec(spec);
  return content.problems.length === 0 && nameOfContent('', content) === EMPTY_NAME;
}

const EMPTY_NAME = nameOfContent('', readSpec({}));

function meaningOf({ metadata, spec }: MachineConfigResource): unknown {
  const { labels, annotations, ownerReferences } = metadata;
  return { labels, annotations, ownerReferences, spec };
}
