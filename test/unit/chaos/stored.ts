import { apiFlavour, DRYDOCK_ANNOTATIONS, EMPTY_CONFIG_NAME } from '../../../machine-config/api/flavour.js';
import { HAND_ANNOTATION } from '../../../dev/chaos/cast.js';
import { Observer } from '../../../dev/chaos/observer/observer.js';

const flavour = apiFlavour('openshift');
const ROLE = 'node-role.kubernetes.io/';

export interface NodeToStore {
  readonly pool?: 'worker' | 'infra';
  /** Default true. */
  readonly managed?: boolean;
  readonly current?: string;
  readonly desired?: string;
  readonly applying?: string;
  readonly cordonedFor?: string;
  readonly hold?: string;
  readonly hand?: number;
  readonly unschedulable?: boolean;
  readonly bootId?: string;
  readonly failure?: string;
}

export interface PoolToStore {
  readonly maxUnavailable?: number | string;
  readonly paused?: boolean;
  readonly target?: string;
  /** The node that was granted a slot last. */
  readonly granted?: string;
}

export interface PodToStore {
  readonly node: string;
  readonly ready?: boolean;
  readonly ending?: boolean;
  /** Why it ends, as the cluster says. */
  readonly disruption?: string;
}

/** An observer, and what the API server stores one after the other; a second passes with each. */
export class StoredCluster {
  readonly observer = new Observer(flavour, 0);
  #revision = 0;
  #now = 0;

  /** What was found to be broken, as sentences. */
  get found(): string[] {
    return this.observer.violations.map(({ sentence }) => sentence);
  }

  pass(seconds: number): this {
    this.#now += seconds * 1000;
    return this;
  }

  pool(name: string, { maxUnavailable = 1, paused = false, target = 'rendered-1', granted }: PoolToStore = {}): this {
    const grant = JSON.stringify({ node: granted, at: granted, target });
    const annotations = granted === undefined ? {} : { [DRYDOCK_ANNOTATIONS.lastGrant]: grant };
    return this.#store(`${flavour.group}/machineconfigpools/${name}`, {
      metadata: { name, annotations },
      spec: { maxUnavailable, paused, configuration: { name: target } },
    });
  }

  node(name: string, node: NodeToStore = {}): this {
    const { currentConfig, desiredConfig, state } = flavour.annotations;
    const { pool = 'worker', current = EMPTY_CONFIG_NAME, desired = current, bootId = 'boot-1' } = node;
    return this.#store(`minions/${name}`, {
      metadata: {
        name,
        uid: name,
        labels: { [`${ROLE}worker`]: '', ...(pool === 'worker' ? {} : { [`${ROLE}${pool}`]: '' }) },
        annotations: {
          [currentConfig]: current,
          [desiredConfig]: desired,
          [state]: 'Done',
          [DRYDOCK_ANNOTATIONS.worker]: node.managed === false ? '' : '1',
          [DRYDOCK_ANNOTATIONS.applying]: node.applying ?? '',
          [DRYDOCK_ANNOTATIONS.cordonedFor]: node.cordonedFor ?? '',
          [DRYDOCK_ANNOTATIONS.hold]: node.hold ?? '',
          [DRYDOCK_ANNOTATIONS.failure]: node.failure ?? '',
          [HAND_ANNOTATION]: String(node.hand ?? 0),
        },
      },
      spec: { unschedulable: node.unschedulable ?? false },
      status: { conditions: [{ type: 'Ready', status: 'True' }], nodeInfo: { bootID: bootId } },
    });
  }

  noNode(name: string): this {
    return this.#store(`minions/${name}`, undefined);
  }

  budget(minAvailable: number): this {
    return this.#store('poddisruptionbudgets/shop/cart', {
      metadata: { name: 'cart', namespace: 'shop' },
      spec: { minAvailable, selector: { matchLabels: { app: 'cart' } } },
    });
  }

  /** A pod that nobody owns. */
  pod(name: string, { node, ready = true, ending = false, disruption }: PodToStore): this {
    const conditions = [
      { type: 'Ready', status: ready ? 'True' : 'False' },
      ...(disruption === undefined ? [] : [{ type: 'DisruptionTarget', status: 'True', reason: disruption }]),
    ];
    return this.#store(`pods/shop/${name}`, {
      metadata: {
        name,
        namespace: 'shop',
        labels: { app: 'cart' },
        ...(ending ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}),
      },
      spec: { nodeName: node },
      status: { conditions },
    });
  }

  #store(path: string, object: object | undefined): this {
    this.#revision += 1;
    this.pass(1);
    this.observer.see({ revision: this.#revision, key: `/registry/${path}`, object }, this.#now);
    return this;
  }
}
