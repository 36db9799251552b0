/** The processes that are killed and frozen. */
export const PROCESS_NAMES = ['temporal', 'apiServer', 'etcd', 'control-1', 'control-2', 'fleet-1', 'fleet-2'] as const;
export type ProcessName = (typeof PROCESS_NAMES)[number];

/** Whose calls to the API server go wrong. */
export const AUDIENCES = ['nodes', 'control', 'everybody'] as const;
export type Audience = (typeof AUDIENCES)[number];

/** What the MachineConfig of a pool says: a file, whose change costs a reboot, and an SSH key, whose change costs nothing. */
export interface Revision {
  readonly file: number;
  readonly key: number;
}

export type ProcessFault =
  | { readonly kind: 'kill'; readonly process: ProcessName; readonly forMs: number }
  | { readonly kind: 'freeze'; readonly process: ProcessName; readonly forMs: number };

export type NetworkFault =
  /** Every connection ends at once, and new ones are refused for a while. */
  | { readonly kind: 'cutApi'; readonly audience: Audience; readonly forMs: number }
  | { readonly kind: 'cutTemporal'; readonly forMs: number }
  /** A share of the calls is answered with 409, 429 or 500 and does not reach the API server. */
  | { readonly kind: 'apiErrors'; readonly audience: Audience; readonly share: number; readonly forMs: number }
  /** A share of the calls is carried out, and the connection ends before the answer. */
  | { readonly kind: 'lostAnswers'; readonly audience: Audience; readonly share: number; readonly forMs: number };

/** What people do, straight at the API server. */
export type ClusterFault =
  | { readonly kind: 'config'; readonly pool: string; readonly revision: Revision }
  | { readonly kind: 'maxUnavailable'; readonly pool: string; readonly value: number | string }
  | { readonly kind: 'pause'; readonly pool: string; readonly forMs: number }
  | { readonly kind: 'recreateNode'; readonly node: string; readonly forMs: number }
  | { readonly kind: 'relabelNode'; readonly node: string; readonly pool: string }
  | { readonly kind: 'cordonNode'; readonly node: string }
  | { readonly kind: 'uncordonNode'; readonly node: string }
  | { readonly kind: 'holdNode'; readonly node: string }
  | { readonly kind: 'releaseNode'; readonly node: string }
  | { readonly kind: 'createPods'; readonly app: string; readonly count: number };

export type Fault = ProcessFault | NetworkFault | ClusterFault;

const EVERY_KIND: Record<Fault['kind'], true> = {
  kill: true,
  freeze: true,
  cutApi: true,
  cutTemporal: true,
  apiErrors: true,
  lostAnswers: true,
  config: true,
  maxUnavailable: true,
  pause: true,
  recreateNode: true,
  relabelNode: true,
  cordonNode: true,
  uncordonNode: true,
  holdNode: true,
  releaseNode: true,
  createPods: true,
};
/** Of all sorts of faults. */
export const FAULT_KINDS: readonly string[] = Object.keys(EVERY_KIND);

export interface PlannedFault {
  /** After the beginning. */
  readonly atMs: number;
  readonly fault: Fault;
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;

/** One line for people. */
export function describeFault(fault: Fault): string {
  const { kind, ...details } = fault;
  const words = Object.entries(details).map(([key, value]: [string, unknown]) => {
    if (key === 'forMs') return `for ${seconds(value as number)}`;
    if (key === 'share') return `${String(Math.round((value as number) * 100))}%`;
    return typeof value === 'string' ? value : JSON.stringify(value);
  });
  return [kind, ...words].join(' ');
}
