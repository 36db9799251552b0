/**
 * Types of the ApplicationFailures that activities throw. Expected outcomes are values; these are surprises, or facts
 * that end a step. `retryable` says whether Temporal's retry policy may try again.
 */
export const FAILURE_CODES = {
  /** The worker belongs to another Kubernetes cluster than the workflow (uid of the namespace kube-system). */
  WrongCluster: { retryable: false },
  /** The Node that the step is for is not the one this worker runs on, by name or uid. */
  WrongNode: { retryable: false },
  /** The Node object is gone. */
  NodeGone: { retryable: false },
  /**
   * The Node's desiredConfig is not what the step was asked for, or equals its currentConfig: no slot was granted. Or what
   * was granted costs no drain, and the step is one.
   */
  NotGranted: { retryable: false },
  /** The rendered config does not exist, is not owned by a pool, or its contents do not have the hash in its name. */
  UntrustedConfig: { retryable: false },
  /** The change cannot be made on a running node; names the field. */
  Unreconcilable: { retryable: false },
  /** The plan cannot be carried out on this host: a path outside, no room, an unknown user. */
  Unplannable: { retryable: false },
  /** The disk is not as the node's current config says; names the first path. */
  Drifted: { retryable: false },
  /** Applying failed and everything was put back. */
  ApplyFailed: { retryable: false },
  /** Applying failed, and so did putting it back: the journal stays open. */
  UndoFailed: { retryable: false },
  /** The same boot ID as before: the reboot has not happened yet. */
  NotRebootedYet: { retryable: true },
  /** Something on the host holds an inhibitor lock against a shutdown; names who and why. */
  RebootInhibited: { retryable: true },
  /** The plan turned out to need a drain that was not made; the update plans again. */
  NotDrained: { retryable: false },
  /** The host was told to reboot, answers, and is still in the same boot at the end of the limit. */
  NotRebooted: { retryable: false },
  /** After the reboot the host runs another operating-system image than the target's. */
  WrongImage: { retryable: false },
  /** After the reboot the node could not keep itself alive, restored the state before the update and rebooted again. */
  RolledBackAfterBoot: { retryable: false },
  /** After the reboot the disk is not as the target says. */
  NotAsTarget: { retryable: false },
  /** The Node is not Ready yet after the reboot. */
  NodeNotReady: { retryable: true },
  /** Another attempt holds the host's lock. */
  HostBusy: { retryable: true },
  /** The Kubernetes API refused for want of permission (401, 403). */
  Forbidden: { retryable: true },
  /** The Kubernetes API did not answer, or answered 5xx or 429. */
  ApiUnavailable: { retryable: true },
  /** A write met a newer version (409). */
  Conflict: { retryable: true },
  /** The object is not there (404). */
  NotFound: { retryable: false },
  /** The workflow was asked for something that it cannot do; the message says why. */
  Refused: { retryable: false },
  /** The API server refuses the object as invalid (400, 422). */
  Invalid: { retryable: false },
} as const;
export type FailureCode = keyof typeof FAILURE_CODES;
