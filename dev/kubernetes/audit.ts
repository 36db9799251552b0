import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';

/** One line of JSON for each request, without bodies; where the lab keeps one. */
export function auditLogOf(labDirectory: string): string {
  return join(labDirectory, 'kubernetes', 'audit.log');
}

/** A log of half a gigabyte is that of 5,000 nodes; beyond a size it would be split into several files. */
const NEVER_SPLIT_MEGABYTES = '100000';

/** Who asks without end, and what: of no interest, and more than all the rest. */
const POLICY = {
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  omitStages: ['RequestReceived'],
  rules: [
    { level: 'None', resources: [{ group: 'coordination.k8s.io' }] },
    {
      level: 'None',
      users: ['system:apiserver', 'system:kube-controller-manager', 'system:kube-scheduler', 'drydock-lab-kwok'],
    },
    { level: 'None', userGroups: ['system:serviceaccounts'] },
    { level: 'Metadata' },
  ],
};

/** Writes the policy of what is logged. @returns the arguments of the API server. */
export async function auditArguments(labDirectory: string): Promise<string[]> {
  const policy = join(labDirectory, 'kubernetes', 'audit-policy.yaml');
  await writeFile(policy, stringify(POLICY));
  return [
    `--audit-policy-file=${policy}`,
    `--audit-log-path=${auditLogOf(labDirectory)}`,
    `--audit-log-maxsize=${NEVER_SPLIT_MEGABYTES}`,
  ];
}
