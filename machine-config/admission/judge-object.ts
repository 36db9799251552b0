import { isDeepStrictEqual } from 'node:util';
import { isRecord } from '../ignition/findings.js';
import { judgeMachineConfig } from './judge-machine-config.js';
import { judgePool } from './judge-pool.js';
import {
  judgeContainerRuntimeConfig,
  judgeControllerConfig,
  judgeImageDigestMirrorSet,
  judgeImageTagMirrorSet,
  judgeKubeletConfig,
  judgeMachineConfiguration,
} from './judge-schema.js';
import type { AdmissionContext, AdmissionQuestion, AdmissionVerdict, Judge } from './question.js';

/** The kinds that are judged. */
const JUDGES: ReadonlyMap<string, Judge> = new Map<string, Judge>([
  ['MachineConfig', judgeMachineConfig],
  ['MachineConfigPool', judgePool],
  ['MachineConfiguration', judgeMachineConfiguration],
  ['ControllerConfig', judgeControllerConfig],
  ['KubeletConfig', judgeKubeletConfig],
  ['ContainerRuntimeConfig', judgeContainerRuntimeConfig],
  ['ImageDigestMirrorSet', judgeImageDigestMirrorSet],
  ['ImageTagMirrorSet', judgeImageTagMirrorSet],
]);

const ALLOWED: AdmissionVerdict = { warnings: [] };

/**
 * Whether a change is one that Drydock can work with. Never throws. What leaves the specification and the labels as they were is allowed whatever
 * they say: a wrong object of former times must still be annotated, released of its finalizers and deleted.
 */
export function judgeObject(question: AdmissionQuestion, context: AdmissionContext): AdmissionVerdict {
  const judge = JUDGES.get(question.kind);
  if (judge === undefined || leavesMeaning(question)) return ALLOWED;
  return judge(question, context);
}

function leavesMeaning({ object, oldObject }: AdmissionQuestion): boolean {
  if (!isRecord(object) || !isRecord(oldObject)) return false;
  const labels = ({ metadata }: Readonly<Record<string, unknown>>): unknown =>
    (isRecord(metadata) ? metadata.labels : undefined) ?? {};
  return isDeepStrictEqual(object.spec, oldObject.spec) && isDeepStrictEqual(labels(object), labels(oldObject));
}
