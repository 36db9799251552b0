import type { CachedObjects } from '../../activities/cluster/control-dependencies.js';
import type { KubernetesObject } from '../../activities/kubernetes/client.js';
import type { ResourceKind } from '../../machine-config/api/flavour.js';
import type { FakeCluster } from './fake-cluster.js';

/** A watch that shows each change only when it is told to. */
export class LaggingCache<T extends KubernetesObject> implements CachedObjects<T> {
  private readonly objects = new Map<string, T>();
  private readonly unseen: { type: string; object: T }[] = [];
  private version: string | undefined;
  private readonly now: () => number;

  constructor(cluster: FakeCluster, kind: ResourceKind, now: () => number) {
    this.now = now;
    cluster.observe<T>(kind, (type, object) => void this.unseen.push({ type, object }));
  }

  show(count: number): void {
    for (const { type, object } of this.unseen.splice(0, count)) {
      if (type === 'DELETED') this.objects.delete(object.metadata.name);
      else this.objects.set(object.metadata.name, object);
      this.version = object.metadata.resourceVersion;
    }
  }

  list = () => [...this.objects.values()];
  get = (name: string) => this.objects.get(name);
  freshness = () => (this.version === undefined ? undefined : { version: this.version, heardAt: this.now() });
  reaches = (isEnough: (version: string) => boolean) =>
    Promise.resolve(this.version !== undefined && isEnough(this.version));
}
