import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { labDown, labStatus, labUp } from '../../dev/background-lab.js';
import { waitUntil } from '../../dev/processes/wait-until.js';
import { pidsNaming, readyOf } from '../lab/kubernetes-call.js';
import { describeRealNodes } from '../support/real-node.js';

const run = promisify(execFile);
const ENTER = fileURLToPath(new URL('../../dev/real-nodes/enter-machine.mjs', import.meta.url));
const NAME = 'real';

describeRealNodes('drydock lab up --real-nodes', () => {
  let state: string;
  beforeEach(async () => {
    state = await mkdtemp(join(tmpdir(), 'drydock-state-'));
    vi.stubEnv('XDG_STATE_HOME', state);
  });
  afterEach(async () => {
    await labDown(NAME);
    vi.unstubAllEnvs();
    await rm(state, { recursive: true, force: true });
  });

  test('leaves a real machine in the background, with the packaged node worker as a service, until lab down', async () => {
    const { lab } = await labUp({ name: NAME, realNodes: 1 }, () => undefined);
    const [node] = lab.realNodes;
    expect(node).toMatchObject({ name: 'real-1', address: expect.stringMatching(/^10\.231\./) as string });
    expect(await readyOf(lab.kubernetes?.kubeconfig ?? '', 'real-1')).toBe('True');

    const inMachine = async (...command: string[]) =>
      (await run(process.execPath, [ENTER, lab.directory, 'real-1', ...command])).stdout.trim();
    await waitUntil(async () => (await inMachine('systemctl', 'is-active', 'drydock-node.service')) === 'active', {
      what: 'the node worker to be in service',
      timeoutMs: 60_000,
    });
    const pid = await inMachine('systemctl', 'show', '--property=MainPID', '--value', 'drydock-node.service');
    // Not from the source tree: the machine does not see it.
    expect(await inMachine('readlink', `/proc/${pid}/exe`)).toMatch(/^\/opt\/drydock\/[^/]+\/bin\/node$/);

    expect(await labStatus(NAME)).toMatchObject({ state: 'running', problems: [], lab: { realNodes: [node] } });
    expect(await labDown(NAME)).toBe(true);
    expect(await pidsNaming(lab.directory)).toEqual([]);
    expect(existsSync(lab.directory)).toBe(false);
  });

  test('says in one line why it cannot', async () => {
    await expect(labUp({ name: NAME, realNodes: 1, kubernetes: false }, () => undefined)).rejects.toThrow(
      '--real-nodes 1: real nodes need Temporal and Kubernetes',
    );
    expect(await labStatus(NAME)).toMatchObject({ state: 'stopped' });
  });
});
