import { clip, MAX_SENTENCE_LENGTH } from '../../machine-config/pool/sentences.js';
import type { RebootClearance, TargetStep } from '../../workflows/contract/activities.js';
import { refuseOtherCluster, type ControlDependencies } from './control-dependencies.js';
import { obstacleOfControlPlane } from './control-plane.js';
import { StopSwitch, stopReason } from './stop-switch.js';

/**
 * Whether a node whose config is on its disk may reboot now: nothing is stopped, and the rest of its control plane is
 * well. Both are read past the watches, since a reboot cannot be taken back. `stopSwitch` reads once for nodes that ask
 * together.
 *
 * @throws WrongCluster, and the client's failures: what cannot be asked is asked again, and the node waits meanwhile.
 */
export async function clearReboot(
  dependencies: ControlDependencies,
  input: TargetStep,
  stopSwitch = new StopSwitch(dependencies),
): Promise<RebootClearance> {
  refuseOtherCluster(dependencies.cluster, input.cluster);
  const stop = stopReason(await stopSwitch.live());
  const why =
    stop === undefined
      ? await obstacleOfControlPlane(dependencies, input.node, { live: true })
      : `everything is stopped (${clip(stop, 300)}); it goes on with \`drydock go\``;
  if (why === undefined) return { clear: true };
  const sentence = `${input.node} has ${input.target} on its disk and waits before its reboot: ${why}`;
  return { clear: false, sentence: clip(sentence, MAX_SENTENCE_LENGTH) };
}
