import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { TemplatesSource } from '../../machine-config/api/controller-config.js';
import type { SourceProblem } from '../../machine-config/sources/source.js';
import { templateFilesOf, type TemplateFiles } from '../../machine-config/sources/templates/layout.js';
import { KINDS, type KubernetesClient, type KubernetesObject } from '../kubernetes/client.js';
import { failedWith } from '../kubernetes/failures.js';

/** Beside the program, a folder a version. */
const BUILT_IN = fileURLToPath(new URL('../../templates/', import.meta.url));
/** Of all templates together; a MachineConfig has at most one and a half. */
const MAX_BYTES = 4 * 1024 * 1024;
const MAX_FILES = 1000;

type ConfigMap = KubernetesObject & { readonly data?: Record<string, string> };

/**
 * The templates that a ControllerConfig names, or why they cannot be read; undefined: it names none.
 *
 * @throws the client's failures, but for a ConfigMap that is not there or may not be read.
 */
export async function readTemplates(
  client: KubernetesClient,
  source: TemplatesSource | undefined,
): Promise<TemplateFiles | SourceProblem | undefined> {
  switch (source?.source) {
    case undefined:
    case 'none':
      return undefined;
    case 'builtin':
      return readBuiltIn(source.version ?? '');
    case 'configMap':
      return readConfigMap(client, source.configMap ?? { namespace: '', name: '' });
    case 'folder':
      return readFolder(source.folder ?? '');
  }
}

async function readBuiltIn(version: string): Promise<TemplateFiles | SourceProblem> {
  const entries = await readdir(BUILT_IN, { withFileTypes: true });
  const versions = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  if (versions.includes(version)) return readFolder(path.join(BUILT_IN, version));
  return notFound(
    `spec.templates.version: this version of Drydock has no built-in templates ${version}, only ${versions.sort().join(', ')}; name one of these`,
  );
}

async function readConfigMap(
  client: KubernetesClient,
  { namespace, name }: { namespace: string; name: string },
): Promise<TemplateFiles | SourceProblem> {
  try {
    const { data = {} } = await client.get<ConfigMap>(KINDS.configMap, { namespace, name });
    return templateFilesOf(data);
  } catch (error) {
    if (failedWith(error, 'NotFound')) {
      return notFound(
        `spec.templates.configMap: there is no ConfigMap ${name} in the namespace ${namespace}; create it`,
      );
    }
    if (!failedWith(error, 'Forbidden')) throw error;
    return notFound(
      `spec.templates.configMap: the control worker may not read the ConfigMap ${name} in the namespace ${namespace}; put it into the namespace drydock, or bind a role there that allows get`,
    );
  }
}

/** As a ConfigMap that is mounted looks too: links, and `__` for a slash. */
async function readFolder(folder: string): Promise<TemplateFiles | SourceProblem> {
  try {
    const files: Record<string, string> = {};
    let bytes = 0;
    for (const file of await filesBelow(folder)) {
      const text = await readFile(file, 'utf8');
      bytes += text.length;
      if (bytes > MAX_BYTES)
        return notFound(`spec.templates.folder: ${folder} holds more than 4 MiB; take out what is no template`);
      files[path.relative(folder, file)] = text;
    }
    return templateFilesOf(files);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    return notFound(
      `spec.templates.folder: ${folder} cannot be read by the control worker (${code}); it has to be on the host of every one of them`,
    );
  }
}

async function filesBelow(folder: string): Promise<string[]> {
  const files: string[] = [];
  // What begins with a dot is the machinery of mounted ConfigMaps, or an editor's.
  for (const name of (await readdir(folder)).filter((each) => !each.startsWith('.')).sort()) {
    const file = path.join(folder, name);
    if ((await stat(file)).isDirectory()) files.push(...(await filesBelow(file)));
    else files.push(file);
    if (files.length > MAX_FILES) throw new Error(`more than ${MAX_FILES} files`);
  }
  return files;
}

function notFound(message: string): SourceProblem {
  return { reason: 'TemplatesNotFound', message };
}
