import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';

/** Of a line of the API server's audit log, what a right is made of. */
interface AuditEvent {
  readonly verb?: string;
  readonly requestURI?: string;
  readonly user?: { readonly username?: string };
  readonly objectRef?: { readonly apiGroup?: string; readonly resource?: string; readonly subresource?: string };
  readonly responseStatus?: { readonly code?: number };
}

interface Rule {
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly nonResourceURLs?: readonly string[];
  readonly verbs: readonly string[];
}

/** `patch apps/deployments/status`, `get /readyz/etcd`. */
const right = (verb: string, group: string, resource: string) => `${verb} ${group === '' ? 'core' : group}/${resource}`;

/** The rights that a user has made use of, by the audit log: what was answered, and not refused. */
export async function rightsUsedBy(username: string, auditLog: string): Promise<Set<string>> {
  const used = new Set<string>();
  for await (const line of createInterface({ input: createReadStream(auditLog), crlfDelay: Infinity })) {
    if (line === '') continue;
    const { verb = '', user, objectRef, requestURI = '', responseStatus } = JSON.parse(line) as AuditEvent;
    if (user?.username !== username || (responseStatus?.code ?? 500) >= 300) continue;
    const { apiGroup = '', resource, subresource } = objectRef ?? {};
    if (resource === undefined) used.add(`${verb} ${requestURI.split('?')[0] ?? ''}`);
    else used.add(right(verb, apiGroup, subresource === undefined ? resource : `${resource}/${subresource}`));
  }
  return used;
}

/** Each right that the rules give, one by one. */
export function rightsOf(rules: readonly Rule[]): string[] {
  return rules.flatMap(({ apiGroups = [], resources = [], nonResourceURLs = [], verbs }) =>
    verbs.flatMap((verb) => [
      ...apiGroups.flatMap((group) => resources.map((resource) => right(verb, group, resource))),
      ...nonResourceURLs.map((url) => `${verb} ${url}`),
    ]),
  );
}
