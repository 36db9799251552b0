import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import pMap from 'p-map';
import type { KubernetesClient, KubernetesObject } from '../../activities/kubernetes/client.js';
import type { ApiFlavour } from '../../machine-config/api/flavour.js';
import type { MachineConfig } from '../../machine-config/api/machine-config.js';

const AT_ONCE = 4;

/** What the reference validator refuses, one line each with the name of the config. Its warnings are no refusals. */
export async function invalidConfigs(program: string, configs: readonly MachineConfig[]): Promise<string[]> {
  const answers = await pMap(
    configs,
    async ({ metadata, spec }) => {
      const { valid, said } = await validate(program, JSON.stringify(spec?.config ?? {}));
      return valid ? [] : [`${metadata.name}: ${said.trim().replaceAll('\n', '; ')}`];
    },
    { concurrency: AT_ONCE },
  );
  return answers.flat();
}

async function validate(program: string, config: string): Promise<{ valid: boolean; said: string }> {
  const child = spawn(program, ['-'], { stdio: ['pipe', 'pipe', 'pipe'] });
  const exited = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', resolve);
  });
  child.stdin.end(config);
  const [code, out, err] = await Promise.all([exited, text(child.stdout), text(child.stderr)]);
  return { valid: code === 0, said: `${out}${err}` };
}

/** Everything that was rendered in the tests of one file, once each. */
class RenderedConfigs {
  readonly #configs = new Map<string, MachineConfig>();

  add(config: MachineConfig): void {
    this.#configs.set(JSON.stringify(config.spec?.config ?? {}), structuredClone(config));
  }

  /** Those that other processes rendered and stored; none where the API server does not know the kind. */
  async addStored(client: Pick<KubernetesClient, 'list'>, flavour: ApiFlavour): Promise<void> {
    // Not above: every test file loads this one, and few of them anything of a cluster.
    const { failedWith } = await import('../../activities/kubernetes/failures.js');
    let stored: (KubernetesObject & MachineConfig)[] = [];
    try {
      stored = await client.list(flavour.machineConfig);
    } catch (error) {
      if (!failedWith(error, 'NotFound')) throw error;
    }
    for (const config of stored) if (config.metadata.name.startsWith('rendered-')) this.add(config);
  }

  take(): MachineConfig[] {
    const taken = [...this.#configs.values()];
    this.#configs.clear();
    return taken;
  }
}

export const renderedConfigs = new RenderedConfigs();
