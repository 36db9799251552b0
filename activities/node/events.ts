import type { KubernetesClient } from '../kubernetes/client.js';
import { EventWriter, type ToldEvent } from '../kubernetes/event-writer.js';

/** What happened to a node, for `kubectl describe node` and `kubectl get events`. */
export type EventReason =
  | 'ConfigDriftDetected'
  | 'ConfigDriftResolved'
  | 'UpdateApplied'
  | 'UpdateFailed'
  | 'RolledBack'
  /** After an undone update a service could not be given its old files. */
  | 'ServiceNotRestored'
  | 'Reboot'
  | 'RebootInhibited'
  /** A drain waits for longer than a minute. */
  | 'DrainBlocked'
  /** Its limit is over, and the pool says that the node is given back. */
  | 'DrainGivenUp'
  /** Its limit is over, and the pool says that pods are deleted past their budgets. */
  | 'DrainForced'
  /** Somebody uncordoned the node in the middle of its drain. */
  | 'CordonedAgain'
  /** A file that follows a Secret or ConfigMap was changed by somebody else and is written again. */
  | 'CertificateRestored'
  /** A file cannot follow its Secret or ConfigMap. */
  | 'CertificateProblem'
  | 'NodeDone';

/** Tells what happens to the own Node as Events. Never waits, never fails. */
export interface NodeEvents {
  normal(reason: EventReason, message: string): void;
  warning(reason: EventReason, message: string): void;
  /** Resolves when what was told so far is written or given up. */
  flushed(): Promise<void>;
}

export interface NodeEventsOptions {
  readonly client: KubernetesClient;
  readonly node: string;
  readonly now: () => Date;
  /** Told of each Event that could not be written. */
  readonly onError?: (error: unknown) => void;
}

const COMPONENT = 'drydock-node';

/** Events regarding the Node `node`, written with the node's own identity. */
export function createNodeEvents({ client, node, now, onError }: NodeEventsOptions): NodeEvents {
  const onErrors = onError === undefined ? {} : { onError };
  const writer = new EventWriter({ client, component: COMPONENT, instance: node, now, ...onErrors });
  // As the kubelet does: a Node's Events carry its name for a uid, and are found by either.
  const about = { apiVersion: 'v1', kind: 'Node', name: node, uid: node };
  const tell = (type: ToldEvent['type'], reason: EventReason, message: string) =>
    writer.tell({ about, type, reason, message });
  return {
    normal: (reason, message) => tell('Normal', reason, message),
    warning: (reason, message) => tell('Warning', reason, message),
    flushed: () => writer.flushed(),
  };
}
