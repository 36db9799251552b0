import type { DrainPod, PodVolume } from '../../../machine-config/drain/drain-pods.js';

export interface PodParts {
  readonly namespace?: string;
  readonly labels?: Record<string, string>;
  readonly annotations?: Record<string, string>;
  readonly owner?: string;
  readonly controller?: boolean;
  readonly phase?: string;
  readonly volumes?: PodVolume[];
  readonly deletionTimestamp?: string;
}

/** A running pod, in the namespace `shop` unless said otherwise. */
export function makePod(name: string, parts: PodParts = {}): DrainPod {
  const { namespace = 'shop', labels = {}, annotations = {}, owner, controller = true, volumes = [] } = parts;
  const { phase = 'Running', deletionTimestamp } = parts;
  const ownerReferences = owner === undefined ? [] : [{ kind: owner, name: 'owner', controller }];
  return {
    metadata: {
      name,
      namespace,
      uid: `uid-${name}`,
      labels,
      annotations,
      ownerReferences,
      ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
    },
    spec: { volumes },
    status: { phase },
  };
}
