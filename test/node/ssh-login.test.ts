import { beforeAll, expect, test } from 'vitest';
import { startMachines, type Machine } from '../../dev/real-nodes/real-node.js';
import { rendered } from '../support/fake-host.js';
import { MachineUnderTest } from '../support/machine-under-test.js';
import { describeRealNodes, useLab } from '../support/real-node.js';

const SSHD_SETTINGS = '/etc/ssh/sshd_config.d/50-test.conf';
const OURS = '/root/ours';
const FOREIGN = '/root/foreign';

describeRealNodes('logging in to a real machine', () => {
  const lab = useLab({ temporal: false, kubernetes: false });
  let machine: MachineUnderTest;
  let ours: string;
  let foreign: string;

  /** A real login with a real sshd. */
  const logIn = async (user: string, key: string) => {
    const options = ['BatchMode=yes', 'IdentitiesOnly=yes', 'StrictHostKeyChecking=no', 'UserKnownHostsFile=/dev/null'];
    const { code, stdout, stderr } = await machine.machine.exec([
      ...['ssh', '-q', '-i', key, ...options.flatMap((option) => ['-o', option]), `${user}@127.0.0.1`, 'id', '-un'],
    ]);
    return code === 0 ? stdout.trim() : `refused ${stderr}`.trim();
  };
  const configure = async (settings: string) => {
    await machine.write(SSHD_SETTINGS, settings);
    await machine.succeed(['systemctl', 'restart', 'ssh.service']);
  };
  const shell = (script: string) => machine.succeed(['sh', '-ec', script]);
  const keys = (name: string, ...sshAuthorizedKeys: string[]) =>
    rendered(name, { passwd: { users: [{ name: 'core', sshAuthorizedKeys }] } });
  const nothing = (name: string) => rendered(name, {});

  beforeAll(async () => {
    const [started] = await startMachines(lab(), [{ name: 'ssh' }]);
    machine = await MachineUnderTest.prepare(lab(), started as Machine);
    const generate = async (path: string) => {
      await machine.succeed(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-C', 'a key', '-f', path]);
      return (await machine.succeed(['cat', `${path}.pub`])).trim();
    };
    ours = await generate(OURS);
    foreign = await generate(FOREIGN);
    await configure('');
  }, 240_000);

  test('succeeds with a key of the config, fails when the config has it no more, and a key of others goes on', async () => {
    await shell(`install -d -m 700 -o core -g core ~core/.ssh
      printf '%s' '${foreign}' > ~core/.ssh/authorized_keys
      chown core: ~core/.ssh/authorized_keys; chmod 600 ~core/.ssh/authorized_keys`);
    const before = await shell('cat ~core/.ssh/authorized_keys; stat -c "%a %U:%G" ~core/.ssh ~core/.ssh/*');
    expect(await logIn('core', OURS)).toMatch(/^refused/);
    expect(await logIn('core', FOREIGN)).toBe('core');

    await machine.apply(keys('r1', ours));
    expect(await logIn('core', OURS)).toBe('core');
    expect(await logIn('core', FOREIGN)).toBe('core');
    expect(await machine.drift()).toEqual([]);

    await machine.apply(nothing('r2'));
    expect(await logIn('core', OURS)).toMatch(/^refused/);
    expect(await logIn('core', FOREIGN)).toBe('core');
    expect(await shell('cat ~core/.ssh/authorized_keys; stat -c "%a %U:%G" ~core/.ssh ~core/.ssh/*')).toBe(before);
  });

  test('works in folders and a file that sshd would have refused', async () => {
    await shell(`rm -rf ~core/.ssh; install -d -m 777 -o root -g root ~core/.ssh
      printf '%s' '${foreign}' > ~core/.ssh/authorized_keys; chmod 666 ~core/.ssh/authorized_keys`);
    expect(await logIn('core', FOREIGN)).toMatch(/^refused/);
    await machine.apply(keys('r3', ours));
    expect(await shell('stat -c "%a %U:%G" ~core/.ssh')).toBe('700 core:core\n');
    expect(await logIn('core', OURS)).toBe('core');
    expect(await logIn('core', FOREIGN)).toBe('core');
    await machine.apply(nothing('r4'));
    await shell('rm -rf ~core/.ssh');
  });

  test('works with a file of our own where sshd reads one, which goes with its folders', async () => {
    await configure('AuthorizedKeysFile .ssh/authorized_keys .ssh/authorized_keys.d/ignition\n');
    await machine.apply(keys('r5', ours));
    expect(await shell('stat -c "%a %U:%G" ~core/.ssh/authorized_keys.d/ignition')).toBe('600 core:core\n');
    expect((await machine.machine.exec(['test', '-e', '/home/core/.ssh/authorized_keys'])).code).toBe(1);
    expect(await logIn('core', OURS)).toBe('core');
    await machine.apply(nothing('r6'));
    expect(await logIn('core', OURS)).toMatch(/^refused/);
    expect((await machine.machine.exec(['test', '-e', '/home/core/.ssh'])).code).toBe(1);
  });

  test('works where a Match block of sshd puts the keys of the account outside its home', async () => {
    await configure('Match User core\n  AuthorizedKeysFile /etc/ssh/keys/%u-%U\n');
    await machine.apply(keys('r7', ours));
    expect(await logIn('core', OURS)).toBe('core');
    expect(await shell('stat -c "%a %U:%G" /etc/ssh/keys /etc/ssh/keys/*')).toBe('755 root:root\n600 core:core\n');
    await machine.apply(nothing('r8'));
    expect(await logIn('core', OURS)).toMatch(/^refused/);
    await configure('');
  });

  test('works as the account that the user of the config stands for', async () => {
    await machine.apply(keys('r9', ours), { sshAccount: 'admin' });
    expect(await logIn('admin', OURS)).toBe('admin');
    expect(await logIn('core', OURS)).toMatch(/^refused/);
    await machine.apply(nothing('r10'), { sshAccount: 'admin' });
    expect(await logIn('admin', OURS)).toMatch(/^refused/);
  });

  test('is refused in the plan where sshd does not accept keys, is broken, or has nobody of that name', async () => {
    const refusal = async (more: { sshAccount?: string } = {}) =>
      (await machine.drive({ do: 'apply', target: keys('r11', ours), ...more })).answers.at(-1)?.['error'];
    await machine.write(SSHD_SETTINGS, 'PubkeyAuthentication no\n');
    expect(await refusal()).toContain('sshd does not accept keys for core (PubkeyAuthentication no)');
    await machine.write(SSHD_SETTINGS, 'AuthorizedKeysFile none\n');
    expect(await refusal()).toContain('sshd reads no file of keys for core');
    await machine.write(SSHD_SETTINGS, 'NoSuchSetting yes\n');
    expect(await refusal()).toMatch(/sshAuthorizedKeys: sshd does not say where .*NoSuchSetting.* repair sshd_config/);
    await configure('');
    expect(await refusal({ sshAccount: 'ghost' })).toContain('the user ghost, which core stands for, does not exist');
  });

  test('finds the place where sshd was never started in this boot', async () => {
    await shell('systemctl stop ssh.service; rm -rf /run/sshd');
    await machine.apply(keys('r12', ours));
    await machine.apply(nothing('r13'));
    await shell('systemctl start ssh.service');
  });

  test('accepts the password of the config, then the old one again, and loses none that others set meanwhile', async () => {
    const hashOf = async (account: string) => (await shell(`getent shadow ${account} | cut -d: -f2`)).trim();
    const setPassword = (account: string, password: string) =>
      machine.succeed(['chpasswd', '--crypt-method=SHA512'], { input: `${account}:${password}\n` });
    /** As somebody who must be asked for the password. */
    const isRight = async (password: string) =>
      (
        await machine.machine.exec(['runuser', '-u', 'nobody', '--', 'su', 'core', '-c', 'true'], {
          input: `${password}\n`,
        })
      ).code === 0;
    await setPassword('admin', 'from the config');
    const hash = await hashOf('admin');
    await setPassword('core', 'the old one');
    const before = await shell('cat /etc/shadow; stat -c "%a %U:%G" /etc/shadow; ls -A /etc | grep shadow');
    const config = (name: string) => rendered(name, { passwd: { users: [{ name: 'core', passwordHash: hash }] } });

    await machine.apply(config('r14'));
    expect([await isRight('from the config'), await isRight('the old one')]).toEqual([true, false]);
    expect(await machine.drift()).toEqual([]);
    await machine.apply(nothing('r15'));
    expect([await isRight('from the config'), await isRight('the old one')]).toEqual([false, true]);
    expect(await shell('cat /etc/shadow; stat -c "%a %U:%G" /etc/shadow; ls -A /etc | grep shadow')).toBe(before);

    const busy = machine.succeed([
      'sh',
      '-ec',
      // Tools that find the file locked by another give up at once; people then try again, as it says.
      `for i in $(seq 40); do until echo "admin:new $i" | chpasswd --crypt-method=SHA512 2>/dev/null; do :; done; done; getent shadow admin`,
    ]);
    busy.catch(() => undefined);
    for (const [index, target] of [config('r16'), nothing('r17'), config('r18')].entries()) {
      await machine.apply(target);
      expect(await isRight(index === 1 ? 'the old one' : 'from the config')).toBe(true);
    }
    expect((await shell('getent shadow admin')).trim()).toBe((await busy).trim());
    await machine.apply(nothing('r19'));
  });
});
