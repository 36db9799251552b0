import type { LocalFiles, TreeEntry } from '../../../machine-config/butane/local-files.js';
import type { MachineConfig } from '../../../machine-config/api/machine-config.js';
import { apiFlavour, type FlavourName } from '../../../machine-config/api/flavour.js';
import { fileContents, type Resource } from '../../../machine-config/ignition/contents.js';
import { formatButaneFinding } from '../../../machine-config/butane/places.js';
import { translateButane, type Translated } from '../../../machine-config/butane/translate.js';
import type { IgnitionConfig } from '../../../machine-config/ignition/config.js';

/** Files of a folder that is not on any disk; a value that begins with `->` is a link, one with `#!` is executable. */
export function memoryFolder(contents: Readonly<Record<string, string | Uint8Array>>): LocalFiles {
  const bytes = (text: string | Uint8Array) => (typeof text === 'string' ? new TextEncoder().encode(text) : text);
  return {
    readFile: (path) => {
      const found = contents[path];
      return found === undefined ? { ok: false, error: `"${path}" is not there` } : { ok: true, bytes: bytes(found) };
    },
    readTree: (path) => {
      const prefix = path === '' || path === '.' ? '' : `${path}/`;
      const entries = Object.entries(contents)
        .filter(([name]) => name.startsWith(prefix))
        .map(([name, text]): TreeEntry => {
          const below = name.slice(prefix.length);
          if (typeof text === 'string' && text.startsWith('->'))
            return { kind: 'link', path: below, target: text.slice(2) };
          return {
            kind: 'file',
            path: below,
            bytes: bytes(text),
            executable: bytes(text)[0] === 0x23 && bytes(text)[1] === 0x21,
          };
        });
      return entries.length === 0 ? { ok: false, error: `"${path}" is no folder` } : { ok: true, entries };
    },
  };
}

export interface Circumstances {
  readonly files?: Readonly<Record<string, string | Uint8Array>>;
  readonly flavour?: FlavourName;
  readonly machineConfig?: { readonly name: string; readonly role: string };
}

/** Every config that came out in the tests of one file, for the reference validator. */
export const produced: MachineConfig[] = [];

export function translate(text: string, circumstances: Circumstances = {}): Translated {
  const result = translated(text, circumstances);
  if (result.outcome === 'machineConfig') produced.push(result.machineConfig);
  if (result.outcome === 'ignition')
    produced.push({ metadata: { name: text }, spec: { config: { ...result.config } } });
  return result;
}

function translated(text: string, circumstances: Circumstances): Translated {
  const { files = {}, flavour = 'openshift', machineConfig } = circumstances;
  return translateButane({
    text,
    files: memoryFolder(files),
    flavour: apiFlavour(flavour),
    ...(machineConfig === undefined ? {} : { machineConfig }),
  });
}

/** The header of a MachineConfig of variant openshift; five lines, so that the sections begin on line 6. */
export const OPENSHIFT = `variant: openshift
version: 4.14.0
metadata:
  name: 99-worker-a
  labels: {machineconfiguration.openshift.io/role: worker}
`;

export const openshift = (sections: string, version = '4.14.0') => OPENSHIFT.replace('4.14.0', version) + sections;
export const fcos = (sections: string, version = '1.5.0') => `variant: fcos\nversion: ${version}\n${sections}`;

/** The MachineConfig that comes out; throws where none does. */
export function machineConfigOf(text: string, circumstances: Circumstances = {}) {
  const result = translate(text, circumstances);
  if (result.outcome === 'machineConfig') return result.machineConfig;
  throw new Error(`no MachineConfig but ${result.outcome}: ${problems(text, circumstances).join('; ')}`);
}

/** The Ignition config that comes out, in a MachineConfig or by itself. */
export function configOf(text: string, circumstances: Circumstances = {}): IgnitionConfig {
  const result = translate(text, circumstances);
  if (result.outcome === 'ignition') return result.config;
  return machineConfigOf(text, circumstances).spec?.config as unknown as IgnitionConfig;
}

export function problems(text: string, circumstances: Circumstances = {}): string[] {
  const result = translate(text, circumstances);
  return result.outcome === 'refused' ? result.problems.map((problem) => formatButaneFinding('a.bu', problem)) : [];
}

export function warnings(text: string, circumstances: Circumstances = {}): string[] {
  return translate(text, circumstances).warnings.map((warning) => formatButaneFinding('a.bu', warning));
}

/** What a resource holds, as text. */
export function textOf(contents: Resource | undefined): string {
  return new TextDecoder().decode(fileContents({ path: 'x', ...(contents === undefined ? {} : { contents }) }));
}
