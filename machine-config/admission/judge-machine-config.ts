import { isRecord } from '../ignition/findings.js';
import { formatRenderFinding, renderPool } from '../render/render-pool.js';
import { nameOf, selectMachineConfigs, type MachineConfigObject } from '../render/select.js';
import type { AdmissionContext, AdmissionQuestion, AdmissionVerdict } from './question.js';

/**
 * A MachineConfig is refused for what is wrong with it by itself. That it does not go with others of its pool is a
 * warning: the others may be about to change in the same breath.
 */
export function judgeMachineConfig({ object }: AdmissionQuestion, context: AdmissionContext): AdmissionVerdict {
  const config: MachineConfigObject = isRecord(object) ? object : {};
  const alone = renderPool({ pool: 'admission', machineConfigs: [config], flavour: context.flavour });
  const warnings = alone.warnings.map(formatRenderFinding);
  if (alone.outcome === 'refused') return { refusal: alone.reason, warnings };
  return { warnings: [...warnings, ...poolsThatBreak(config, context)] };
}

function poolsThatBreak(config: MachineConfigObject, { pools, machineConfigs, flavour }: AdmissionContext): string[] {
  const name = nameOf(config);
  const all = [...machineConfigs.filter((other) => nameOf(other) !== name), config];
  return pools.flatMap(({ metadata, spec }) => {
    const selected = selectMachineConfigs({ spec }, all);
    if (!selected.includes(config)) return [];
    const rendered = renderPool({ pool: metadata.name, machineConfigs: selected, flavour });
    if (rendered.outcome === 'rendered') return [];
    return [
      `MachineConfigPool ${metadata.name} cannot be rendered with it and keeps its present config: ${rendered.reason}`,
    ];
  });
}
