import { join } from 'node:path';
import { readIfThere } from './durable.js';
import type { HostFacts } from './host.js';

/** The first that is there counts. */
const FILES = ['etc/os-release', 'usr/lib/os-release'];

/** As Go names what Node.js names otherwise. */
const GO_ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386', ppc64: 'ppc64le' };

/** What a root folder says of its operating system; `Linux` where it says nothing. */
export async function readHostFacts(root: string, architecture: string = process.arch): Promise<HostFacts> {
  const arch = GO_ARCHITECTURES[architecture] ?? architecture;
  for (const file of FILES) {
    const text = await readIfThere(join(root, file));
    if (text === undefined) continue;
    const values = parseOsRelease(text);
    return { os: values.get('PRETTY_NAME') ?? values.get('NAME') ?? 'Linux', arch };
  }
  return { os: 'Linux', arch };
}

/** The assignments of an os-release file, unquoted as a shell does (os-release(5)); other lines are passed over. */
export function parseOsRelease(text: string): Map<string, string> {
  const values = new Map<string, string>();
  for (const line of text.split(/\r?\n/)) {
    const [, key, raw] = /^\s*([A-Za-z0-9_]+)=(.*)$/.exec(line) ?? [];
    if (key !== undefined && raw !== undefined) values.set(key, unquoted(raw.trim()));
  }
  return values;
}

function unquoted(raw: string): string {
  const quote = raw[0];
  if (raw.length < 2 || (quote !== '"' && quote !== "'") || !raw.endsWith(quote)) return raw.replace(/\\(.)/g, '$1');
  const inner = raw.slice(1, -1);
  return quote === "'" ? inner : inner.replace(/\\(["$`\\])/g, '$1');
}
