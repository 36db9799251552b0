import type { Host } from '../activities/host/host.js';
import type { KubernetesClient } from '../activities/kubernetes/client.js';
import type { NodeActivities } from '../workflows/contract/activities.js';

/**
 * The power of one simulated machine, for one boot. Once it is off, whatever belongs to that boot hangs for ever at its
 * next step: activities neither end nor heartbeat, calls are neither sent nor answered. Nothing is closed and nobody is
 * told, as with a machine that has frozen.
 */
export class Power {
  private off = false;
  private readonly onTaskWhileOff: () => void;

  /** `onTaskWhileOff`: a task was taken by the poll that a frozen machine still has open. */
  constructor(onTaskWhileOff: () => void) {
    this.onTaskWhileOff = onTaskWhileOff;
  }

  turnOff(): void {
    this.off = true;
  }

  /** Never resolves while the power is off. */
  private async needed(): Promise<void> {
    if (this.off) await new Promise<never>(() => undefined);
  }

  private async run<T>(work: () => Promise<T>): Promise<T> {
    await this.needed();
    try {
      return await work();
    } finally {
      await this.needed();
    }
  }

  activities(real: NodeActivities): NodeActivities {
    const powered =
      <I, O>(activity: (input: I) => Promise<O>) =>
      (input: I): Promise<O> => {
        if (this.off) this.onTaskWhileOff();
        return this.run(() => activity(input));
      };
    return {
      prepare: powered((input) => real.prepare(input)),
      cordon: powered((input) => real.cordon(input)),
      drain: powered((input) => real.drain(input)),
      apply: powered((input) => real.apply(input)),
      reboot: powered((input) => real.reboot(input)),
      confirm: powered((input) => real.confirm(input)),
      uncordon: powered((input) => real.uncordon(input)),
      release: powered((input) => real.release(input)),
    };
  }

  client(real: KubernetesClient): KubernetesClient {
    return {
      get: (resource, object) => this.run(() => real.get(resource, object)),
      list: (resource, options) => this.run(() => real.list(resource, options)),
      create: (resource, object) => this.run(() => real.create(resource, object)),
      replace: (resource, object, subresource) => this.run(() => real.replace(resource, object, subresource)),
      patch: (resource, object, patch, subresource) => this.run(() => real.patch(resource, object, patch, subresource)),
      apply: (resource, object, options) => this.run(() => real.apply(resource, object, options)),
      delete: (resource, object) => this.run(() => real.delete(resource, object)),
      evict: (pod) => this.run(() => real.evict(pod)),
      discover: (apiVersion, kind) => this.run(() => real.discover(apiVersion, kind)),
      etcdProblem: () => this.run(() => real.etcdProblem()),
      watch: (resource, handler, signal) => {
        real.watch(resource, handler, signal);
      },
    };
  }

  host(real: Host): Host {
    return {
      ...real,
      bootId: () => this.run(() => real.bootId()),
      reboot: (request) => this.run(() => real.reboot(request)),
      beforeStep: (step) => this.run(() => real.beforeStep(step)),
    };
  }
}
