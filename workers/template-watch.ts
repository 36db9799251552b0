import { createHash } from 'node:crypto';
import type { Logger } from 'pino';
import { readTemplates } from '../activities/cluster/read-templates.js';
import type { KubernetesClient } from '../activities/kubernetes/client.js';
import type { TemplatesSource } from '../machine-config/api/controller-config.js';

/** One request, or a few small files; a watch would take the right to see every ConfigMap of the cluster. */
const LOOK_MILLISECONDS = 15_000;

export interface TemplateWatchOptions {
  readonly client: KubernetesClient;
  /** What the ControllerConfig names now. */
  readonly source: () => TemplatesSource | undefined;
  readonly onChange: () => void;
  readonly logger: Logger;
  readonly everyMs?: number;
}

/**
 * Tells when the ConfigMap or folder that holds the templates has changed. The built-in ones change with the program only,
 * and what the ControllerConfig itself says is watched elsewhere.
 */
export function watchTemplates(options: TemplateWatchOptions): { stop(): void } {
  let seen: string | undefined;
  const look = async (): Promise<void> => {
    const source = options.source();
    if (source?.source !== 'configMap' && source?.source !== 'folder') {
      seen = undefined;
      return;
    }
    const digest = await digestOf(options.client, source);
    // Also of a source that is new: it may have changed since it was read because the ControllerConfig named it.
    if (seen !== digest) options.onChange();
    seen = digest;
  };
  const timer = setInterval(() => {
    look().catch((error: unknown) => {
      options.logger.debug({ err: error }, 'The templates cannot be read just now');
    });
  }, options.everyMs ?? LOOK_MILLISECONDS);
  return { stop: () => clearInterval(timer) };
}

async function digestOf(client: KubernetesClient, source: TemplatesSource): Promise<string> {
  const templates = await readTemplates(client, source);
  const content = templates instanceof Map ? [...templates] : templates;
  return createHash('sha256')
    .update(JSON.stringify([source, content]))
    .digest('hex');
}
