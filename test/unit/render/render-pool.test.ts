import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { apiFlavour } from '../../../machine-config/api/flavour.js';
import { renderPool, type RenderPoolInput } from '../../../machine-config/render/render-pool.js';
import { orderMachineConfigs, selectMachineConfigs } from '../../../machine-config/render/select.js';

const flavour = apiFlavour('openshift');
const ROLE = flavour.roleLabel;

const machineConfig = (name: string, spec: object, role = 'worker') => ({
  metadata: { name, labels: { [ROLE]: role } },
  spec,
});
const ignition = (name: string, sections: object, role?: string) =>
  machineConfig(name, { config: { ignition: { version: '3.4.0' }, ...sections } }, role);
const withFile = (name: string, file: object, role?: string) => ignition(name, { storage: { files: [file] } }, role);

function render(machineConfigs: RenderPoolInput['machineConfigs'], more: Partial<RenderPoolInput> = {}) {
  return renderPool({ pool: 'worker', flavour, machineConfigs, ...more });
}
function rendered(...machineConfigs: RenderPoolInput['machineConfigs']) {
  const result = render(machineConfigs);
  if (result.outcome === 'refused') throw new Error(result.reason);
  return result;
}
const specOf = (...machineConfigs: RenderPoolInput['machineConfigs']) => rendered(...machineConfigs).config.spec;
const nameOf = (...machineConfigs: RenderPoolInput['machineConfigs']) =>
  rendered(...machineConfigs).config.metadata.name;
function reasonOf(...machineConfigs: RenderPoolInput['machineConfigs']) {
  const result = render(machineConfigs);
  return result.outcome === 'refused' ? result.reason : 'rendered';
}
const warningsOf = (...machineConfigs: RenderPoolInput['machineConfigs']) =>
  rendered(...machineConfigs).warnings.map(({ path, message }) => `${path}: ${message}`);

describe('selecting', () => {
  const all = [ignition('a', {}), ignition('b', {}, 'infra'), { metadata: { name: 'c' }, spec: {} }];
  const select = (machineConfigSelector?: object) =>
    selectMachineConfigs({ spec: { ...(machineConfigSelector && { machineConfigSelector }) } }, all).map(
      ({ metadata }) => metadata.name,
    );

  it('takes what the labels match', () => {
    expect(select({ matchLabels: { [ROLE]: 'infra' } })).toEqual(['b']);
    expect(select({ matchExpressions: [{ key: ROLE, operator: 'In', values: ['worker', 'infra'] }] })).toEqual([
      'a',
      'b',
    ]);
  });

  it('takes nothing with an empty or no selector, and nothing without labels', () => {
    expect(select()).toEqual([]);
    expect(select({})).toEqual([]);
    expect(select({ matchExpressions: [{ key: ROLE, operator: 'DoesNotExist' }] })).toEqual([]);
  });
});

describe('the order', () => {
  it('is by text within a role, with worker first', () => {
    const names = ['99-worker-ssh', '100-override', '99x-later', '50-a'].map((name) => ignition(name, {}));
    const infra = ['00-infra', '99-infra'].map((name) => ignition(name, {}, 'infra'));
    const ordered = orderMachineConfigs([...infra, ...names], flavour).map(({ metadata }) => metadata.name);
    expect(ordered).toEqual(['100-override', '50-a', '99-worker-ssh', '99x-later', '00-infra', '99-infra']);
  });

  it('lets a custom pool win over worker whatever the names', () => {
    const worker = withFile('99-worker-x', { path: '/etc/f', contents: { source: 'data:,worker' } });
    const infra = withFile('00-infra-x', { path: '/etc/f', contents: { source: 'data:,infra' } }, 'infra');
    expect(specOf(worker, infra)).toMatchObject({
      config: { storage: { files: [{ path: '/etc/f', contents: { source: 'data:,infra' } }] } },
    });
    expect(rendered(infra, worker).sources).toEqual(['99-worker-x', '00-infra-x']);
  });

  it('is by code point, not by UTF-16 unit', () => {
    const names = ['\u{1F600}', '\uFF5E'].map((name) => ignition(name, {}));
    expect(orderMachineConfigs(names, flavour).map(({ metadata }) => metadata.name)).toEqual(['\uFF5E', '\u{1F600}']);
  });
});

describe('merging', () => {
  it('of a typical pool gives the config worked out by hand', () => {
    const base = machineConfig('00-worker', {
      config: {
        ignition: { version: '3.2.0' },
        passwd: { users: [{ name: 'core', sshAuthorizedKeys: ['k1'] }] },
        storage: { files: [{ path: '/etc/a', mode: 0o600, contents: { source: 'data:,a' } }] },
        systemd: {
          units: [
            { name: 'kubelet.service', enabled: true, contents: '[Service]\nExecStart=/k\n[Install]\nWantedBy=m\n' },
          ],
        },
      },
      kernelArguments: ['quiet'],
      osImageURL: 'registry.example.com/os:1',
    });
    const custom = machineConfig('50-worker', {
      config: {
        ignition: { version: '3.5.0' },
        passwd: { users: [{ name: 'core', sshAuthorizedKeys: ['k2', 'k1'] }] },
        storage: {
          files: [
            { path: '/etc/a', contents: { source: 'data:,b' } },
            { path: '/etc/b', contents: { source: 'data:,b' } },
          ],
        },
        systemd: {
          units: [
            { name: 'kubelet.service', dropins: [{ name: '10-x.conf', contents: '[Service]\nA=b\n' }] },
            { name: 'rpcbind.service', mask: true },
          ],
        },
      },
      kernelArguments: ['hugepagesz=1G hugepages=4', 'hugepagesz=2M', 'quiet'],
      extensions: ['usbguard'],
      kernelType: 'realtime',
      fips: true,
    });
    expect(rendered(custom, base).config).toEqual({
      apiVersion: 'machineconfiguration.openshift.io/v1',
      kind: 'MachineConfig',
      metadata: { name: expect.stringMatching(/^rendered-worker-[0-9a-f]{32}$/) as string },
      spec: {
        osImageURL: 'registry.example.com/os:1',
        config: {
          ignition: { version: '3.4.0' },
          passwd: { users: [{ name: 'core', sshAuthorizedKeys: ['k1', 'k2'] }] },
          storage: {
            files: [
              { path: '/etc/a', mode: 0o600, contents: { source: 'data:,b' }, overwrite: true },
              { path: '/etc/b', contents: { source: 'data:,b' }, overwrite: true },
            ],
          },
          systemd: {
            units: [
              {
                name: 'kubelet.service',
                enabled: true,
                contents: '[Service]\nExecStart=/k\n[Install]\nWantedBy=m\n',
                dropins: [{ name: '10-x.conf', contents: '[Service]\nA=b\n' }],
              },
              { name: 'rpcbind.service', mask: true },
            ],
          },
        },
        kernelArguments: ['quiet', 'hugepagesz=1G', 'hugepages=4', 'hugepagesz=2M', 'quiet'],
        extensions: ['usbguard'],
        fips: true,
        kernelType: 'realtime',
      },
    });
  });

  it('replaces contents and owner as a whole', () => {
    const packed = `data:;base64,${gzipSync('x').toString('base64')}`;
    const low = withFile('50-low', {
      path: '/etc/f',
      user: { id: 5 },
      contents: { compression: 'gzip', source: packed },
    });
    const high = withFile('60-high', { path: '/etc/f', user: { name: 'core' }, contents: { source: 'data:,plain' } });
    expect(specOf(low, high)).toMatchObject({
      config: {
        storage: {
          files: [{ path: '/etc/f', contents: { source: 'data:,plain' }, user: { name: 'core' }, overwrite: true }],
        },
      },
    });
    expect(JSON.stringify(specOf(low, high))).not.toMatch(/gzip|"id"/);
  });

  it('takes defaults of the system image only where no MachineConfig sets one', () => {
    const osDefaults = { osImageURL: 'default', baseOSExtensionsContainerImage: 'extensions' };
    const own = machineConfig('a', { osImageURL: 'own' });
    expect(render([own], { osDefaults })).toMatchObject({
      config: { spec: { osImageURL: 'own', baseOSExtensionsContainerImage: 'extensions' } },
    });
  });

  it.each([
    { path: '/etc/empty', mode: 420 },
    { path: '/etc/empty', mode: 420, contents: {} },
  ])('makes an empty file of %j, and says so', (file) => {
    expect(specOf(withFile('a', file))).toMatchObject({
      config: {
        storage: { files: [{ path: '/etc/empty', mode: 420, contents: { source: 'data:,' }, overwrite: true }] },
      },
    });
    expect(warningsOf(withFile('a', file))).toEqual([expect.stringContaining('becomes an empty file')]);
  });
});

describe('a MachineConfig', () => {
  it.each([
    ['no config', { kernelArguments: ['nosmt'] }],
    ['an empty config', { config: {}, osImageURL: 'registry.example.com/os:1' }],
    ['null fields', { config: null, kernelArguments: ['nosmt'], extensions: null, fips: null, kernelType: null }],
  ])('with %s is fine', (_, spec) => {
    expect(warningsOf(machineConfig('a', spec))).toEqual([]);
  });

  it('without spec contributes nothing, which is said', () => {
    expect(warningsOf({ metadata: { name: 'a' } })).toEqual([
      'spec: is missing, so this MachineConfig contributes nothing',
    ]);
  });

  it.each([
    [
      { kernelArgs: ['a'] },
      'spec.kernelArgs: "kernelArgs" is not a key of spec and would be ignored; write kernelArguments',
    ],
    [
      { storage: { files: [] } },
      'spec.storage: belongs one level deeper and would be ignored; write it under spec.config',
    ],
    [{ kernelArguments: 'a b' }, 'spec.kernelArguments: is the string "a b", must be a list'],
    [{ kernelArguments: [1] }, 'spec.kernelArguments[0]: is 1, must be a string; put it in quotes'],
    [{ kernelArguments: ['a="b c'] }, 'spec.kernelArguments[0]: has a double quote that is not closed'],
    [{ kernelArguments: ['a\nb'] }, 'spec.kernelArguments[0]: has a line break'],
    [{ fips: 'true' }, 'spec.fips: is the string "true", must be true or false; write true without quotes'],
    [{ kernelType: 'turbo' }, 'spec.kernelType: "turbo" is none of default, realtime, 64k-pages'],
    [{ extensions: ['wasm'] }, 'spec.extensions[0]: "wasm" is no extension'],
    [
      { extensions: ['kernel-devel'], kernelType: 'realtime' },
      'spec.extensions: kernel-devel exists for the default kernel only',
    ],
    [{ config: 'text' }, 'spec.config: must be an object'],
    [{ osImageURL: '\ud800' }, 'spec.osImageURL: contains half a Unicode character'],
    [[], 'spec: must be an object'],
  ])('with spec %j is refused', (spec, message) => {
    expect(reasonOf(machineConfig('a', spec))).toContain(`MachineConfig a: ${message}`);
  });

  it('with an unknown key that the API drops is warned about', () => {
    expect(warningsOf(machineConfig('a', { selector: { a: 'b' } }))).toEqual([
      'spec.selector: is not a key of spec; the API drops it and it does nothing; leave it out',
    ]);
  });

  it('without a name, or with one that Kubernetes would not take, is refused', () => {
    expect(reasonOf({ spec: {} })).toBe('MachineConfig (without name): metadata.name: must not be empty');
    expect(reasonOf({ metadata: { name: 'A\nb' }, spec: {} })).toContain(
      'MachineConfig "A\\nb": metadata.name: must consist of',
    );
  });

  it('with a prefix of three digits is warned about', () => {
    expect(warningsOf(machineConfig('100-a', {}))).toEqual([
      'metadata.name: names are compared as text, so 100 comes before 99; use two digits',
    ]);
    expect(warningsOf(machineConfig('999-a', {}))).toEqual([]);
  });

  it('with another user than the one of the flavour is refused', () => {
    const users = (name: string) => ignition('a', { passwd: { users: [{ name, sshAuthorizedKeys: ['k'] }] } });
    expect(reasonOf(users('bob'))).toContain('spec.config.passwd.users[0].name: bob: is not core');
    expect(reasonOf(users('core'))).toBe('rendered');
    expect(render([users('boot')], { flavour: apiFlavour('alauda') }).outcome).toBe('rendered');
  });

  it.each([
    { storage: { files: [{ path: '/var/lib/drydock/journal' }] } },
    { storage: { links: [{ path: '/var/lib/drydock', target: '/tmp' }] } },
    { storage: { files: [{ path: '/var/lib/kubelet/pki/kubelet-client-current.pem' }] } },
    { storage: { files: [{ path: '/run/machine-config-daemon-force' }] } },
    { systemd: { units: [{ name: 'drydock-node.service', mask: true }] } },
  ])('that reaches for the node worker itself is refused: %j', (sections) => {
    expect(reasonOf(ignition('a', sections))).toMatch(/no MachineConfig may/);
  });

  it.each([
    [{ storage: { filesystems: [{ device: '/dev/a', format: 'xfs' }] } }, 'spec.config.storage.filesystems'],
    [{ passwd: { groups: [{ name: 'g' }] } }, 'spec.config.passwd.groups'],
    [{ passwd: { users: [{ name: 'core', shell: '/bin/zsh' }] } }, 'spec.config.passwd.users[0].shell'],
    [{ kernelArguments: { shouldExist: ['a'] } }, 'spec.config.kernelArguments'],
  ])('with what only a first boot does is warned about: %j', (sections, path) => {
    const [warning] = warningsOf(ignition('a', sections));
    expect(warning).toContain(`${path}: `);
    expect(warning).toContain('only has an effect at first boot');
  });
});

describe('what only the merged config makes wrong', () => {
  it('is refused with both MachineConfigs: a file below a file', () => {
    const low = withFile('60-a', { path: '/home/core/test', contents: { source: 'data:,a' } });
    const high = withFile('61-b', { path: '/home/core/test/test', contents: { source: 'data:,b' } });
    expect(reasonOf(low, high)).toBe(
      'MachineConfig 61-b: spec.config.storage.files[0]: /home/core/test/test: lies below /home/core/test, which is a file in MachineConfig 60-a; choose another path for one of the two',
    );
  });

  it('is refused: a file at the path of a unit', () => {
    const unit = ignition('60-a', { systemd: { units: [{ name: 'a.service', contents: '[Unit]\n' }] } });
    const file = withFile('50-b', { path: '/etc/systemd/system/a.service' });
    expect(reasonOf(unit, file)).toMatch(
      /^MachineConfig 60-a: spec\.config\.systemd\.units\[0\]: .*as a file in MachineConfig 50-b/,
    );
  });

  it('is refused: kernel-devel with the kernel of another MachineConfig', () => {
    const devel = machineConfig('a', { extensions: ['kernel-devel'] });
    const realtime = machineConfig('b', { kernelType: 'realtime' });
    expect(reasonOf(devel, realtime)).toMatch(
      /^MachineConfig a: spec\.extensions: kernel-devel .* MachineConfig b sets realtime/,
    );
  });
});

describe('a refusal', () => {
  it('names every problem, the first one in its reason, on one line', () => {
    const bad = ['a', 'b'].map((name) => withFile(name, { path: 'x\ny', mode: 644 }));
    const result = render(bad);
    expect(result).toMatchObject({
      outcome: 'refused',
      problems: [{ machineConfig: 'a' }, { machineConfig: 'a' }, { machineConfig: 'b' }, { machineConfig: 'b' }],
    });
    expect(reasonOf(...bad)).toMatch(/^MachineConfig a: .*\(and 3 more\)$/);
    expect(reasonOf(...bad)).not.toContain('\n');
  });

  it('is also the answer to a pool that selects nothing', () => {
    expect(reasonOf()).toBe(
      'the pool worker selects no MachineConfig; check its machineConfigSelector and their labels',
    );
  });

  it('is also the answer to another version of a generated MachineConfig', () => {
    const generated = { metadata: { name: 'a', annotations: { [flavour.generatedByAnnotation]: 'v1' } }, spec: {} };
    expect(render([generated], { controllerVersion: 'v2' }).outcome).toBe('refused');
    expect(render([generated], { controllerVersion: 'v1' }).outcome).toBe('rendered');
    expect(render([generated]).outcome).toBe('rendered');
  });
});

describe('the size', () => {
  const filler = (index: number, bytes: number) =>
    withFile(`${10 + index}-f`, { path: `/etc/f${index}`, contents: { source: `data:,${'x'.repeat(bytes)}` } });

  it('beyond what Kubernetes stores is refused and the five largest inputs are named', () => {
    const inputs = Array.from({ length: 30 }, (_, index) => filler(index, 60_000 + index));
    expect(reasonOf(...inputs)).toMatch(
      /^the rendered config has 18\d{5} bytes, Kubernetes stores at most 1572864; .*: 39-f \(\d+ bytes\), 38-f \(\d+ bytes\), 37-f \(\d+ bytes\), 36-f \(\d+ bytes\), 35-f \(\d+ bytes\)$/,
    );
  });

  it('above one MiB is warned about, below it is not', () => {
    expect(warningsOf(filler(0, 1_100_000))).toEqual([
      expect.stringContaining('close to the 1572864 that Kubernetes stores'),
    ]);
    expect(warningsOf(filler(0, 900_000))).toEqual([]);
  });

  it('of 500 MachineConfigs in one pool is no problem', () => {
    const inputs = Array.from({ length: 500 }, (_, index) => filler(index, 500));
    expect(rendered(...inputs).sources).toHaveLength(500);
  });
});

describe('the name', () => {
  const file = (contents: object, more: object = {}) => withFile('a', { path: '/etc/f', contents, ...more });
  const x = { source: 'data:,x' };

  it.each([
    ['base64 instead of percent-encoding', file({ source: 'data:text/plain;base64,eA==' })],
    [
      'gzip instead of plain',
      file({ source: `data:;base64,${gzipSync('x').toString('base64')}`, compression: 'gzip' }),
    ],
    ['compression written as ""', file({ ...x, compression: '' })],
    ['an empty verification', file({ ...x, verification: {} })],
    ['the default mode written out', file(x, { mode: 0o644 })],
    ['overwrite written out', file(x, { overwrite: true })],
    [
      'an older Ignition version',
      machineConfig('a', {
        config: { ignition: { version: '3.0.0' }, storage: { files: [{ path: '/etc/f', contents: x }] } },
      }),
    ],
    [
      'spec 2',
      machineConfig('a', {
        config: {
          ignition: { version: '2.2.0' },
          storage: { files: [{ filesystem: 'root', path: '/etc/f', contents: x }] },
        },
      }),
    ],
    [
      'nulls and empty lists',
      machineConfig('a', {
        extensions: null,
        kernelArguments: [],
        fips: false,
        kernelType: '',
        osImageURL: '',
        config: {
          passwd: {},
          systemd: { units: [] },
          storage: { links: null, files: [{ contents: { source: 'data:,x' }, path: '/etc/f' }] },
          ignition: { timeouts: {}, version: '3.4.0' },
        },
      }),
    ],
    ['another name of the MachineConfig', withFile('b', { path: '/etc/f', contents: x })],
  ])('is the same with %s', (_, same) => {
    expect(nameOf(same)).toBe(nameOf(file(x)));
  });

  it.each([
    ['other contents', file({ source: 'data:,y' })],
    ['another mode', file(x, { mode: 0o600 })],
    ['overwrite false', file(x, { overwrite: false })],
    ['an owner', file(x, { user: { name: 'core' } })],
    ['a kernel argument', machineConfig('a', { ...file(x).spec, kernelArguments: ['a'] })],
    ['FIPS', machineConfig('a', { ...file(x).spec, fips: true })],
    ['another kernel', machineConfig('a', { ...file(x).spec, kernelType: 'realtime' })],
    ['another image', machineConfig('a', { ...file(x).spec, osImageURL: 'os' })],
  ])('is another one with %s', (_, other) => {
    expect(nameOf(other)).not.toBe(nameOf(file(x)));
  });

  const lists = (files: object[], units: object[]) => ignition('a', { storage: { files }, systemd: { units } });
  const [f1, f2] = [{ path: '/1' }, { path: '/2' }];
  const [u1, u2] = [
    { name: '1.service', enabled: true },
    { name: '2.service', enabled: true },
  ];

  it('does not depend on the order of files, units and drop-ins', () => {
    expect(nameOf(lists([f1, f2], [u1, u2]))).toBe(nameOf(lists([f2, f1], [u2, u1])));
  });

  it('depends on the order and number of kernel arguments, but not on how they are split', () => {
    const kernelArguments = (...list: string[]) => nameOf(machineConfig('a', { kernelArguments: list }));
    expect(kernelArguments('a=1 b=2', 'c=3')).toBe(kernelArguments('a=1', 'b=2', 'c=3'));
    expect(kernelArguments('a', 'b')).not.toBe(kernelArguments('b', 'a'));
    expect(kernelArguments('a')).not.toBe(kernelArguments('a', 'a'));
    expect(kernelArguments('a="1 2"')).not.toBe(kernelArguments('a="1"', '2'));
  });

  it('depends on enabled being absent, true or false', () => {
    const enabled = (fields: object) => nameOf(lists([], [{ name: 'a.service', ...fields }]));
    expect(new Set([enabled({}), enabled({ enabled: true }), enabled({ enabled: false })]).size).toBe(3);
    expect(enabled({ mask: false, contents: '' })).toBe(enabled({}));
  });

  it('differs between pools in the pool only', () => {
    const infra = render([file(x)], { pool: 'infra' });
    expect(infra.outcome === 'rendered' && infra.config.metadata.name).toBe(
      nameOf(file(x)).replace('-worker-', '-infra-'),
    );
  });
});
