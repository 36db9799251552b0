import type { NodeCertificate } from '../api/controller-config.js';
import { whyProtected } from '../render/protected.js';
import { MOST_OBJECTS, certificateObjects, objectName, objectOf, type CertificateObject } from './objects.js';

/** What is known at this moment of an object and one key of it. */
export type CertificateData =
  /** Without contents: the object is there and the key is not. */
  | { readonly state: 'there'; readonly contents: Buffer | undefined }
  | { readonly state: 'absent' }
  /** `why`: in the words of the API server. */
  | { readonly state: 'unreadable'; readonly why: string }
  /** It has not been read yet. */
  | { readonly state: 'waiting' };

/** A file that shall be on every node. */
export interface CertificateFile {
  readonly path: string;
  /** For people: `ca.crt of Secret drydock/ca`. */
  readonly source: string;
  readonly mode: number;
  /** Absent: not known now; what is on the disk stays as it is. */
  readonly contents?: Buffer;
}

export interface CertificateFiles {
  readonly files: readonly CertificateFile[];
  /** One line each, with the path first. */
  readonly problems: readonly string[];
}

/** As many as the API takes. */
const MOST_FILES = 100;
/** Of all files together, since every node worker holds them in memory. */
const MOST_BYTES = 4 * 1024 * 1024;
const MOST_MODE = 0o777;
const FILE_MODE = 0o644;
const SECRET_FILE_MODE = 0o600;
const UNIT_FOLDER = /^\/(etc|run|(usr\/(local\/)?)?lib)\/systemd\/(system|user)(\/|$)/u;

/**
 * Which files follow from the entries of a ControllerConfig and the objects that they name. An entry that cannot be
 * followed is a problem, and does not hold up the others.
 */
export function certificateFiles(
  certificates: readonly NodeCertificate[],
  read: (object: CertificateObject, key: string) => CertificateData,
): CertificateFiles {
  const files: CertificateFile[] = [];
  const problems: string[] = [];
  let bytes = 0;
  certificates.forEach((certificate, index) => {
    const { path } = certificate;
    const wrong = whyRefused(certificates, index);
    if (wrong !== undefined) {
      problems.push(`${path}: ${wrong}`);
      return;
    }
    const found = contentsOf(certificate, read(objectOf(certificate), certificate.key));
    const contents = 'contents' in found ? found.contents : undefined;
    const isTooMuch = bytes + (contents?.length ?? 0) > MOST_BYTES;
    if (isTooMuch) problems.push(`${path}: with it the files of spec.certificates are more than 4 MiB; name fewer`);
    else if ('problem' in found) problems.push(`${path}: ${found.problem}; until then the file stays as it is`);
    if (!isTooMuch) bytes += contents?.length ?? 0;
    const known = contents === undefined || isTooMuch ? {} : { contents };
    files.push({ path, source: sourceOf(certificate), mode: modeOf(certificate), ...known });
  });
  return { files, problems };
}

/** What is wrong with entries whatever the objects hold, in lines as those of `certificateFiles`. */
export function certificateProblems(certificates: readonly NodeCertificate[]): string[] {
  return certificateFiles(certificates, () => ({ state: 'waiting' })).problems.slice();
}

const sourceOf = (certificate: NodeCertificate): string => `${certificate.key} of ${objectName(objectOf(certificate))}`;

function modeOf({ mode, secret }: NodeCertificate): number {
  return mode ?? (secret === undefined ? FILE_MODE : SECRET_FILE_MODE);
}

function whyRefused(certificates: readonly NodeCertificate[], index: number): string | undefined {
  const certificate = certificates[index];
  if (certificate === undefined) return undefined;
  const { path } = certificate;
  if (index >= MOST_FILES) return `spec.certificates has more than ${MOST_FILES} entries; take some out`;
  const followed = certificateObjects(certificates).map(objectName);
  if (!followed.includes(objectName(objectOf(certificate)))) {
    return `spec.certificates names more than ${MOST_OBJECTS} objects; put several keys into one`;
  }
  const place = whyNotHere(path);
  if (place !== undefined) return place;
  if (modeOf(certificate) > MOST_MODE) return 'its mode has more than permissions; write at most 511 (0777)';
  const other = certificates
    .slice(0, index)
    .find((each) => isAtOrBelow(path, each.path) || isAtOrBelow(each.path, path));
  if (other === undefined) return undefined;
  return other.path === path
    ? 'two entries of spec.certificates have this path; keep one'
    : `one of ${other.path} and it would lie below the other, which is a file; choose another path`;
}

const isAtOrBelow = (path: string, other: string): boolean => path === other || path.startsWith(`${other}/`);

/** Why no file may follow an object at this path; undefined: it may. */
function whyNotHere(path: string): string | undefined {
  if (!path.startsWith('/')) return 'is no absolute path; begin it with /';
  const steps = path.slice(1).split('/');
  if (path.includes('\0') || steps.some((step) => ['', '.', '..'].includes(step))) {
    return 'has "." or ".." or an extra "/" in it; write the path in its plain form';
  }
  if (steps.length === 1) return 'lies directly in /; use a folder';
  const own = whyProtected(path);
  if (own !== undefined) return `${own}; nothing of a cluster may write there`;
  if (UNIT_FOLDER.test(path)) return 'lies where systemd reads units, which are for MachineConfigs; use another folder';
  return undefined;
}

function contentsOf(certificate: NodeCertificate, found: CertificateData) {
  const { key } = certificate;
  const object = objectName(objectOf(certificate));
  switch (found.state) {
    case 'waiting':
      return {};
    case 'absent':
      return { problem: `there is no ${object}; create it` };
    case 'unreadable':
      return { problem: `this node may not read ${object} (${found.why}); see the status of the ControllerConfig` };
    case 'there': {
      const { contents } = found;
      if (contents === undefined) return { problem: `${object} has no key ${key}; add it, or name another` };
      // An emptied trust bundle cuts the node off from everything that it is for.
      if (contents.length === 0) return { problem: `${key} of ${object} is empty; put something there` };
      return { contents };
    }
  }
}
