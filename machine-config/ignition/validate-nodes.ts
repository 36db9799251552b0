import type { IgnitionConfig, IgnitionDirectory, IgnitionFile, IgnitionLink, IgnitionResource } from './config.js';
import { decodeResource, MAX_UNPACKED_BYTES } from './contents.js';
import { quote, type FieldPath, type Findings } from './findings.js';

const MAX_FILE_MODE = 0o777;
const MAX_DIRECTORY_MODE = 0o7777;
/** Modes that people write in octal; as decimal numbers most of them exceed 0777, these do not: 0620, 0670, 0674, 0764. */
const PASSABLE_OCTAL_DIGITS = new Set([400, 440, 444, 500]);

/** Files, directories and links, each by itself: paths, owners, modes, contents. */
export function validateNodes(config: IgnitionConfig, findings: Findings): void {
  config.storage?.files?.forEach((file, index) => validateFile(file, ['config', 'storage', 'files', index], findings));
  config.storage?.directories?.forEach((directory, index) => {
    const at = ['config', 'storage', 'directories', index];
    validateNode(directory, at, findings);
    validateMode(directory.mode, MAX_DIRECTORY_MODE, [...at, 'mode'], findings);
  });
  config.storage?.links?.forEach((link, index) => {
    const at = ['config', 'storage', 'links', index];
    validateNode(link, at, findings);
    if ((link.target ?? '') === '') findings.refuse([...at, 'target'], 'is missing; write where the link points to');
  });
}

/** Why a path is not one, or undefined. Absolute and clean, as Ignition demands. */
export function pathProblem(path: string): string | undefined {
  if (path === '') return 'is empty; write an absolute path';
  if (/\p{Cc}/u.test(path)) return 'contains a line break or control character';
  if (!path.startsWith('/')) return 'is not absolute; begin it with /';
  const clean = `/${resolveSteps(path).join('/')}`;
  return clean === path ? undefined : `is not in its simplest form; write ${clean}`;
}

function resolveSteps(path: string): string[] {
  const steps: string[] = [];
  for (const step of path.split('/')) {
    if (step === '..') steps.pop();
    else if (step !== '' && step !== '.') steps.push(step);
  }
  return steps;
}

function validateNode(node: IgnitionFile | IgnitionDirectory | IgnitionLink, at: FieldPath, findings: Findings): void {
  const problem = node.path === '/' ? 'is the root folder; write the path of the entry' : pathProblem(node.path);
  if (problem !== undefined) findings.refuse([...at, 'path'], problem);
  for (const field of ['user', 'group'] as const) {
    const { id, name = '' } = node[field] ?? {};
    if (id !== undefined && name !== '') findings.refuse([...at, field], 'has both id and name; write only one');
    if (id !== undefined && id < 0) findings.refuse([...at, field, 'id'], `is ${id}; must be 0 or more`);
  }
}

function validateFile(file: IgnitionFile, at: FieldPath, findings: Findings): void {
  validateNode(file, at, findings);
  validateMode(file.mode, MAX_FILE_MODE, [...at, 'mode'], findings);
  if (file.append !== undefined) {
    findings.refuse(
      [...at, 'append'],
      'append is not supported after first boot, where it would append again at each update; write the whole file in contents',
    );
  }
  if (file.contents !== undefined) validateContents(file.contents, file.path, [...at, 'contents'], findings);
  if (file.contents?.source === undefined && file.overwrite === true) {
    findings.refuse(
      [...at, 'contents'],
      'is missing while overwrite is true; write source: "data:," for an empty file',
    );
  }
}

function validateMode(mode: number | undefined, max: number, at: FieldPath, findings: Findings): void {
  if (mode === undefined) return;
  const digits = String(mode);
  const octal = (value: number) => `0${value.toString(8)}`;
  if (mode >= 0 && mode <= max) {
    if (PASSABLE_OCTAL_DIGITS.has(mode)) {
      findings.warn(
        at,
        `${mode} means ${octal(mode)}; if 0${digits} was meant, write ${Number.parseInt(digits, 8)} (JSON numbers are decimal)`,
      );
    }
    return;
  }
  const advice =
    /^[0-7]{3,4}$/.test(digits) && Number.parseInt(digits, 8) <= max
      ? `; it looks like octal 0${digits} read as a decimal number, write ${Number.parseInt(digits, 8)}`
      : `; write the permissions as a decimal number, for example 420 for 0644`;
  findings.refuse(at, `${mode} is ${mode < 0 ? 'negative' : octal(mode)}, must be at most ${octal(max)}${advice}`);
}

function validateContents(contents: IgnitionResource, filePath: string, at: FieldPath, findings: Findings): void {
  if (!validateResource(contents, at, findings) || contents.source === undefined) return;
  const decoded = decodeResource(contents);
  if (!decoded.ok) {
    findings.refuse([...at, 'source'], decoded.error);
  } else if (decoded.bytes.length > MAX_UNPACKED_BYTES) {
    findings.refuse([...at, 'source'], `is larger than ${MAX_UNPACKED_BYTES} bytes`);
  } else if (hasCarriageReturnInScript(decoded.bytes)) {
    findings.warn(
      [...at, 'source'],
      `the first line of ${filePath} (#!…) ends with a carriage return, so the interpreter will not be found; save the script with LF line ends`,
    );
  }
}

/** Compression, hash and headers of any resource; whether the source may be decoded. */
export function validateResource(resource: IgnitionResource, at: FieldPath, findings: Findings): boolean {
  const before = findings.problems.length;
  const { compression = '', verification, source } = resource;
  if (compression !== '' && compression !== 'gzip') {
    findings.refuse([...at, 'compression'], `is ${quote(compression)}; only gzip, or nothing, is possible`);
  }
  if (source === undefined && (compression !== '' || verification?.hash !== undefined)) {
    findings.refuse(at, 'has compression or verification but no source; write the content as source: data:,…');
  }
  if (verification?.hash !== undefined && !/^(sha512-[\da-f]{128}|sha256-[\da-f]{64})$/i.test(verification.hash)) {
    findings.refuse([...at, 'verification', 'hash'], 'must be sha512- with 128 or sha256- with 64 hexadecimal digits');
  }
  if (resource.httpHeaders !== undefined) {
    findings.refuse(
      [...at, 'httpHeaders'],
      'only have a meaning for remote content, which a node cannot fetch; leave them out',
    );
  }
  return findings.problems.length === before;
}

function hasCarriageReturnInScript(bytes: Uint8Array): boolean {
  if (bytes[0] !== 0x23 || bytes[1] !== 0x21) return false;
  const end = bytes.indexOf(0x0a);
  return end > 0 && bytes[end - 1] === 0x0d;
}
