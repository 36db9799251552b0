import { parse, TomlError, type TomlTable } from 'smol-toml';
import type { PresentFile } from './kubelet/present-files.js';

/** A file of another MachineConfig that would be changed cannot be read. The message is one line. */
export class UnreadableTomlError extends Error {
  override readonly name = 'UnreadableTomlError';
}

/** @throws UnreadableTomlError */
export function readToml({ machineConfig, text }: PresentFile, path: string): TomlTable {
  const where = `${path} of MachineConfig ${machineConfig}`;
  if (text === undefined) throw new UnreadableTomlError(`${where} cannot be decoded; correct it there`);
  try {
    return parse(text);
  } catch (error) {
    const place = error instanceof TomlError ? `, line ${error.line}` : '';
    throw new UnreadableTomlError(`${where} is no TOML${place}; correct it there`, { cause: error });
  }
}
