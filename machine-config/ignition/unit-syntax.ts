/** What is wrong with the text of a unit or drop-in, by line (from 1). */
export interface UnitFinding {
  readonly line: number;
  readonly message: string;
  readonly severity: 'problem' | 'warning';
}

/** Ignition refuses longer lines of a unit, in bytes, so such a unit would stop a node's first boot. */
const MAX_LINE_BYTES = 2048;

/**
 * Checks the syntax of a systemd unit file, not its meaning: section headers are closed, and within sections each line is an
 * assignment, a comment or the continuation of one. As systemd does, a comment inside a continued value is skipped.
 */
export function checkUnitSyntax(text: string): UnitFinding[] {
  const findings: UnitFinding[] = [];
  let inSection = false;
  let continued = false;
  text.split('\n').forEach((raw, index) => {
    const line = raw.endsWith('\r') ? raw.slice(0, -1) : raw;
    const trimmed = line.trim();
    if (Buffer.byteLength(line) > MAX_LINE_BYTES) {
      const message = `is longer than ${MAX_LINE_BYTES} bytes, which Ignition refuses; continue it with \\ on the next line`;
      findings.push({ line: index + 1, message, severity: 'problem' });
    }
    if (/^[#;]/.test(trimmed) || (trimmed === '' && !continued)) return;
    const wasContinued = continued;
    continued = line.endsWith('\\');
    if (wasContinued) return;
    if (trimmed.startsWith('[')) {
      const message = headerProblem(trimmed);
      if (message !== undefined) findings.push({ line: index + 1, message, severity: 'problem' });
      inSection = true;
      continued = false;
    } else if (!inSection) {
      findings.push({
        line: index + 1,
        message: 'stands before the first [Section] and is ignored',
        severity: 'warning',
      });
    } else if (!trimmed.includes('=')) {
      findings.push({
        line: index + 1,
        message: 'is neither Key=value nor a comment nor the continuation of a line that ends with \\',
        severity: 'problem',
      });
    }
  });
  return findings;
}

function headerProblem(header: string): string | undefined {
  const end = header.indexOf(']');
  if (end < 0) return 'is a section header without ]';
  return end === header.length - 1 ? undefined : 'has text after the ] of a section header';
}
