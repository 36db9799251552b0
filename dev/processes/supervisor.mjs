/**
 * Keeps the processes of one lab: starts them for its parent, tells it when they end, and ends all of them when the
 * parent is gone, however it went (the channel to it closes even after SIGKILL). Plain Node, so that it starts at once
 * and needs no loader. It runs in a session of its own: a Ctrl-C in the terminal reaches the parent, not this process.
 *
 * In:  {type: 'start', id, command, args, cwd, env, log} | {type: 'kill', id, signal}
 * Out: {type: 'started', id, pid} | {type: 'failed', id, message} | {type: 'exited', id, pid, code, signal}
 *
 * argv: the lab's directory, and `remove` where it is temporary.
 */
import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const [directory, afterwards] = process.argv.slice(2);
const running = new Map();
let ending = false;

/** When a process started, in clock ticks since boot: with it a pid names one process for good. Empty where unknown. */
function startTime(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
  } catch {
    return '';
  }
}

/** Written at every change: the next lab ends what is named here if even this process was killed. */
function record() {
  const processes = [...running].map(([id, { pid }]) => ({ id, pid, startTime: startTime(pid) }));
  const supervisor = { pid: process.pid, startTime: startTime(process.pid) };
  try {
    writeFileSync(join(directory, 'processes.json'), JSON.stringify({ supervisor, processes }));
  } catch {
    // The directory was removed under us; the processes are still ended with us.
  }
}

function tell(message) {
  if (process.connected) process.send(message, () => undefined);
}

function signalGroup(pid, signal) {
  try {
    process.kill(-pid, signal);
  } catch {
    // Already gone.
  }
}

function start({ id, command, args, cwd, env, log }) {
  // Nobody would end the one that is forgotten for the other.
  if (running.has(id)) return tell({ type: 'failed', id, message: 'it is running' });
  let output;
  try {
    output = openSync(log, 'a');
  } catch (error) {
    return tell({ type: 'failed', id, message: error.message });
  }
  const child = spawn(command, args, { cwd, env, detached: true, stdio: ['ignore', output, output] });
  closeSync(output);
  child.once('error', (error) => {
    if (child.pid === undefined) tell({ type: 'failed', id, message: error.message });
  });
  if (child.pid === undefined) return;
  running.set(id, child);
  record();
  child.once('exit', (code, signal) => {
    // Whatever the process left behind in its group ends with it.
    signalGroup(child.pid, 'SIGKILL');
    if (running.get(id) === child) running.delete(id);
    record();
    tell({ type: 'exited', id, pid: child.pid, code, signal });
    if (ending && running.size === 0) finish();
  });
  tell({ type: 'started', id, pid: child.pid });
}

function finish() {
  if (afterwards === 'remove') rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
  else rmSync(join(directory, 'processes.json'), { force: true });
  process.exit(0);
}

function end() {
  if (ending) return;
  ending = true;
  if (running.size === 0) finish();
  for (const { pid } of running.values()) signalGroup(pid, 'SIGKILL');
}

process.on('message', (message) => {
  if (message.type === 'start') start(message);
  else if (message.type === 'kill') {
    const child = running.get(message.id);
    if (child) signalGroup(child.pid, message.signal);
  }
});
process.on('disconnect', end);
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, end);
record();
