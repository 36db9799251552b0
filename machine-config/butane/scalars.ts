/** A scalar of YAML as it stands there. */
interface WrittenScalar {
  readonly value: unknown;
  readonly type?: string | undefined;
}

/** Nothing, `null` or `~`, not in quotes: as if the key were not there. */
export function isPlainNull({ value, type }: WrittenScalar): boolean {
  return type === 'PLAIN' && /^(?:|~|null|Null|NULL)$/.test(String(value));
}

/** A whole number as YAML 1.1 and 1.2 write it: `420`, `0644` and `0o644` in octal, `0x1A4`, `1_000`. */
export function readPlainInteger(text: string): number | undefined {
  const plain = text.replaceAll('_', '');
  const [, sign = '', digits = ''] = /^([+-]?)(.+)$/s.exec(plain) ?? [];
  const size = magnitude(digits);
  return size === undefined ? undefined : sign === '-' ? -size : size;
}

function magnitude(digits: string): number | undefined {
  const octal = /^0o?([0-7]+)$/.exec(digits)?.[1];
  if (octal !== undefined) return Number.parseInt(octal, 8);
  return /^(?:0|[1-9]\d*|0x[\da-fA-F]+|0b[01]+)$/.test(digits) ? Number(digits) : undefined;
}

/** A truth value as YAML 1.1 writes it, which Butane accepts where one is demanded. */
export function readPlainBoolean(text: string): boolean | undefined {
  if (/^(?:true|True|TRUE|yes|Yes|YES|on|On|ON|y|Y)$/.test(text)) return true;
  return /^(?:false|False|FALSE|no|No|NO|off|Off|OFF|n|N)$/.test(text) ? false : undefined;
}
