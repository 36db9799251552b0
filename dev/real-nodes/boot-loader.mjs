/** What a boot loader would give the kernel of a machine. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** As of a machine that was installed and on which nobody has run update-grub yet. */
const INSTALLED = 'BOOT_IMAGE=/boot/vmlinuz-6.1.0-lab root=/dev/vda1 ro quiet';

/** The command line of the first entry of /boot/grub/grub.cfg. */
export function commandLineOf(root) {
  let text;
  try {
    text = readFileSync(join(root, 'boot/grub/grub.cfg'), 'utf8');
  } catch {
    return INSTALLED;
  }
  const line = /^\s*linux\s+(.*)$/m.exec(text)?.[1];
  if (line === undefined) return INSTALLED;
  const [kernel, ...words] = line.match(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g) ?? [];
  return [`BOOT_IMAGE=${kernel}`, ...words.map(asGrubPasses)].join(' ');
}

/** GRUB takes the quotes of its own language away, and puts others around what has a blank in it. */
function asGrubPasses(word) {
  const plain = word.replace(/['"]/g, '');
  return plain.includes(' ') ? `"${plain}"` : plain;
}
