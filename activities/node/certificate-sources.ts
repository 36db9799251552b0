import {
  CONTROLLER_CONFIG_NAME,
  type ControllerConfig,
  type NodeCertificate,
} from '../../machine-config/api/controller-config.js';
import type { CertificateData } from '../../machine-config/certificates/files.js';
import { certificateObjects, objectName, type CertificateObject } from '../../machine-config/certificates/objects.js';
import { KINDS, type KubernetesObject } from '../kubernetes/client.js';
import { failedWith } from '../kubernetes/failures.js';
import { WatchCache } from '../kubernetes/watch-cache.js';
import type { NodeDependencies } from './dependencies.js';

type ControllerConfigObject = KubernetesObject & Pick<ControllerConfig, 'spec'>;
type DataObject = KubernetesObject & {
  readonly data?: Readonly<Record<string, string>>;
  readonly binaryData?: Readonly<Record<string, string>>;
};

/** A right that the control worker has just been asked for takes a moment, and a few more attempts of the watch. */
export const GRACE_MS = 30_000;

interface Followed {
  readonly cache: WatchCache<DataObject>;
  readonly end: AbortController;
  readonly since: number;
  refusal?: string;
}

export interface CertificateSourcesOptions {
  readonly deps: Pick<NodeDependencies, 'client' | 'flavour'>;
  readonly signal: AbortSignal;
  /** What is known has changed. */
  readonly onChange: () => void;
  readonly graceMs?: number;
}

/**
 * The ControllerConfig and the objects that its certificates name, each by a watch of its own, since a node may read
 * nothing else. What was seen once holds until something else is seen, whether or not the API server is there.
 */
export class CertificateSources {
  private readonly options: CertificateSourcesOptions;
  private readonly config: WatchCache<ControllerConfigObject>;
  private readonly followed = new Map<string, Followed>();

  constructor(options: CertificateSourcesOptions) {
    this.options = options;
    const { client, flavour } = options.deps;
    this.config = new WatchCache(client, flavour.controllerConfig, {
      signal: options.signal,
      scope: { fieldSelector: `metadata.name=${CONTROLLER_CONFIG_NAME}` },
    });
    this.announce(this.config);
  }

  /** Undefined: not known; the kind may not be there, or the node be in no pool that lets it read. */
  certificates(): readonly NodeCertificate[] | undefined {
    if (!this.config.hasSynced()) return undefined;
    const certificates = this.config.get(CONTROLLER_CONFIG_NAME)?.spec.certificates ?? [];
    this.follow(certificateObjects(certificates));
    return certificates;
  }

  read(object: CertificateObject, key: string): CertificateData {
    const followed = this.followed.get(objectName(object));
    if (followed === undefined) return { state: 'waiting' };
    const { cache, since, refusal } = followed;
    const found = cache.get(object);
    if (found !== undefined) return { state: 'there', contents: contentsOf(object.kind, found, key) };
    if (cache.hasSynced()) return { state: 'absent' };
    const isOverdue = performance.now() - since >= (this.options.graceMs ?? GRACE_MS);
    return refusal !== undefined && isOverdue ? { state: 'unreadable', why: refusal } : { state: 'waiting' };
  }

  private follow(objects: readonly CertificateObject[]): void {
    const names = new Set(objects.map(objectName));
    for (const [name, { end }] of this.followed) {
      if (names.has(name)) continue;
      end.abort();
      this.followed.delete(name);
    }
    for (const object of objects) {
      if (!this.followed.has(objectName(object))) this.followed.set(objectName(object), this.begin(object));
    }
  }

  private begin({ kind, namespace, name }: CertificateObject): Followed {
    const end = new AbortController();
    const cache = new WatchCache<DataObject>(
      this.options.deps.client,
      kind === 'Secret' ? KINDS.secret : KINDS.configMap,
      {
        signal: AbortSignal.any([this.options.signal, end.signal]),
        scope: { namespace, fieldSelector: `metadata.name=${name}` },
        onError: (error) => {
          if (failedWith(error, 'Forbidden')) followed.refusal = error.message;
        },
      },
    );
    const followed: Followed = { cache, end, since: performance.now() };
    this.announce(cache);
    return followed;
  }

  private announce<T extends KubernetesObject>(cache: WatchCache<T>): void {
    const { onChange } = this.options;
    cache.onChange(onChange);
    // An object that is not there is no change.
    cache.synced().then(onChange, () => undefined);
  }
}

function contentsOf(
  kind: CertificateObject['kind'],
  { data, binaryData }: DataObject,
  key: string,
): Buffer | undefined {
  const valueIn = (values: Readonly<Record<string, string>> | undefined) =>
    values !== undefined && Object.hasOwn(values, key) ? values[key] : undefined;
  const text = valueIn(data);
  if (kind === 'ConfigMap' && text !== undefined) return Buffer.from(text);
  const base64 = kind === 'Secret' ? text : valueIn(binaryData);
  return base64 === undefined ? undefined : Buffer.from(base64, 'base64');
}
