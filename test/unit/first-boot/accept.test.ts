import { describe, expect, test } from 'vitest';
import { negotiateVersion } from '../../../machine-config/first-boot/accept.js';

const ignition = (version: string, more = '') => `application/vnd.coreos.ignition+json;version=${version}${more}`;

function served(accept: string | undefined): string {
  const found = negotiateVersion(accept);
  return found.outcome === 'serve' ? found.version : 'refused';
}

describe('the version that a client gets', () => {
  test.each([
    ['no header', undefined, '2.2.0'],
    ['an empty header', '', '2.2.0'],
    ['anything', '*/*', '2.2.0'],
    ['a browser', 'text/html,application/xhtml+xml;q=0.9', '2.2.0'],
    ['no media type at all', 'vnd.coreos.ignition+json;version=3.4.0', '2.2.0'],
    ['an entry of Ignition without version', 'application/vnd.coreos.ignition+json', '2.2.0'],
    ['a version of one number', ignition('1'), '2.2.0'],
    ['a version of two numbers', ignition('3.4'), '2.2.0'],
    ['a quoted version', ignition('"3.4.0"'), '2.2.0'],
    ['a version with a v', ignition('v3.4.0'), '2.2.0'],
    ['another case of the subtype', 'application/VND.coreos.ignition+json;version=3.4.0', '2.2.0'],
    ['another subtype', 'application/json;version=3.4.0', '2.2.0'],
    ['2.2', ignition('2.2.0'), '2.2.0'],
    ['2.4', ignition('2.4.0'), '2.2.0'],
    ['2.0', ignition('2.0.0'), 'refused'],
    ['2.1', ignition('2.1.0'), 'refused'],
    ['0.1', ignition('0.1.0'), 'refused'],
    ['1.0', ignition('1.0.0'), 'refused'],
    ['3.0', ignition('3.0.0'), 'refused'],
    ['3.0 with a patch', ignition('3.0.7'), 'refused'],
    ['4.0', ignition('4.0.0'), 'refused'],
    ['3.1', ignition('3.1.0'), '3.1.0'],
    ['3.2 with a patch', ignition('3.2.9'), '3.2.0'],
    ['3.3', ignition('3.3.0'), '3.3.0'],
    ['3.4', ignition('3.4.0'), '3.4.0'],
    ['3.5', ignition('3.5.0'), '3.5.0'],
    ['newer than is known', ignition('3.7.0'), '3.5.0'],
    ['an experimental one', ignition('3.6.0-experimental'), '3.5.0'],
    ['any main type', 'x/vnd.coreos.ignition+json;version=3.3.0', '3.3.0'],
    ['blanks around', ` application/vnd.coreos.ignition+json ; version=3.3.0 `, '3.3.0'],
    ['what Ignition itself sends', `${ignition('3.5.0')}, */*;q=0.1`, '3.5.0'],
    ['the preferred of two', `${ignition('3.1.0', ';q=0.2')}, ${ignition('3.4.0', ';q=0.9')}`, '3.4.0'],
    ['the first of two that are preferred equally', `${ignition('3.2.0')}, ${ignition('3.4.0')}`, '3.2.0'],
    ['no weight is weight 1', `${ignition('3.1.0', ';q=0.9')}, ${ignition('3.4.0')}`, '3.4.0'],
    ['a weight that is no number is weight 1', `${ignition('3.1.0', ';q=0.9')}, ${ignition('3.4.0', ';q=x')}`, '3.4.0'],
    ['one without a version is passed over', `application/vnd.coreos.ignition+json, ${ignition('3.4.0')}`, '3.4.0'],
    ['only the first of Ignition is tried', `${ignition('4.0.0')}, ${ignition('3.2.0')}`, 'refused'],
  ])('%s', (_, accept, version) => {
    expect(served(accept)).toBe(version);
  });

  test('a refusal says what there is', () => {
    expect(negotiateVersion(ignition('3.0.0'))).toEqual({
      outcome: 'refuse',
      reason: 'Ignition 3.0.0 is not served; accept one of 2.2.0, 3.1.0, 3.2.0, 3.3.0, 3.4.0, 3.5.0',
    });
  });
});
