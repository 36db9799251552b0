import { z } from 'zod';
import type { NodeFlavour } from '../../api/controller-config.js';
import type { ApiFlavour } from '../../api/flavour.js';
import { matchesSelector } from '../../api/label-selector.js';
import type { MachineConfig } from '../../api/machine-config.js';
import type { MachineConfigPool } from '../../api/machine-config-pool.js';
import type { IgnitionFile } from '../../ignition/config.js';
import { generatedConfig, generatedFile } from '../generated-config.js';
import type { SourceProblem } from '../source.js';
import { checkFields } from './check-fields.js';
import { KUBELET_API_VERSION, kubeletConfigurationSchema, type KubeletConfiguration } from './configuration.js';
import { mergeFields, readFields, sameFields, writeFields, type Fields } from './merge-fields.js';
import { CONFIG_DIR_UNIT, configPath, KUBELET_PATHS } from './kubelet-paths.js';
import { besideWhole, mergeWhole } from './openshift-files.js';
import { below, type OwnSettings } from './own-settings.js';
import { fileIn, filesAround } from './present-files.js';

interface PlaceInput {
  readonly flavour: ApiFlavour;
  readonly nodeFlavour: NodeFlavour;
  readonly pool: MachineConfigPool;
  /** Of the config to be made. */
  readonly name: string;
  readonly own: OwnSettings;
  /** What the pool's config is made of besides: all that people wrote, and what was generated so far. */
  readonly known: readonly MachineConfig[];
  /** All that there are now, to keep the bytes of what means the same. */
  readonly machineConfigs: readonly MachineConfig[];
}

type Made =
  | { readonly ok: true; readonly config: MachineConfig; readonly warnings: readonly string[] }
  | { readonly ok: false; readonly problem: SourceProblem };

/** The MachineConfig of one KubeletConfig for one pool. */
export function configFor(input: PlaceInput): Made {
  const { flavour, nodeFlavour, pool, name, known } = input;
  const path = configPath(nodeFlavour);
  const around = filesAround({ pool, name, path }, known, flavour);
  const present = around.before?.text === undefined ? undefined : readFields(around.before.text);
  const problem = staticPodProblem(input) ?? presentProblem(input, around.before?.machineConfig, present);
  if (problem !== undefined) return { ok: false, problem };
  const merged = nodeFlavour === 'openshift' ? mergeWhole(present ?? {}, input.own) : mergeDropIn(present, input.own);
  const [broken, ...others] = checkFields(knownFields(merged) ?? input.own.fields);
  if (broken !== undefined) {
    const { path: where, message } = below(broken);
    const more = others.length === 0 ? '' : ` (and ${others.length} more)`;
    return refuse('InvalidField', `${where}: ${message}${more}`);
  }
  return { ok: true, config: written(input, merged), warnings: warningsOf(input, around.after?.machineConfig) };
}

const refuse = (reason: string, message: string): Made & { ok: false } => ({ ok: false, problem: { reason, message } });

/** The fields that we know, so that they can be checked with each other; the present configuration may have newer ones. */
function knownFields(merged: Fields): KubeletConfiguration | undefined {
  const loose = z.object(kubeletConfigurationSchema.shape).safeParse(merged);
  return loose.success ? loose.data : undefined;
}

function mergeDropIn(present: Fields | undefined, own: OwnSettings): Fields {
  const head = { apiVersion: KUBELET_API_VERSION, kind: 'KubeletConfiguration' };
  return mergeFields({ ...present, ...head }, own.fields);
}

function written(input: PlaceInput, merged: Fields): MachineConfig {
  const { flavour, nodeFlavour, pool, name, own, known } = input;
  const configFile = configurationFile(input, merged);
  if (nodeFlavour === 'kubeadm') {
    return generatedConfig(flavour, { name, pool: pool.metadata.name, files: [configFile], units: [CONFIG_DIR_UNIT] });
  }
  const sizing = filesAround({ pool, name, path: KUBELET_PATHS.openshiftSizing }, known, flavour).before?.text;
  const files = [...besideWhole(own, sizing), configFile];
  return generatedConfig(flavour, { name, pool: pool.metadata.name, files });
}

/** With the bytes that are there now if they mean the same, whoever wrote them: other bytes would be a rollout. */
function configurationFile({ nodeFlavour, name, machineConfigs }: PlaceInput, merged: Fields): IgnitionFile {
  const path = configPath(nodeFlavour);
  const before = machineConfigs.find(({ metadata }) => metadata.name === name);
  const text = before && fileIn(before, path)?.text;
  const present = text === undefined ? undefined : readFields(text);
  return generatedFile(path, text !== undefined && present && sameFields(present, merged) ? text : writeFields(merged));
}

const CONTROL_PLANE_LABELS = ['node-role.kubernetes.io/master', 'node-role.kubernetes.io/control-plane'];

function isControlPlane({ metadata, spec }: MachineConfigPool): boolean {
  const { matchLabels = {}, matchExpressions = [] } = spec.nodeSelector ?? {};
  return (
    ['master', 'arbiter'].includes(metadata.name) ||
    CONTROL_PLANE_LABELS.some((label) => label in matchLabels) ||
    matchExpressions.some(
      ({ key, operator }) => CONTROL_PLANE_LABELS.includes(key) && (operator === 'Exists' || operator === 'In'),
    )
  );
}

/** The control plane itself runs from that directory; elsewhere another one would let anybody who writes files run pods. */
function staticPodProblem({ own, pool }: PlaceInput): SourceProblem | undefined {
  const { staticPodPath } = own.fields;
  const isAllowed = staticPodPath === undefined || (staticPodPath === '' && !isControlPlane(pool));
  if (isAllowed) return undefined;
  const message = isControlPlane(pool)
    ? `may not be set for the pool ${pool.metadata.name}: its control plane runs from there; leave it out`
    : 'may only be set to "", which turns static pods off; leave it out';
  return { reason: 'InvalidField', message: `spec.kubeletConfig.staticPodPath: ${message}` };
}

function presentProblem(
  { nodeFlavour, pool }: PlaceInput,
  from: string | undefined,
  present: Fields | undefined,
): SourceProblem | undefined {
  const path = configPath(nodeFlavour);
  if (present !== undefined) return undefined;
  if (from !== undefined) {
    const message = `${path} of MachineConfig ${from} is no readable KubeletConfiguration, so nothing can be merged into it; correct it there`;
    return { reason: 'UnreadablePresent', message };
  }
  if (nodeFlavour === 'kubeadm') return undefined;
  const message = `no MachineConfig of the pool ${pool.metadata.name} has ${path}, so there is nothing to merge into; write one, or set nodeFlavour: kubeadm in ControllerConfig if kubeadm made these nodes`;
  return { reason: 'NoPresent', message };
}

function warningsOf({ flavour, nodeFlavour, pool, name }: PlaceInput, later: string | undefined): string[] {
  const labels = { [flavour.roleLabel]: pool.metadata.name };
  const isSelected = matchesSelector(pool.spec.machineConfigSelector, labels);
  const notSelected = `the pool ${pool.metadata.name} selects no MachineConfig with the label ${flavour.roleLabel}=${pool.metadata.name}, so ${name} reaches no node; add the label to its machineConfigSelector`;
  const replaced = `MachineConfig ${later} comes after ${name} and replaces its ${configPath(nodeFlavour)}`;
  return [...(isSelected ? [] : [notSelected]), ...(later === undefined ? [] : [replaced])];
}
