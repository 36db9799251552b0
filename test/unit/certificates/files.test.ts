import { describe, expect, it } from 'vitest';
import type { NodeCertificate } from '../../../machine-config/api/controller-config.js';
import {
  certificateFiles,
  certificateProblems,
  type CertificateData,
} from '../../../machine-config/certificates/files.js';
import { accessByNamespace, certificateObjects } from '../../../machine-config/certificates/objects.js';

const CA = { namespace: 'drydock', name: 'ca' };
const ofSecret = (path: string, more: Partial<NodeCertificate> = {}): NodeCertificate => ({
  secret: CA,
  key: 'ca.crt',
  path,
  ...more,
});
const ofConfigMap = (path: string): NodeCertificate => ({ configMap: CA, key: 'ca.crt', path });
const there = (text: string) => (): CertificateData => ({ state: 'there', contents: Buffer.from(text) });
const filesOf = (certificates: NodeCertificate[], read: () => CertificateData = there('pem')) =>
  certificateFiles(certificates, read);

describe('the files of certificates', () => {
  it('have the contents of their key, and only from a Secret a mode that nobody else can read', () => {
    const { files, problems } = certificateFiles(
      [ofSecret('/etc/a/s'), ofConfigMap('/etc/a/c'), ofSecret('/etc/a/m', { mode: 0o640, key: 'other' })],
      (object, key) => ({ state: 'there', contents: Buffer.from(`${key} of ${object.kind}`) }),
    );
    expect(problems).toEqual([]);
    expect(files.map(({ path, mode, contents }) => [path, mode, contents?.toString()])).toEqual([
      ['/etc/a/s', 0o600, 'ca.crt of Secret'],
      ['/etc/a/c', 0o644, 'ca.crt of ConfigMap'],
      ['/etc/a/m', 0o640, 'other of Secret'],
    ]);
  });

  it.each<[string, CertificateData, string]>([
    ['is absent', { state: 'absent' }, 'there is no Secret drydock/ca; create it'],
    ['may not be read', { state: 'unreadable', why: '403' }, 'this node may not read Secret drydock/ca (403)'],
    ['lacks the key', { state: 'there', contents: undefined }, 'Secret drydock/ca has no key ca.crt'],
    ['is empty there', { state: 'there', contents: Buffer.from('') }, 'ca.crt of Secret drydock/ca is empty'],
  ])('stay as they are, with a reason, where the object %s', (_, found, why) => {
    const { files, problems } = filesOf([ofSecret('/etc/a/s')], () => found);
    expect(files).toEqual([{ path: '/etc/a/s', mode: 0o600, source: 'ca.crt of Secret drydock/ca' }]);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(`/etc/a/s: ${why}`);
    expect(problems[0]).toContain('until then the file stays as it is');
  });

  it('stay as they are without a word while the object is still to be read', () => {
    const { files, problems } = filesOf([ofSecret('/etc/a/s')], () => ({ state: 'waiting' }));
    expect(files[0]).not.toHaveProperty('contents');
    expect(problems).toEqual([]);
  });

  it.each([
    ['etc/a', 'is no absolute path'],
    ['/etc/../a', 'has "." or ".."'],
    ['/etc/./a', 'has "." or ".."'],
    ['/etc//a', 'an extra "/"'],
    ['/etc/a/', 'an extra "/"'],
    ['/etc\0/a', 'has "." or ".."'],
    ['/a', 'lies directly in /'],
    ['/var/lib/drydock/x', '/var/lib/drydock holds'],
    ['/var/lib/kubelet/kubeconfig', 'with which the node worker signs in'],
    ['/etc/systemd/system/a.service', 'where systemd reads units'],
    ['/usr/lib/systemd/system/a.service.d/a.conf', 'where systemd reads units'],
  ])('never lie at %j', (path, why) => {
    const { files, problems } = filesOf([ofSecret(path), ofSecret('/etc/a/good')]);
    expect(files.map((file) => file.path)).toEqual(['/etc/a/good']);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(why);
  });

  it('have permissions and no more', () => {
    expect(certificateProblems([ofSecret('/etc/a/s', { mode: 0o4755 })])[0]).toContain('more than permissions');
    expect(certificateProblems([ofSecret('/etc/a/s', { mode: 0o777 })])).toEqual([]);
  });

  it('do not lie at or below one another', () => {
    expect(certificateProblems([ofSecret('/etc/a'), ofSecret('/etc/a')])[0]).toContain('two entries');
    expect(certificateProblems([ofSecret('/etc/a/b'), ofSecret('/etc/a')])[0]).toContain('would lie below');
    expect(certificateProblems([ofSecret('/etc/a'), ofSecret('/etc/a/b')])[0]).toContain('would lie below');
    expect(certificateProblems([ofSecret('/etc/a'), ofSecret('/etc/ab')])).toEqual([]);
  });

  it('are at most 100, of 20 objects, of 4 MiB together; what is beyond does not hold up the others', () => {
    const many = Array.from({ length: 101 }, (_, index) => ofSecret(`/etc/many/${index}`));
    expect(filesOf(many).files).toHaveLength(100);
    expect(filesOf(many).problems[0]).toContain('/etc/many/100: spec.certificates has more than 100');
    const objects = Array.from({ length: 21 }, (_, index) =>
      ofSecret(`/etc/o/${index}`, { secret: { namespace: 'drydock', name: `ca-${index}` } }),
    );
    expect(filesOf(objects).files).toHaveLength(20);
    expect(filesOf(objects).problems[0]).toContain('/etc/o/20: spec.certificates names more than 20 objects');
    const large = filesOf(
      ['/etc/l/1', '/etc/l/2', '/etc/l/3'].map((path) => ofSecret(path)),
      there('x'.repeat(1_500_000)),
    );
    expect(large.files.map(({ contents }) => contents?.length)).toEqual([1_500_000, 1_500_000, undefined]);
    expect(large.problems[0]).toContain('/etc/l/3: with it the files');
  });
});

describe('what nodes may read', () => {
  it('is each object by its name, in its namespace, and nothing else', () => {
    const certificates: NodeCertificate[] = [
      ofSecret('/etc/1'),
      ofSecret('/etc/2', { key: 'other' }),
      ofSecret('/etc/3', { secret: { namespace: 'drydock', name: 'a' } }),
      ofConfigMap('/etc/4'),
      { configMap: { namespace: 'shop', name: 'trust' }, key: 'k', path: '/etc/5' },
    ];
    const verbs = ['get', 'list', 'watch'];
    expect([...accessByNamespace(certificateObjects(certificates))]).toEqual([
      [
        'drydock',
        [
          { apiGroups: [''], resources: ['configmaps'], resourceNames: ['ca'], verbs },
          { apiGroups: [''], resources: ['secrets'], resourceNames: ['a', 'ca'], verbs },
        ],
      ],
      ['shop', [{ apiGroups: [''], resources: ['configmaps'], resourceNames: ['trust'], verbs }]],
    ]);
  });
});
