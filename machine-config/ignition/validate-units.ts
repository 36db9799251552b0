import type { IgnitionConfig, IgnitionUnit } from './config.js';
import type { FieldPath, Findings } from './findings.js';
import { checkUnitSyntax } from './unit-syntax.js';

const UNIT_TYPES = [
  'service',
  'socket',
  'device',
  'mount',
  'automount',
  'swap',
  'target',
  'path',
  'timer',
  'snapshot',
  'slice',
  'scope',
];
const UNIT_NAME = new RegExp(`^[A-Za-z0-9:_.\\\\@-]+\\.(${UNIT_TYPES.join('|')})$`);
const MAX_NAME_LENGTH = 255;

/** Units and their drop-ins: names, and the syntax of their text. */
export function validateUnits(config: IgnitionConfig, findings: Findings): void {
  config.systemd?.units?.forEach((unit, index) => {
    const at = ['config', 'systemd', 'units', index];
    validateName(unit, at, findings);
    validateText(unit.contents, [...at, 'contents'], findings);
    warnOfMissingInstallSection(unit, at, findings);
    unit.dropins?.forEach((dropin, position) => {
      const place = [...at, 'dropins', position];
      if (!/^[^/\0]+\.conf$/.test(dropin.name)) {
        findings.refuse([...place, 'name'], 'must end with .conf and contain no /');
      }
      validateText(dropin.contents, [...place, 'contents'], findings);
    });
  });
}

function validateName({ name }: IgnitionUnit, at: FieldPath, findings: Findings): void {
  if (UNIT_NAME.test(name) && name.length <= MAX_NAME_LENGTH) return;
  findings.refuse(
    [...at, 'name'],
    `is no name of a systemd unit; it ends with one of ${UNIT_TYPES.map((type) => `.${type}`).join(' ')} and has only letters, digits and : _ . \\ @ -`,
  );
}

function validateText(text: string | undefined, at: FieldPath, findings: Findings): void {
  if (text === undefined || text === '') return;
  for (const { line, message, severity } of checkUnitSyntax(text)) {
    const sentence = `line ${line} ${message}`;
    if (severity === 'problem') findings.refuse(at, sentence);
    else findings.warn(at, sentence);
  }
  if (text.includes('\r')) {
    findings.warn(at, 'has carriage returns; they are kept, and end up in the values; save the text with LF line ends');
  }
}

function warnOfMissingInstallSection(unit: IgnitionUnit, at: FieldPath, findings: Findings): void {
  if (unit.enabled !== true || unit.mask === true || (unit.contents ?? '') === '') return;
  if (/^\s*\[Install\]/m.test(unit.contents ?? '')) return;
  findings.warn(at, 'is enabled but has no [Install] section, so nothing will start it');
}
