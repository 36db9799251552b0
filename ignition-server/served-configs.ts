import { setImmediate as nextTurn } from 'node:timers/promises';
import type { KubernetesObject } from '../activities/kubernetes/client.js';
import type { CacheChange } from '../activities/kubernetes/watch-cache.js';
import type { ApiFlavour } from '../machine-config/api/flavour.js';
import type { MachineConfigPool } from '../machine-config/api/machine-config-pool.js';
import type { MachineConfig } from '../machine-config/api/machine-config.js';
import { SERVED_VERSIONS, type ServedVersion } from '../machine-config/first-boot/accept.js';
import { composeFirstBoot, type FirstBootInputs } from '../machine-config/first-boot/compose.js';
import { revisionForNewNode } from '../machine-config/first-boot/revision.js';
import { verifyRenderedName } from '../machine-config/render/name.js';
import { BodyMaker, type ServedBody } from './served-body.js';

export type PoolResource = KubernetesObject & MachineConfigPool;
export type ConfigResource = KubernetesObject & MachineConfig;

/** What a request for a pool's config is answered with. */
export type ServedAnswer =
  | { readonly outcome: 'served'; readonly config: string; readonly body: ServedBody }
  /** This version of Ignition cannot say what the config says. */
  | { readonly outcome: 'refused'; readonly reason: string }
  /** Not now; asked again later there may be one. */
  | { readonly outcome: 'notYet'; readonly reason: string }
  | { readonly outcome: 'unknownPool' };

interface Watched<T> {
  list(): T[];
  get(name: string): T | undefined;
  hasSynced(): boolean;
  onChange(listener: (change: CacheChange<T & KubernetesObject>) => void): () => void;
}

export interface ServedConfigsOptions {
  readonly flavour: ApiFlavour;
  readonly pools: Watched<PoolResource>;
  readonly configs: Watched<ConfigResource>;
  /** What goes into every config beside the pool's own; a sentence: what is missing for it. */
  readonly inputs: () => FirstBootInputs | string;
  readonly onNote: (note: { readonly pool: string; readonly config?: string; readonly message: string }) => void;
}

type PreparedAnswer = Extract<ServedAnswer, { outcome: 'served' | 'refused' }>;

interface PreparedPool {
  readonly config: string;
  /** Of the config's own version and all that is added to it: the same print is the same bytes. */
  readonly print: string;
  readonly answers: ReadonlyMap<ServedVersion, PreparedAnswer> | undefined;
  readonly reason: string;
}

/**
 * The bytes of every pool's config in every version, prepared whenever something that goes into them changes, so that a
 * request costs no rendering and no call. What was prepared last stays as long as the watches tell nothing else.
 */
export class ServedConfigs {
  readonly #options: ServedConfigsOptions;
  readonly #prepared = new Map<string, PreparedPool>();
  readonly #due = new Set<string>();
  #preparing: Promise<void> | undefined;

  constructor(options: ServedConfigsOptions) {
    this.#options = options;
    const { pools, configs } = options;
    pools.onChange(({ object }) => this.#prepare([object.metadata.name]));
    configs.onChange(({ object }) => this.#prepare(this.#poolsOf(object.metadata.name)));
    this.prepareAll();
  }

  answer(pool: string, version: ServedVersion): ServedAnswer {
    const { pools, configs } = this.#options;
    const prepared = this.#prepared.get(pool);
    const found = prepared?.answers?.get(version);
    if (found !== undefined) return found;
    if (prepared !== undefined) return { outcome: 'notYet', reason: prepared.reason };
    if (!pools.hasSynced() || !configs.hasSynced()) {
      return { outcome: 'notYet', reason: 'the pools have not been read from the API server yet' };
    }
    if (pools.get(pool) === undefined) return { outcome: 'unknownPool' };
    return { outcome: 'notYet', reason: `the config of pool ${pool} is being prepared` };
  }

  /** Names of the pools whose config can be given out. */
  ready(): { readonly pool: string; readonly config: string; readonly bytes: number }[] {
    return [...this.#prepared].flatMap(([pool, { config, answers }]) => {
      const newest = answers?.get('3.5.0');
      if (newest?.outcome !== 'served') return [];
      return [{ pool, config, bytes: newest.body.head.length + newest.body.tail.length }];
    });
  }

  /** Something that goes into every config has changed. */
  prepareAll(): void {
    this.#prepare(this.#options.pools.list().map(({ metadata }) => metadata.name));
  }

  /** Resolves when nothing is left to prepare. */
  async settled(): Promise<void> {
    while (this.#preparing !== undefined) await this.#preparing;
  }

  #poolsOf(config: string): string[] {
    return this.#options.pools
      .list()
      .filter((pool) => {
        const { name } = pool.metadata;
        const revision = revisionForNewNode(pool);
        return (
          this.#prepared.get(name)?.config === config || (revision.outcome === 'config' && revision.name === config)
        );
      })
      .map(({ metadata }) => metadata.name);
  }

  #prepare(pools: readonly string[]): void {
    for (const pool of pools) this.#due.add(pool);
    if (this.#due.size === 0 || this.#preparing !== undefined) return;
    this.#preparing = this.#prepareDue().finally(() => (this.#preparing = undefined));
  }

  /** One pool a turn of the event loop: a config of a megabyte takes tens of milliseconds, and requests go on. */
  async #prepareDue(): Promise<void> {
    for (;;) {
      await nextTurn();
      const [pool] = this.#due;
      if (pool === undefined) return;
      this.#due.delete(pool);
      this.#preparePool(pool);
    }
  }

  #preparePool(name: string): void {
    const { pools, configs, inputs } = this.#options;
    // Half of what there is says nothing of what there is not.
    if (!configs.hasSynced() && configs.list().length === 0) return;
    const pool = pools.get(name);
    if (pool === undefined) {
      this.#prepared.delete(name);
      return;
    }
    const revision = revisionForNewNode(pool);
    const added = inputs();
    if (revision.outcome === 'none') this.#withhold(name, '', revision.reason);
    else if (typeof added === 'string') this.#withhold(name, revision.name, added);
    else this.#prepareConfig(name, configs.get(revision.name), { added, config: revision.name });
  }

  #prepareConfig(
    pool: string,
    found: ConfigResource | undefined,
    { added, config }: { added: FirstBootInputs; config: string },
  ): void {
    const why = found === undefined ? 'it does not exist' : this.#whyNotTrusted(found);
    if (found === undefined || why !== undefined) {
      this.#withhold(pool, config, `${config}, the config of pool ${pool}: ${why ?? ''}`);
      return;
    }
    const print = JSON.stringify([found.metadata.resourceVersion, found.metadata.uid, added]);
    if (this.#prepared.get(pool)?.print !== print) this.#compose(pool, { config: found, added, print });
  }

  #compose(pool: string, parts: { config: ConfigResource; added: FirstBootInputs; print: string }): void {
    const { config, added, print } = parts;
    const { name } = config.metadata;
    try {
      const composed = composeFirstBoot(config, added);
      const maker = new BodyMaker();
      const answers = new Map<ServedVersion, PreparedAnswer>();
      for (const version of SERVED_VERSIONS) {
        const written = composed.for(version);
        if (written.outcome === 'refused') {
          answers.set(version, { outcome: 'refused', reason: `${name}: ${written.reason}` });
        } else {
          answers.set(version, { outcome: 'served', config: name, body: maker.make(written.document) });
        }
      }
      this.#prepared.set(pool, { config: name, print, answers, reason: '' });
      const left = composed.overridden.join(', ');
      const but = left === '' ? '' : `; it writes ${left} itself, which is left to it`;
      this.#options.onNote({ pool, config: name, message: `new machines get this config${but}` });
    } catch (error) {
      this.#withhold(pool, name, error instanceof Error ? error.message : String(error));
    }
  }

  #whyNotTrusted({ metadata, spec }: ConfigResource): string | undefined {
    const { machineConfigPool } = this.#options.flavour;
    const owner = metadata.ownerReferences?.find(({ controller }) => controller === true);
    const isPools =
      owner?.kind === machineConfigPool.kind && owner.apiVersion.startsWith(`${machineConfigPool.group}/`);
    if (!isPools) return 'it is not owned by a MachineConfigPool, so somebody else made it; delete it';
    if (verifyRenderedName({ metadata, ...(spec === undefined ? {} : { spec }) })) return undefined;
    return 'it was changed after it was rendered, its contents do not have the hash in its name; delete it';
  }

  #withhold(pool: string, config: string, reason: string): void {
    if (this.#prepared.get(pool)?.reason === reason) return;
    this.#prepared.set(pool, { config, print: '', answers: undefined, reason });
    this.#options.onNote({ pool, message: `new machines get no config: ${reason}` });
  }
}
