import { describe, expect, it } from 'vitest';
import { parseIgnition } from '../../../machine-config/ignition/parse.js';

const parse = (sections: object, version: unknown = '3.4.0') => parseIgnition({ ignition: { version }, ...sections });
const problems = (sections: object, version?: unknown) =>
  parse(sections, version).problems.map(({ path, message }) => `${path}: ${message}`);
const warnings = (sections: object, version?: unknown) =>
  parse(sections, version).warnings.map(({ path, message }) => `${path}: ${message}`);
const withFile = (file: object) => ({ storage: { files: [{ path: '/etc/a', ...file }] } });
const withUnit = (unit: object) => ({ systemd: { units: [{ name: 'a.service', ...unit }] } });

describe('ignition.version', () => {
  it.each(['2.0.0', '2.1.0', '2.2.0', '3.0.0', '3.1.0', '3.2.0', '3.3.0', '3.4.0', '3.5.0'])(
    '%s is accepted and becomes 3.4.0',
    (version) => {
      expect(parse({}, version).config).toEqual({ ignition: { version: '3.4.0' } });
    },
  );

  it.each([
    ['2.3.0', /not understood.*write 3\.4\.0/],
    ['3.6.0-experimental', /newer than what Drydock knows/],
    ['3.5.0-experimental', /not understood/],
    ['3.2', /no version of three numbers/],
    ['v3.4.0', /no version of three numbers/],
    [3, /is 3, must be a string; write "3\.4\.0"/],
    [3.4, /must be a string/],
  ])('%j is refused', (version, message) => {
    expect(problems({}, version)).toEqual([expect.stringMatching(message)]);
  });

  it.each([undefined, null, {}, { ignition: {} }, { ignition: { version: null }, storage: { files: [] } }])(
    'is not needed in an empty config: %j',
    (config) => {
      expect(parseIgnition(config)).toEqual({ problems: [], warnings: [] });
    },
  );

  it('is needed as soon as there is a file', () => {
    expect(parseIgnition(withFile({})).problems).toMatchObject([
      {
        path: 'spec.config.ignition.version',
        message: expect.stringMatching(/missing; write version: 3\.4\.0/) as string,
      },
    ]);
  });

  it('of the result is 3.5.0 only where a field needs it', () => {
    const luks = (fields: object) => ({ storage: { luks: [{ name: 'root', device: '/dev/sda4', ...fields }] } });
    expect(parse(luks({ cex: { enabled: true } }), '3.5.0').config?.ignition.version).toBe('3.5.0');
    expect(parse(luks({}), '3.5.0').config?.ignition.version).toBe('3.4.0');
  });

  it.each([
    [
      '3.2.0',
      { kernelArguments: { shouldExist: ['a'] } },
      'spec.config.kernelArguments: exists from Ignition 3.3.0 on',
    ],
    [
      '3.1.0',
      { storage: { luks: [{ name: 'a', device: '/dev/a' }] } },
      'spec.config.storage.luks: exists from Ignition 3.2.0 on',
    ],
    [
      '3.4.0',
      { storage: { luks: [{ name: 'a', device: '/dev/a', cex: { enabled: true } }] } },
      'spec.config.storage.luks[0].cex: a: exists from Ignition 3.5.0 on',
    ],
    [
      '3.0.0',
      { passwd: { users: [{ name: 'core', shouldExist: true }] } },
      'spec.config.passwd.users[0].shouldExist: core: exists from Ignition 3.2.0 on',
    ],
  ])('%s does not allow newer fields', (version, sections, start) => {
    expect(problems(sections, version)).toEqual([expect.stringContaining(start)]);
  });
});

describe('null, empty lists and empty objects', () => {
  it('mean the same as nothing', () => {
    const everythingEmpty = {
      passwd: {},
      storage: {
        files: [{ path: '/etc/a', user: {}, group: null, contents: { source: 'data:,a', verification: {} } }],
        links: null,
      },
      systemd: { units: [] },
    };
    expect(parse(everythingEmpty)).toEqual(parse(withFile({ contents: { source: 'data:,a' } })));
  });
});

describe('an unknown key', () => {
  it.each([
    [
      { Systemd: { Units: [{ name: 'a.service' }] } },
      'spec.config.Systemd: "Systemd" is not a key of this place and would be ignored; write systemd',
    ],
    [
      { storge: { files: [{ path: '/a' }] } },
      'spec.config.storge: "storge" is not a key of this place and would be ignored; write storage',
    ],
    [
      withFile({ conents: { source: 'data:,' } }),
      'spec.config.storage.files[0].conents: /etc/a: "conents" is not a key of this place and would be ignored; write contents',
    ],
    [withFile({ contents: { sorce: 'data:,' } }), 'write source'],
    [withUnit({ enabeld: true }), 'write enabled'],
    [{ passwd: { users: [{ name: 'core', ssh_authorized_keys: ['k'] }] } }, 'write sshAuthorizedKeys'],
    [
      { passwd: { users: [{ user: 'core', sshAuthorizedKeys: ['k'] }] } },
      '"user" is not a key of this place and would be ignored; write name',
    ],
    [
      { osImageURL: 'registry.example.com/os:1' },
      'spec.config.osImageURL: "osImageURL" is not a key of this place and would be ignored; it belongs in spec, beside config',
    ],
    [withFile({ contents: { inline: 'text' } }), 'a key of Butane; write source: data:,…'],
    [{ networkd: { units: [{ name: 'a.network' }] } }, 'a section of spec 2'],
    [withFile({ filesystem: 'data' }), 'a key of spec 2'],
  ])('that asks for something is refused: %j', (sections, message) => {
    expect(problems(sections)).toEqual([expect.stringContaining(message)]);
  });

  it.each([
    [{ networkd: {} }, 'spec.config.networkd: is not a key of this place and does nothing'],
    [{ osImageURL: '' }, 'spec.config.osImageURL: is not a key of this place and does nothing'],
    [
      withFile({ filesystem: 'root' }),
      'spec.config.storage.files[0].filesystem: /etc/a: is not a key of this place and does nothing',
    ],
  ])('that asks for nothing is a warning: %j', (sections, message) => {
    expect(parse(sections).config).toBeDefined();
    expect(warnings(sections)).toEqual([expect.stringContaining(message)]);
  });
});

describe('the mode of a file', () => {
  it.each([0, 0o600, 0o644, 0o755, 0o777, 511])('%i is accepted', (mode) => {
    expect(parse(withFile({ mode })).config?.storage?.files?.[0]?.mode).toBe(mode);
    expect(warnings(withFile({ mode }))).toEqual([]);
  });

  it.each([
    ['0644', 'is the string "0644", must be a whole number; write 420 (decimal for octal 0644)'],
    ['0o600', 'write 384 (decimal for octal 0600)'],
    ['420', 'write 420 without quotes'],
    ['644', 'write 420 (decimal for octal 0644)'],
    [644, '644 is 01204, must be at most 0777; it looks like octal 0644 read as a decimal number, write 420'],
    [755, 'write 493'],
    [600, 'write 384'],
    [0o1777, '1023 is 01777, must be at most 0777'],
    [-1, '-1 is negative'],
    [420.5, 'is 420.5, must be a whole number'],
    [true, 'is true, must be a whole number'],
  ])('%j is refused with what to write', (mode, message) => {
    expect(problems(withFile({ mode }))).toEqual([expect.stringContaining(message)]);
  });

  it.each([
    [400, '400 means 0620; if 0400 was meant, write 256'],
    [440, '440 means 0670; if 0440 was meant, write 288'],
    [444, '444 means 0674; if 0444 was meant, write 292'],
    [500, '500 means 0764; if 0500 was meant, write 320'],
  ])('%i passes but is warned about', (mode, message) => {
    expect(warnings(withFile({ mode }))).toEqual([expect.stringContaining(message)]);
  });
});

describe('paths', () => {
  it.each(['etc/a', '/etc/../b', '/etc//a', '/etc/a/', '/etc/./a', '', '/'])('%j is refused', (path) => {
    expect(problems({ storage: { files: [{ path }] } })).toHaveLength(1);
  });

  const storage = (sections: object, units: object[] = []) => ({ storage: sections, systemd: { units } });
  const a = { path: '/a' };
  const below = { path: '/a/b/c' };
  const link = { path: '/a', target: '/x' };
  const unitFile = { path: '/etc/systemd/system/a.service' };
  const unit = { name: 'a.service', contents: '[Unit]\n' };

  it.each([
    [
      'a file below a file',
      storage({ files: [a, below] }),
      '/a/b/c: lies below /a, which is a file in the same config',
    ],
    [
      'a directory below a file',
      storage({ files: [a], directories: [below] }),
      '/a/b/c: lies below /a, which is a file',
    ],
    [
      'a link below a link',
      storage({ links: [link, { ...below, target: '/y' }] }),
      '/a/b/c: lies below /a, which is a link',
    ],
    [
      'a file and a link of one path',
      storage({ files: [a], links: [link] }),
      '/a: is written as a link here and as a file in the same config',
    ],
    ['a file at the path of a unit', storage({ files: [unitFile] }, [unit]), 'written as a unit here and as a file'],
    [
      'a file at the path of a masked unit',
      storage({ files: [unitFile] }, [{ name: 'a.service', mask: true }]),
      'as a unit',
    ],
    [
      'a file at the path of a drop-in',
      storage({ files: [{ path: '/etc/systemd/system/a.service.d/1.conf' }] }, [
        { name: 'a.service', dropins: [{ name: '1.conf', contents: '[Unit]\n' }] },
      ]),
      'as a drop-in',
    ],
    [
      'a file below a unit',
      storage({ files: [{ path: '/etc/systemd/system/a.service/x' }] }, [unit]),
      'which is a unit',
    ],
  ])('%s is refused', (_, sections, message) => {
    expect(problems(sections)).toEqual([expect.stringContaining(message)]);
  });

  it('a file below a directory, and one whose name only begins alike, are fine', () => {
    const sections = storage({ files: [below, { path: '/ab/c' }], directories: [a] });
    expect(problems(sections)).toEqual([]);
  });
});

describe('a file', () => {
  it.each([
    [{ append: [{ source: 'data:,x' }] }, 'append is not supported after first boot'],
    [{ user: { id: 1, name: 'core' } }, 'has both id and name'],
    [{ overwrite: true }, 'write source: "data:," for an empty file'],
    [{ contents: { source: 'https://example.com/x' } }, 'remote content (https:)'],
    [{ contents: { source: 'data:,x', compression: 'xz' } }, 'only gzip, or nothing, is possible'],
    [{ contents: { compression: 'gzip' } }, 'has compression or verification but no source'],
    [{ contents: { source: 'data:,x', verification: { hash: 'md5-1' } } }, 'must be sha512-'],
    [{ contents: { source: 'data:,x', httpHeaders: [{ name: 'A', value: 'b' }] } }, 'remote content'],
    [{ path: '/etc/\ud800' }, 'lone surrogate'],
  ])('with %j is refused', (fields, message) => {
    expect(problems(withFile(fields))).toEqual([expect.stringContaining(message)]);
  });

  it('that is a script with Windows line ends is warned about, and kept as it is', () => {
    const sections = withFile({ contents: { source: 'data:,%23!%2Fbin%2Fbash%0D%0Aecho%0D%0A' } });
    expect(warnings(sections)).toEqual([expect.stringContaining('(#!…) ends with a carriage return')]);
    expect(parse(sections).config?.storage?.files?.[0]?.contents?.source).toContain('%0D');
  });
});

describe('a unit', () => {
  it.each([
    [{ name: 'a.conf' }, 'is no name of a systemd unit'],
    [{ name: 'a/b.service' }, 'is no name of a systemd unit'],
    [{ dropins: [{ name: '10-a.service', contents: '' }] }, 'must end with .conf'],
    [{ dropins: [{ name: '1.conf' }, { name: '1.conf' }] }, 'the drop-in is listed twice'],
    [{ contents: '[Unit\nfoo=bar' }, 'line 1 is a section header without ]'],
    [{ contents: '[Unit] x\n' }, 'line 1 has text after the ]'],
    [{ contents: '[Service]\nExecStart\n' }, 'line 2 is neither Key=value'],
    [{ contents: `[Service]\nExecStart=/bin/${'x'.repeat(2048)}\n` }, 'line 2 is longer than 2048 bytes'],
    [{ enabled: 'true' }, 'is the string "true", must be true or false; write true without quotes'],
  ])('with %j is refused', (fields, message) => {
    expect(problems(withUnit(fields))).toEqual([expect.stringContaining(message)]);
  });

  it('may continue lines, also over comments, and hold blank lines and comments', () => {
    const contents =
      '# c\n[Service]\n; d\nExecStart=/bin/a \\\n# between\n  --flag \\\n  x\n\nA=b\n[Install]\nWantedBy=x\n';
    expect(parse(withUnit({ contents, enabled: true }))).toMatchObject({ problems: [], warnings: [] });
  });

  it.each([
    [{ contents: 'a\n[Unit]\n' }, 'line 1 stands before the first [Section]'],
    [{ contents: '[Unit]\r\nA=b\r\n' }, 'has carriage returns'],
    [{ contents: '[Unit]\nA=b\n', enabled: true }, 'has no [Install] section'],
  ])('with %j is warned about', (fields, message) => {
    expect(warnings(withUnit(fields))).toEqual([expect.stringContaining(message)]);
  });

  it('keeps absent, true and false apart for enabled', () => {
    const enabled = (fields: object) => parse(withUnit(fields)).config?.systemd?.units?.[0];
    expect(enabled({})).toEqual({ name: 'a.service' });
    expect(enabled({ enabled: false })).toEqual({ name: 'a.service', enabled: false });
  });
});

describe('users', () => {
  it('listed twice in one config are united with a warning, keys without doubles', () => {
    const users = [
      { name: 'core', sshAuthorizedKeys: ['k1', 'k1'] },
      { name: 'core', sshAuthorizedKeys: ['k2', 'k1'] },
    ];
    expect(parse({ passwd: { users } }).config?.passwd?.users).toEqual([
      { name: 'core', sshAuthorizedKeys: ['k1', 'k2'] },
    ]);
    expect(warnings({ passwd: { users } })).toHaveLength(2);
  });

  it('never have keys or hashes shown in messages', () => {
    const secret = { passwd: { users: [{ name: 'core', sshAuthorizedKeys: ['k', 67890], passwordHash: 12345 }] } };
    expect(problems(secret).join()).not.toMatch(/67890|12345/);
    expect(problems(secret)).toHaveLength(2);
  });
});

describe('disks', () => {
  it.each([
    [{ disks: [{ device: 'PLACEHOLDER' }] }, 'is not absolute'],
    [{ disks: [{ device: '/dev/a', partitions: [{}, { number: 1 }] }] }, 'has neither number nor label'],
    [{ disks: [{ device: '/dev/a', partitions: [{ number: 1 }, { number: 1 }] }] }, 'is used twice on the disk'],
    [{ filesystems: [{ device: '/dev/a', path: '/var' }] }, 'format: /var: is missing'],
    [{ filesystems: [{ device: '/dev/a', format: 'zfs' }] }, 'is none of ext4'],
    [{ raid: [{ name: 'a', level: 'raid7', devices: ['/dev/a'] }] }, 'is no RAID level'],
    [{ luks: [{ name: 'a' }] }, 'device: a: is missing'],
  ])('%j are refused', (storage, message) => {
    expect(problems({ storage })).toEqual([expect.stringContaining(message)]);
  });
});

describe('spec 2', () => {
  const v2 = (sections: object) => problems(sections, '2.2.0');
  const file = { filesystem: 'root', path: '/etc/a', contents: { source: 'data:,a' } };

  it('is translated: overwrite is true, enable becomes enabled, the filesystem goes', () => {
    const sections = {
      storage: { files: [file] },
      systemd: { units: [{ name: 'a.service', enable: true }] },
      networkd: {},
    };
    expect(parse(sections, '2.0.0').config).toEqual({
      ignition: { version: '3.4.0' },
      storage: { files: [{ path: '/etc/a', contents: { source: 'data:,a' }, overwrite: true }] },
      systemd: { units: [{ name: 'a.service', enabled: true }] },
    });
  });

  it('keeps overwrite false', () => {
    const config = parse({ storage: { files: [{ ...file, overwrite: false }] } }, '2.2.0').config;
    expect(config?.storage?.files?.[0]?.overwrite).toBe(false);
  });

  it('gives a unit that is listed twice the last body and all drop-ins, with a warning', () => {
    const units = [
      { name: 'a.service', contents: '[Unit]\nA=1\n', dropins: [{ name: '1.conf', contents: '[Unit]\n' }] },
      { name: 'a.service', contents: '[Unit]\nA=2\n', dropins: [{ name: '2.conf', contents: '[Unit]\n' }] },
    ];
    const parsed = parse({ systemd: { units } }, '2.2.0');
    expect(parsed.config?.systemd?.units).toEqual([
      {
        name: 'a.service',
        contents: '[Unit]\nA=2\n',
        dropins: [
          { name: '2.conf', contents: '[Unit]\n' },
          { name: '1.conf', contents: '[Unit]\n' },
        ],
      },
    ]);
    expect(parsed.warnings).toHaveLength(1);
  });

  it.each([
    [{ networkd: { units: [{ name: 'a.network' }] } }, 'spec.config.networkd.units: cannot be translated'],
    [{ storage: { disks: [{ device: '/dev/a' }] } }, 'spec.config.storage.disks: cannot be translated'],
    [{ storage: { files: [{ ...file, append: true }] } }, 'append is not supported'],
    [{ storage: { files: [{ ...file, filesystem: 'data' }] } }, 'is not root'],
    [{ passwd: { users: [{ name: 'core', create: { uid: 1 } }] } }, 'write its fields directly'],
    [{ storage: { files: [{ ...file, mode: '0644' }] } }, 'write 420'],
  ])('%j is refused', (sections, message) => {
    expect(v2(sections)).toEqual([expect.stringContaining(message)]);
  });
});

it('a document nested a hundred thousand levels deep is refused, not a crash', () => {
  let deep: unknown = {};
  for (let level = 0; level < 100_000; level += 1) deep = [deep];
  expect(parseIgnition({ ignition: { version: '3.4.0' }, storage: deep }).problems).toMatchObject([
    { message: expect.stringContaining('nested too deep') as string },
  ]);
});
