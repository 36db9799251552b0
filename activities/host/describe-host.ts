import { OS_FIELDS, type OsField } from '../../machine-config/change/os-fields.js';
import type { Host, OsBackendName } from './host.js';

/** What a node tells of its host, so that a pool can be refused before its first cordon. */
export interface HostDescription {
  readonly os: string;
  readonly arch: string;
  readonly backend: OsBackendName;
  /** Why the host cannot do a field; the fields that it can do are absent. */
  readonly cannot: Readonly<Partial<Record<OsField, string>>>;
}

export function describeHost({ facts, os }: Pick<Host, 'facts' | 'os'>): HostDescription {
  const cannot: Partial<Record<OsField, string>> = {};
  for (const field of OS_FIELDS) {
    const reason = os.refusal(field);
    if (reason !== undefined) cannot[field] = reason;
  }
  return { os: facts.os, arch: facts.arch, backend: os.name, cannot };
}
