import type { ResourceKind } from '../../machine-config/api/flavour.js';
import { formatSelector, type LabelSelector } from '../../machine-config/api/label-selector.js';
import type { Gate } from '../../machine-config/api/rollout-policy.js';
import {
  conditionsHold,
  deploymentsAvailable,
  waits,
  type GateVerdict,
} from '../../machine-config/pool/gate-verdicts.js';
import { KINDS, type KubernetesClient, type KubernetesObject } from '../kubernetes/client.js';
import { ifThere } from '../kubernetes/failures.js';

type ConditionGate = NonNullable<Gate['condition']>;
type AvailableGate = NonNullable<Gate['available']>;

interface Selection {
  readonly kind: ResourceKind;
  readonly namespace?: string | undefined;
  readonly selector: LabelSelector;
}

/**
 * Gates that ask for objects of Kubernetes. Kinds are looked up once: a kind that is served under another name from one
 * day to the next does not exist.
 *
 * @throws the client's failures.
 */
export class ObjectGates {
  readonly #client: KubernetesClient;
  readonly #kinds = new Map<string, ResourceKind>();

  constructor(client: KubernetesClient) {
    this.#client = client;
  }

  async condition(gate: ConditionGate): Promise<GateVerdict> {
    const { apiVersion, kind: name, namespace, selector } = gate;
    const kind = await this.#kindOf(gate);
    if (kind === undefined) return waits(`the API server knows no ${name} of ${apiVersion}`);
    if (gate.name !== undefined) {
      if (kind.namespaced && namespace === undefined) return waits(`${name} ${gate.name} needs a namespace`);
      const where = { name: gate.name, ...(kind.namespaced && namespace !== undefined ? { namespace } : {}) };
      const object = await ifThere(() => this.#client.get(kind, where));
      return conditionsHold(object === undefined ? [] : [object], gate, `${name} ${gate.name}`);
    }
    const found = await this.#selected({ kind, namespace, selector: selector ?? {} });
    return found === undefined
      ? waits('its selector is empty and selects nothing')
      : conditionsHold(found, gate, `${name} with ${formatSelector(selector ?? {}) ?? ''}`);
  }

  async available({ namespace, selector }: AvailableGate): Promise<GateVerdict> {
    const found = await this.#selected({ kind: KINDS.deployment, namespace, selector });
    return found === undefined
      ? waits('its selector is empty and selects nothing')
      : deploymentsAvailable(found, `Deployment with ${formatSelector(selector) ?? ''}`);
  }

  async #selected({ kind, namespace, selector }: Selection): Promise<KubernetesObject[] | undefined> {
    const labelSelector = formatSelector(selector);
    if (labelSelector === undefined) return undefined;
    const where = kind.namespaced && namespace !== undefined ? { namespace } : {};
    return this.#client.list(kind, { ...where, labelSelector });
  }

  async #kindOf({ apiVersion, kind, resource, namespace }: ConditionGate): Promise<ResourceKind | undefined> {
    if (resource !== undefined) {
      const [first = '', second] = apiVersion.split('/');
      const [group, version] = second === undefined ? ['', first] : [first, second];
      return { group, version, plural: resource, kind, namespaced: namespace !== undefined };
    }
    const key = `${apiVersion} ${kind}`;
    const known = this.#kinds.get(key) ?? (await this.#client.discover(apiVersion, kind));
    if (known !== undefined) this.#kinds.set(key, known);
    return known;
  }
}
