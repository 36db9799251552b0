import { randomBytes, sign, type KeyObject } from 'node:crypto';

/**
 * X.509 certificates (RFC 5280) in DER, as far as a lab needs them: elliptic-curve keys, signed with ECDSA and SHA-256.
 * Node can check certificates but not make them, and the libraries that can take 40 ms for one; a fleet of thousands of
 * nodes needs one each.
 */
export interface CertificateContent {
  readonly subject: DistinguishedName;
  readonly issuer: DistinguishedName;
  readonly publicKey: KeyObject;
  readonly notBefore: Date;
  readonly notAfter: Date;
  readonly usage: 'authority' | 'client' | ServerNames;
}

export interface DistinguishedName {
  readonly commonName: string;
  readonly organization?: string;
}

/** The names that a server's certificate is valid for; addresses are IPv4. */
export interface ServerNames {
  readonly dns: readonly string[];
  readonly ip: readonly string[];
}

/** Makes and signs a certificate. @returns PEM. */
export function signCertificate(content: CertificateContent, issuerKey: KeyObject): string {
  const algorithm = sequence(objectId(ECDSA_WITH_SHA256));
  const toBeSigned = sequence(
    explicit(0, integer(Buffer.from([2]))),
    integer(positive(randomBytes(16))),
    algorithm,
    encodeName(content.issuer),
    sequence(encodeTime(content.notBefore), encodeTime(content.notAfter)),
    encodeName(content.subject),
    content.publicKey.export({ type: 'spki', format: 'der' }),
    explicit(3, sequence(...encodeExtensions(content.usage))),
  );
  const signature = sign('sha256', toBeSigned, issuerKey);
  const certificate = sequence(toBeSigned, algorithm, bitString(signature, 0));
  const lines = certificate.toString('base64').match(/.{1,64}/g) ?? [];
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n');
}

const ECDSA_WITH_SHA256 = [1, 2, 840, 10045, 4, 3, 2];
const COMMON_NAME = [2, 5, 4, 3];
const ORGANIZATION = [2, 5, 4, 10];
const BASIC_CONSTRAINTS = [2, 5, 29, 19];
const KEY_USAGE = [2, 5, 29, 15];
const EXTENDED_KEY_USAGE = [2, 5, 29, 37];
const SUBJECT_ALTERNATIVE_NAME = [2, 5, 29, 17];
const SERVER_AUTHENTICATION = [1, 3, 6, 1, 5, 5, 7, 3, 1];
const CLIENT_AUTHENTICATION = [1, 3, 6, 1, 5, 5, 7, 3, 2];

const TAG = {
  boolean: 0x01,
  integer: 0x02,
  bits: 0x03,
  octets: 0x04,
  objectId: 0x06,
  utf8: 0x0c,
  utcTime: 0x17,
} as const;
const SEQUENCE = 0x30;
const SET = 0x31;
/** Context-specific tags of a GeneralName (RFC 5280 4.2.1.6). */
const GENERAL_NAME = { dns: 0x82, ip: 0x87 } as const;

function encodeName({ commonName, organization }: DistinguishedName): Buffer {
  const attribute = (id: number[], text: string) =>
    element(SET, sequence(objectId(id), element(TAG.utf8, Buffer.from(text, 'utf8'))));
  return sequence(
    ...(organization === undefined ? [] : [attribute(ORGANIZATION, organization)]),
    attribute(COMMON_NAME, commonName),
  );
}

function encodeExtensions(usage: CertificateContent['usage']): Buffer[] {
  const extension = (id: number[], critical: boolean, value: Buffer) =>
    sequence(
      objectId(id),
      ...(critical ? [element(TAG.boolean, Buffer.from([0xff]))] : []),
      element(TAG.octets, value),
    );
  if (usage === 'authority') {
    return [
      extension(BASIC_CONSTRAINTS, true, sequence(element(TAG.boolean, Buffer.from([0xff])))),
      // digitalSignature, keyCertSign, cRLSign: bits 0, 5 and 6 of 7.
      extension(KEY_USAGE, true, bitString(Buffer.from([0b1000_0110]), 1)),
    ];
  }
  const purpose = usage === 'client' ? CLIENT_AUTHENTICATION : SERVER_AUTHENTICATION;
  return [
    extension(BASIC_CONSTRAINTS, true, sequence()),
    // digitalSignature: bit 0 of 1.
    extension(KEY_USAGE, true, bitString(Buffer.from([0b1000_0000]), 7)),
    extension(EXTENDED_KEY_USAGE, false, sequence(objectId(purpose))),
    ...(usage === 'client' ? [] : [extension(SUBJECT_ALTERNATIVE_NAME, false, encodeNames(usage))]),
  ];
}

function encodeNames({ dns, ip }: ServerNames): Buffer {
  return sequence(
    ...dns.map((name) => element(GENERAL_NAME.dns, Buffer.from(name, 'ascii'))),
    ...ip.map((address) => element(GENERAL_NAME.ip, Buffer.from(address.split('.').map(Number)))),
  );
}

/** UTCTime, which RFC 5280 asks for until 2049. */
function encodeTime(time: Date): Buffer {
  const digits = time.toISOString().replaceAll(/[-:T]/g, '').slice(2, 14);
  return element(TAG.utcTime, Buffer.from(`${digits}Z`, 'ascii'));
}

function element(tag: number, content: Buffer): Buffer {
  return Buffer.concat([Buffer.from([tag, ...encodeLength(content.length)]), content]);
}

function encodeLength(length: number): number[] {
  if (length < 0x80) return [length];
  return length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return element(SEQUENCE, Buffer.concat(parts));
}

function explicit(number: number, content: Buffer): Buffer {
  return element(0xa0 + number, content);
}

function integer(bytes: Buffer): Buffer {
  return element(TAG.integer, bytes);
}

/** A first byte from 0x40 to 0x7f: neither negative nor with a superfluous zero in front. */
function positive(bytes: Buffer): Buffer {
  const [first = 0, ...rest] = bytes;
  return Buffer.from([(first & 0x3f) | 0x40, ...rest]);
}

function bitString(bytes: Buffer, unusedBits: number): Buffer {
  return element(TAG.bits, Buffer.concat([Buffer.from([unusedBits]), bytes]));
}

function objectId([first = 0, second = 0, ...rest]: readonly number[]): Buffer {
  return element(TAG.objectId, Buffer.from([40 * first + second, ...rest.flatMap(encodeBase128)]));
}

function encodeBase128(value: number): number[] {
  const bytes = [value & 0x7f];
  for (let left = value >> 7; left > 0; left >>= 7) bytes.unshift((left & 0x7f) | 0x80);
  return bytes;
}
