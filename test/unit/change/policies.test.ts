import { describe, expect, it } from 'vitest';
import { EMPTY_CONTENT } from '../../../machine-config/change/content.js';
import { disruption } from '../../../machine-config/change/disruption.js';
import {
  checkPolicyPaths,
  DEFAULT_POLICIES,
  defaultPolicies,
  mergePolicies,
  policiesInForce,
  policyForFile,
} from '../../../machine-config/change/policies.js';
import type { DisruptionAction } from '../../../machine-config/api/node-disruption-policy.js';
import { file, makeContent, withFiles, type Sections } from './make-content.js';

const none: DisruptionAction[] = [{ type: 'None' }];
const reboot: DisruptionAction[] = [{ type: 'Reboot' }];
const drain: DisruptionAction[] = [{ type: 'Drain' }];
const find = (path: string, ...paths: string[]) =>
  policyForFile(path, mergePolicies({ files: paths.map((own) => ({ path: own, actions: none })) }))?.path;

describe('mergePolicies', () => {
  it('gives the built-in policies where there are no others', () => {
    expect(mergePolicies(undefined)).toEqual(DEFAULT_POLICIES);
    expect(mergePolicies({})).toEqual(DEFAULT_POLICIES);
    expect([DEFAULT_POLICIES.files.length, DEFAULT_POLICIES.units.length]).toEqual([13, 1]);
  });

  it('replaces an entry of the same key where it stands and adds the others', () => {
    const merged = mergePolicies({
      files: [
        { path: '/etc/mine', actions: none },
        { path: '/etc/containers/policy.json', actions: reboot },
      ],
      units: [{ name: 'iri-registry.service', actions: none }],
    });
    expect(merged.files[2]).toEqual({ path: '/etc/containers/policy.json', actions: reboot, origin: 'user' });
    expect(merged.files.at(-1)).toEqual({ path: '/etc/mine', actions: none, origin: 'user' });
    expect(merged.files).toHaveLength(14);
    expect(merged.units).toEqual([{ name: 'iri-registry.service', actions: none, origin: 'user' }]);
    expect(merged.files[1]?.origin).toBe('default');
  });

  it('knows a built-in directory again when it is written with a slash at its end', () => {
    const merged = mergePolicies({ files: [{ path: '/etc/crio/policies/', actions: reboot }] });
    expect(merged.files).toHaveLength(13);
    expect(policyForFile('/etc/crio/policies/x', merged)?.actions).toEqual(reboot);
  });

  it('replaces the policy of SSH keys only by one that has an action', () => {
    expect(mergePolicies({ sshkey: { actions: drain } }).sshkey).toEqual({ actions: drain, origin: 'user' });
    expect(mergePolicies({ sshkey: { actions: [] } }).sshkey).toEqual({ actions: none, origin: 'default' });
  });
});

describe('the built-in policies of the alauda group', () => {
  const alauda = { name: 'alauda' } as const;
  const next = (sections: Sections) => disruption(EMPTY_CONTENT, makeContent(sections), policiesInForce({}, alauda));

  it('let files and SSH keys cost nothing and units a reboot', () => {
    expect(next({ storage: { files: [file('/etc/crio/policies/x'), file('/etc/a')] } })).toEqual(none);
    expect(next({ passwd: { users: [{ name: 'boot', sshAuthorizedKeys: ['k'] }] } })).toEqual(none);
    expect(next({ systemd: { units: [{ name: 'a.service', enabled: true }] } })).toEqual(reboot);
  });

  it('give way to the actions that the spec has for whatever is not named', () => {
    const policies = policiesInForce({ defaultNodeDisruptionPolicySpecAction: { files: drain, units: [] } }, alauda);
    expect(policies.otherwise).toEqual({
      files: { actions: drain, origin: 'user' },
      units: { actions: reboot, origin: 'default' },
    });
    expect(disruption(EMPTY_CONTENT, withFiles(file('/etc/a')), policies)).toEqual(drain);
  });

  it('are not those of the other group', () => {
    expect(policiesInForce(undefined, { name: 'openshift' })).toEqual(DEFAULT_POLICIES);
    expect(policiesInForce(undefined, alauda)).toEqual(defaultPolicies(alauda));
    expect(defaultPolicies(alauda)).not.toEqual(DEFAULT_POLICIES);
  });
});

describe('policyForFile', () => {
  it('matches whole path segments and takes the longest', () => {
    const paths = ['/etc', '/etc/foo', '/etc/foo/x'];
    expect(find('/etc/foobar', ...paths)).toBe('/etc');
    expect(find('/etc/foo/x', ...paths)).toBe('/etc/foo/x');
    expect(find('/etc/foo/y', ...paths)).toBe('/etc/foo');
    expect(find('/etc/foo/x/deep/er', ...paths)).toBe('/etc/foo/x');
    expect(find('/usr/x', ...paths)).toBeUndefined();
  });

  it('takes a slash at the end as the directory and / as everything', () => {
    expect(find('/etc/foo/x', '/etc/foo/')).toBe('/etc/foo');
    expect(find('/etc/foo', '/etc/foo/')).toBe('/etc/foo');
    expect(find('/anything', '/')).toBe('/');
  });

  it('takes a wildcard for the character that it is', () => {
    expect(find('/etc/a.conf', '/etc/*.conf')).toBeUndefined();
  });
});

describe('checkPolicyPaths', () => {
  it('names each path that could match nothing, with its place', () => {
    const files = ['/etc/*.conf', 'etc/a', '/etc//a', '/etc/../a', '/etc/ok', '/etc/dir/', '/'].map((path) => ({
      path,
      actions: none,
    }));
    const problems = checkPolicyPaths({ files });
    expect(problems.map((problem) => /files\[(\d+)\]/.exec(problem)?.[1])).toEqual(['0', '1', '2', '3']);
    expect(problems[0]).toContain('wildcard');
    expect(checkPolicyPaths(undefined)).toEqual([]);
  });
});
