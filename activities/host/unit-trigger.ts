import { readFile } from 'node:fs/promises';

const TRIGGERING = /\.(timer|path)$/;

/**
 * A timer or path unit whose unit to start is nowhere to be found, as a line for people; systemd itself says so only when
 * it is started. A warning: the unit may be made by a generator or come by hand. Undefined: all is well.
 */
export async function missingTrigger(
  unit: string,
  fileOf: (unit: string) => Promise<string | undefined>,
  exists: (unit: string) => Promise<boolean>,
): Promise<string | undefined> {
  if (!TRIGGERING.test(unit)) return undefined;
  const file = await fileOf(unit);
  if (file === undefined) return undefined;
  const named = [...(await readFile(file, 'utf8')).matchAll(/^[ \t]*Unit[ \t]*=[ \t]*(\S+)/gm)].at(-1)?.[1];
  const triggered = named ?? unit.replace(TRIGGERING, '.service');
  // A specifier of a template: nobody knows what it will be.
  if (triggered.includes('%') || (await exists(triggered))) return undefined;
  return `${unit}: starts ${triggered}, which this host does not have`;
}
