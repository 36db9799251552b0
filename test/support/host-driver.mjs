/**
 * Runs in a real machine, on the program of the node worker's package: applies a config to the machine, or puts right
 * what a crash left, without Kubernetes and Temporal. Reads a JSON request from standard input, answers with JSON lines.
 *
 *   {library, do: 'apply', target, dieAt?, failAt?, holdAt?}   numbers of steps, from 0
 *   {library, do: 'recover' | 'forget' | 'check', booted?}     forget: the journal of an applied config is closed
 *
 * sshAccount: the account that the user `core` of a config stands for.
 *
 * At `holdAt` it makes /run/host-driver-holding, and goes on when there is /run/host-driver-go-on.
 */
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';

const request = JSON.parse(await text(process.stdin));
const load = (path) => import(`${request.library}/${path}`);
const { createSystemdHost } = await load('activities/host/systemd-host.js');
const { findOsBackend } = await load('activities/host/os/find-backend.js');
const { openStateStore } = await load('activities/host/state-store.js');
const { runProgram } = await load('activities/host/run-program.js');
const { sshKeyPlaceOf } = await load('activities/host/sshd.js');
const { planUpdate } = await load('activities/host/plan.js');
const { applyPlan } = await load('activities/host/apply.js');
const { recover } = await load('activities/host/undo.js');
const { verifyHost } = await load('activities/host/verify.js');
const { withHostLock } = await load('activities/host/lock.js');

const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
const root = '/';
const store = openStateStore(root);
let steps = 0;

async function beforeStep(step) {
  const index = steps++;
  if (index === request.dieAt) process.kill(process.pid, 'SIGKILL');
  if (index === request.holdAt) {
    await writeFile('/run/host-driver-holding', step);
    while (!existsSync('/run/host-driver-go-on')) await sleep(20);
  }
  if (index === request.failAt) throw new Error('failed on purpose');
}

const host = await createSystemdHost({
  root,
  run: runProgram,
  os: await findOsBackend({ root, run: runProgram, wanted: 'auto' }),
  sshKeyPlace: (account) => sshKeyPlaceOf(account, { root, run: runProgram }),
  beforeStep,
  ...(request.sshAccount === undefined ? {} : { sshAccount: request.sshAccount }),
});

async function apply() {
  await recover(host, store);
  const current = await store.currentConfig();
  const plan = await planUpdate({ host, store, current, target: request.target, sshUser: 'core' });
  steps = 0;
  const journal = await applyPlan({
    host,
    store,
    plan,
    from: current?.metadata.name ?? 'nothing',
    now: new Date().toISOString(),
  });
  say({ applied: journal.target, steps, cost: plan.cost, warnings: plan.warnings });
}

async function forget() {
  await store.removeJournal();
  await store.collectGarbage();
}

async function check() {
  const config = await store.currentConfig();
  say({
    drift:
      config === undefined ? [] : await verifyHost(config, { host, sshUser: 'core', booted: request.booted ?? false }),
  });
}

const work = { apply, forget, check, recover: async () => say({ recovered: await recover(host, store) }) };
try {
  await withHostLock(host, request.do, work[request.do]);
} catch (error) {
  say({ error: error.message, step: steps - 1 });
}
