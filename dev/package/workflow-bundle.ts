import { join } from 'node:path';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';
import { z } from 'zod';

const SOURCE_MAP = z.looseObject({ file: z.string(), sources: z.array(z.string()), sourcesContent: z.unknown() });

/**
 * The workflows of the project as the one file that a worker loads. Its source map, which stack traces need, names the
 * sources by their paths below the project and does not hold their text: nothing in it tells where it was built.
 */
export async function bundleWorkflows(project: string): Promise<string> {
  const { code } = await bundleWorkflowCode({
    workflowsPath: join(project, 'workflows/index.ts'),
    logger: new DefaultLogger('WARN'),
  });
  const marker = '//# sourceMappingURL=data:application/json;charset=utf-8;base64,';
  const at = code.lastIndexOf(marker);
  if (at < 0) throw new Error('the workflow bundle has no source map: has the Temporal SDK changed how it bundles?');
  const map = SOURCE_MAP.parse(JSON.parse(Buffer.from(code.slice(at + marker.length), 'base64').toString('utf8')));
  const relocated = {
    ...map,
    file: 'workflow-bundle.js',
    sources: map.sources.map((source) => (source.startsWith(project) ? source.slice(project.length) : source)),
    sourcesContent: undefined,
  };
  return `${code.slice(0, at)}${marker}${Buffer.from(JSON.stringify(relocated)).toString('base64')}\n`;
}
