import { InvalidArgumentError, Option, type Command } from '@commander-js/extra-typings';
import type { LabState, LabStatus } from '../dev/background-lab.js';

const outputOption = () =>
  new Option('--output <format>', 'how to print').choices(['text', 'json'] as const).default('text');
const nameOption = () => new Option('--name <name>', 'which lab, if there are several').default('default');

/**
 * Adds `lab up|down|status` to the command. The lab itself is loaded only when one of them runs: it belongs to
 * development and is not part of an installation.
 */
export function addLabCommand(program: Command): void {
  const lab = program
    .command('lab')
    .description('a Temporal server and a Kubernetes control plane on this machine, for development');

  lab
    .command('up')
    .description('start the lab in the background; exit code 0: it is up')
    .addOption(nameOption())
    .option('--directory <dir>', 'keep data, logs and kubeconfigs here (default: a temporary folder)')
    .option('--kubeconfig <file>', 'use this cluster instead of starting one; the file is only read')
    .option('--no-temporal', 'without Temporal')
    .option('--no-kubernetes', 'without Kubernetes')
    .option('--real-nodes <count>', 'with so many real systemd machines as nodes (Linux, as root)', readCount)
    .addOption(outputOption())
    .action(async ({ output, ...options }) => {
      const { labUp } = await import('../dev/background-lab.js');
      const { lab: state, alreadyUp } = await labUp(options, (line) => console.error(line));
      if (output === 'json') console.log(JSON.stringify({ alreadyUp, ...state }));
      else console.log([`lab ${state.name} ${alreadyUp ? 'was already up' : 'is up'}`, ...places(state)].join('\n'));
    });

  lab
    .command('down')
    .description('stop the lab; exit code 0: nothing of it runs any more')
    .addOption(nameOption())
    .addOption(outputOption())
    .action(async ({ name, output }) => {
      const { labDown } = await import('../dev/background-lab.js');
      const stopped = await labDown(name);
      if (output === 'json') console.log(JSON.stringify({ name, stopped }));
      else console.log(stopped ? `lab ${name} is down` : `lab ${name} was not up`);
    });

  lab
    .command('status')
    .description('addresses, processes and health; exit code 0: up and well, 1: not')
    .addOption(nameOption())
    .addOption(outputOption())
    .action(async ({ name, output }) => {
      const { labStatus } = await import('../dev/background-lab.js');
      const status = await labStatus(name);
      console.log(output === 'json' ? JSON.stringify(status) : describe(status));
      const isWell = status.state === 'running' && status.problems.length === 0;
      process.exitCode = isWell ? 0 : 1;
    });
}

function readCount(text: string): number {
  if (/^\d{1,2}$/.test(text)) return Number(text);
  throw new InvalidArgumentError('is not a number from 0 to 99');
}

function describe({ name, state, lab, processes, problems }: LabStatus): string {
  if (lab === undefined) return `lab ${name} is ${state}`;
  const pids = processes.map((one) => `${one.name} ${one.pid}${one.running ? '' : ' (dead)'}`);
  return [
    `lab ${name} is ${state} since ${lab.startedAt}`,
    ...places(lab),
    `  processes   ${pids.join(', ')}`,
    ...problems.map((problem) => `  PROBLEM     ${problem}`),
  ].join('\n');
}

function places({ temporal, kubernetes, realNodes, directory }: LabState): string[] {
  return [
    ...(temporal === null ? [] : [`  Temporal    ${temporal.address} (namespace ${temporal.namespace})`]),
    ...(temporal?.uiUrl == null ? [] : [`  Temporal UI ${temporal.uiUrl}`]),
    ...(kubernetes === null
      ? []
      : [
          `  Kubernetes  ${kubernetes.server}`,
          `  KUBECONFIG  ${kubernetes.kubeconfig}`,
          `  kubectl     ${kubernetes.kubectl}`,
        ]),
    ...realNodes.map(({ name, address, enter }) => `  real node   ${name} (${address}): ${enter}`),
    `  data, logs  ${directory}`,
  ];
}
