import { describe, expect, it } from 'vitest';
import type { DisruptionAction } from '../../../machine-config/api/node-disruption-policy.js';
import { EMPTY_CONTENT, type ConfigContent } from '../../../machine-config/change/content.js';
import { diffConfigs } from '../../../machine-config/change/diff-configs.js';
import {
  disruption,
  disruptionCauses,
  disruptionOfCauses,
  resolveSpecial,
  restrictCauses,
  summariseCost,
  type ChangedParts,
} from '../../../machine-config/change/disruption.js';
import type { OsField } from '../../../machine-config/change/os-fields.js';
import { DEFAULT_POLICIES, mergePolicies, REGISTRIES_CONF } from '../../../machine-config/change/policies.js';
import { file, makeContent, withFiles } from './make-content.js';

const restart = (serviceName: string): DisruptionAction => ({ type: 'Restart', restart: { serviceName } });
const reload = (serviceName: string): DisruptionAction => ({ type: 'Reload', reload: { serviceName } });
const DAEMON_RELOAD: DisruptionAction = { type: 'DaemonReload' };
const DRAIN: DisruptionAction = { type: 'Drain' };
const SEARCH = 'unqualified-search-registries = ["a.example"]\n';
const NONE: DisruptionAction = { type: 'None' };
const REBOOT: DisruptionAction = { type: 'Reboot' };

/** The actions when all these files, and the unit s.service if it has a policy, are new. */
function actionsFor(files: Record<string, DisruptionAction[]>, unitActions?: DisruptionAction[]) {
  const policies = mergePolicies({
    files: Object.entries(files).map(([path, actions]) => ({ path, actions })),
    units: unitActions === undefined ? [] : [{ name: 's.service', actions: unitActions }],
  });
  const next = makeContent({
    storage: { files: Object.keys(files).map((path) => file(path)) },
    ...(unitActions === undefined ? {} : { systemd: { units: [{ name: 's.service', contents: '[Service]\n' }] } }),
  });
  return disruption(makeContent(), next, policies);
}

describe('disruption', () => {
  it('reloads the daemon first, does each action once, and restarts instead of reloading', () => {
    const actions = actionsFor({ '/etc/a': [restart('s.service')], '/etc/b': [DAEMON_RELOAD, restart('s.service')] }, [
      reload('s.service'),
    ]);
    expect(actions).toEqual([DAEMON_RELOAD, restart('s.service')]);
  });

  it('drains before everything else', () => {
    expect(actionsFor({ '/etc/a': [reload('a.service')], '/etc/b': [DAEMON_RELOAD], '/etc/c': [DRAIN] })).toEqual([
      DRAIN,
      DAEMON_RELOAD,
      reload('a.service'),
    ]);
  });

  it('keeps the order that each policy asks for, whichever file comes first', () => {
    const trustFirst = [restart('trust.service'), restart('crio.service')];
    expect(actionsFor({ '/etc/a': [restart('crio.service')], '/etc/b': trustFirst })).toEqual(trustFirst);
    expect(actionsFor({ '/etc/a': trustFirst, '/etc/b': [restart('trust.service')] })).toEqual(trustFirst);
  });

  it('ends although two policies contradict each other, with each action once', () => {
    const [x, y] = [restart('x.service'), restart('y.service')];
    expect(actionsFor({ '/etc/a': [x, y], '/etc/b': [y, x] })).toEqual([x, y]);
  });

  it('is a reboot alone as soon as one thing asks for it, or has no policy', () => {
    expect(actionsFor({ '/etc/a': [REBOOT], '/etc/b': [restart('s.service')] })).toEqual([REBOOT]);
    expect(
      disruption(makeContent(), withFiles(file('/etc/crio/policies/x'), file('/etc/other')), DEFAULT_POLICIES),
    ).toEqual([REBOOT]);
  });

  it('drops None beside other actions and is None when nothing is left or nothing changes', () => {
    expect(actionsFor({ '/etc/a': [NONE], '/etc/b': [DRAIN] })).toEqual([DRAIN]);
    expect(actionsFor({ '/etc/a': [NONE], '/etc/b': [NONE] })).toEqual([NONE]);
    expect(actionsFor({ '/etc/a': [] })).toEqual([NONE]);
    expect(disruption(EMPTY_CONTENT, EMPTY_CONTENT, DEFAULT_POLICIES)).toEqual([NONE]);
  });

  it('takes the nearest directory for each file', () => {
    const policies = mergePolicies({
      files: [
        { path: '/etc', actions: [REBOOT] },
        { path: '/etc/foo', actions: [NONE] },
        { path: '/etc/foo/x', actions: [restart('a.service')] },
      ],
    });
    const cost = (...paths: string[]) =>
      disruption(makeContent(), withFiles(...paths.map((path) => file(path))), policies);
    expect(cost('/etc/foo/x', '/etc/foo/y')).toEqual([restart('a.service')]);
    expect(cost('/etc/foobar', '/etc/foo/x', '/etc/foo/y')).toEqual([REBOOT]);
  });

  it.each<[string, Partial<ConfigContent>]>([
    ['the image', { osImageURL: 'q' }],
    ['kernel arguments', { kernelArguments: ['a'] }],
    ['the kernel type', { kernelType: 'realtime' }],
    ['extensions', { extensions: ['usbguard'] }],
  ])('reboots for %s, whatever the policies say', (_, fields) => {
    const policies = mergePolicies({ files: [{ path: '/', actions: [NONE] }] });
    expect(disruption(EMPTY_CONTENT, { ...EMPTY_CONTENT, ...fields }, policies)).toEqual([REBOOT]);
  });

  it('costs nothing when only the encoding or the order of files changes', () => {
    const [a, b] = [file('/etc/a', 'x'), file('/etc/b', 'y')];
    const encoded = { path: '/etc/a', contents: { source: 'data:;base64,eA==' } };
    expect(disruption(withFiles(a, b), withFiles(b, encoded), DEFAULT_POLICIES)).toEqual([NONE]);
  });
});

describe('disruptionCauses', () => {
  it('says what asks for which actions, sorted, by name', () => {
    const next = makeContent(
      {
        storage: { files: [file('/etc/z'), file('/etc/crio/policies/x')] },
        systemd: { units: [{ name: 'a.service' }] },
        passwd: { users: [{ name: 'core', sshAuthorizedKeys: ['k'] }] },
      },
      { kernelArguments: ['a'] },
    );
    const causes = disruptionCauses(diffConfigs(EMPTY_CONTENT, next), DEFAULT_POLICIES);
    expect(causes.map(({ what, actions }) => [what, actions.map(({ type }) => type).join()])).toEqual([
      ['kernel arguments', 'Reboot'],
      ['file /etc/crio/policies/x', 'Reload'],
      ['file /etc/z', 'Reboot'],
      ['unit a.service', 'Reboot'],
      ['SSH keys and password', 'None'],
    ]);
  });
});

describe('what a host still has to do', () => {
  const next = makeContent(
    {
      storage: { files: [file('/etc/a'), file('/etc/crio/policies/x'), file(REGISTRIES_CONF, SEARCH)] },
      systemd: { units: [{ name: 'a.service' }] },
      passwd: { users: [{ name: 'core', sshAuthorizedKeys: ['k'] }] },
    },
    { kernelArguments: ['a'], osImageURL: 'q' },
  );
  const policies = mergePolicies({ files: [{ path: '/etc', actions: [restart('s.service')] }] });
  const causes = disruptionCauses(diffConfigs(EMPTY_CONTENT, next), policies);
  const nothing = { files: new Set<string>(), units: new Set<string>(), passwd: false, os: new Set<OsField>() };

  it.each<[string, Partial<ChangedParts>, string[], DisruptionAction[]]>([
    ['nothing', {}, [], [NONE]],
    ['a file', { files: new Set(['/etc/a']) }, ['file /etc/a'], [restart('s.service')]],
    ['a unit', { units: new Set(['a.service']) }, ['unit a.service'], [REBOOT]],
    ['the keys', { passwd: true }, ['SSH keys and password'], [NONE]],
    ['an argument', { os: new Set(['kernelArguments'] as const) }, ['kernel arguments'], [REBOOT]],
    ['a file that is the same', { files: new Set(['/etc/other']) }, [], [NONE]],
  ])('costs as much as that alone: %s', (_, changed, what, actions) => {
    const left = restrictCauses(causes, { ...nothing, ...changed });
    expect(left.map((cause) => cause.what)).toEqual(what);
    expect(disruptionOfCauses(left, EMPTY_CONTENT, next)).toEqual(actions);
  });

  it('says whose policy it is and what that is written for', () => {
    const said = causes.map(({ kind, name, origin, policy }) => [kind, name, origin, policy]);
    expect(said).toEqual([
      ['os', 'osImageURL', 'default', undefined],
      ['os', 'kernelArguments', 'default', undefined],
      ['file', '/etc/a', 'user', '/etc'],
      ['file', REGISTRIES_CONF, 'default', REGISTRIES_CONF],
      ['file', '/etc/crio/policies/x', 'default', '/etc/crio/policies'],
      ['unit', 'a.service', 'default', undefined],
      ['passwd', 'passwd', 'default', undefined],
    ]);
  });

  it('has Special written out, so that a service can be left out of it, and once is as good as twice', () => {
    const registries = restrictCauses(causes, { ...nothing, files: new Set([REGISTRIES_CONF]) });
    const once = resolveSpecial(registries, EMPTY_CONTENT, next);
    expect(once.map(({ actions }) => actions)).toEqual([[reload('crio.service')]]);
    expect(resolveSpecial(once, EMPTY_CONTENT, next)).toEqual(once);
    expect(once.map(({ origin }) => origin)).toEqual(['default']);
    const without = once.map((cause) => ({ ...cause, actions: [] }));
    expect(disruptionOfCauses(without, EMPTY_CONTENT, next)).toEqual([NONE]);
  });
});

describe('summariseCost', () => {
  it.each([
    [[NONE], 'none'],
    [[], 'none'],
    [[reload('a.service')], 'services'],
    [[restart('a.service')], 'services'],
    [[DAEMON_RELOAD], 'services'],
    [[DRAIN, restart('a.service')], 'drain'],
    [[REBOOT], 'reboot'],
  ] as const)('says of %j: %s', (actions, cost) => {
    expect(summariseCost(actions)).toBe(cost);
  });
});
