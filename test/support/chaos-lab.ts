import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { temporal } from '@temporalio/proto';
import { expect } from 'vitest';
import { bootsOf, FAULTS_FILE, type LabFaults } from '../../activities/host/simulated-host.js';
import type { KubernetesObject } from '../../activities/kubernetes/client.js';
import { createKubernetesClient, type ClosableKubernetesClient } from '../../activities/kubernetes/rest.js';
import { install } from '../../client/install.js';
import { isFullyUpdated, reportPool, type PoolReport } from '../../client/pool-report.js';
import { NodeObserver, type ObservedNode } from '../../dev/demo/observer.js';
import { describeNode, describePools } from '../../dev/demo/view.js';
import { createWorkloads } from '../../dev/demo/workloads.js';
import { startDrydock, type DrydockProcesses } from '../../dev/drydock-processes.js';
import { startLab, type Lab, type LabProcess } from '../../dev/lab.js';
import { waitUntil } from '../../dev/processes/wait-until.js';
import { apiFlavour } from '../../machine-config/api/flavour.js';
import type { MachineConfigPool } from '../../machine-config/api/machine-config-pool.js';
import { CONTROL_TASK_QUEUE, updateNodeId } from '../../workflows/contract/ids.js';
import { renderedConfigs } from './ignition-validate.js';

export const POOL = 'worker';
export const MAX_UNAVAILABLE = 2;
/** The pool's nodes, oldest first; their names say the opposite, so that order by name is no order by age. */
export const NODES = ['worker-4', 'worker-3', 'worker-2', 'worker-1'] as const;
export const [OLDEST, SECOND, , YOUNGEST] = NODES;
/** Step of an apply at which the disk is already written and the change is still open. */
export const LAST_STEP_OF_APPLY = 'closing the change';

const CONFIG = '50-worker-chaos';
const REVISION_FILE = 'etc/drydock-chaos';
/** Above the product's longest patience with a lost attempt (heartbeat and start-to-close: 30 s), several times over. */
const WAIT_MS = 150_000;
const LOG_LINES = 8;
const LOG_LINE_LENGTH = 260;

const flavour = apiFlavour('openshift');

/** One new revision of the pool's config on its way. */
export interface ChaosRollout {
  /** What the nodes shall have on their disks. */
  readonly contents: string;
}

/**
 * One lab for a file of crash tests: a pool of four simulated nodes with workloads, on which each scenario rolls out one
 * more revision of one MachineConfig. What it asserts it sees by itself: in the Nodes and on the machines' disks.
 */
export class ChaosLab {
  readonly lab: Lab;
  readonly processes: DrydockProcesses;
  readonly observer: NodeObserver;
  readonly #client: ClosableKubernetesClient;
  readonly #expectedBoots = new Map<string, number>();
  /** Those that shall be running when a scenario has done its worst. */
  readonly #workers: LabProcess[];
  #revision = 0;
  #unfinished = false;

  private constructor(lab: Lab, client: ClosableKubernetesClient, processes: DrydockProcesses) {
    this.lab = lab;
    this.processes = processes;
    this.#client = client;
    this.observer = new NodeObserver(client, flavour, () => POOL);
    this.#workers = [processes.control, processes.fleet];
  }

  /** Starts everything and waits until every node has joined the pool. */
  static async start(): Promise<ChaosLab> {
    const lab = await startLab();
    const client = createKubernetesClient({ kubeconfigPath: lab.kubernetes.kubeconfigPath });
    try {
      await install({ client, flavour });
      await client.patch(flavour.machineConfigPool, { name: POOL }, { spec: { maxUnavailable: MAX_UNAVAILABLE } });
      await lab.kubernetes.createNodes(
        NODES.map((name, index) => ({
          name,
          labels: { 'node-role.kubernetes.io/worker': '' },
          createdAt: new Date(Date.now() - (NODES.length - index) * 24 * 3600_000),
        })),
      );
      const processes = await startDrydock(lab, { nodes: NODES, awayMs: 2000, tuning: { debounceSeconds: 1 } });
      const chaos = new ChaosLab(lab, client, processes);
      await createWorkloads(client, [{ name: 'web', replicas: 4, minAvailable: 2 }]);
      await chaos.#explained(() => chaos.#waitForPool('every node to join the pool', null));
      return chaos;
    } catch (error) {
      await client.close();
      await lab.stop();
      throw error;
    }
  }

  async stop(): Promise<void> {
    this.observer.stop();
    try {
      await renderedConfigs.addStored(this.#client, flavour);
    } finally {
      await this.#client.close();
      await this.lab.stop();
    }
  }

  /**
   * Gives the pool a new revision, does what the scenario does meanwhile, waits until every node runs it, and checks what
   * must hold however often something crashed: each node rebooted exactly once, never more than maxUnavailable were out
   * of service at once, the two oldest began first.
   */
  async rollOutThrough(scenario: (rollout: ChaosRollout) => Promise<void>): Promise<void> {
    if (this.#unfinished) throw new Error('not begun: the scenario before left its rollout unfinished in this lab');
    this.#unfinished = true;
    await this.#explained(async () => {
      const before = await this.#readPool();
      await this.#checkBoots('since the rollout before');
      this.observer.begin();
      const rollout = await this.#newRevision();
      await scenario(rollout);
      const target = await this.#waitForPool(`every node to run ${JSON.stringify(rollout.contents)}`, before.target);
      await this.#check(rollout, target);
    });
    this.#unfinished = false;
  }

  /** Waits for a condition of a scenario. */
  waitFor(what: string, condition: () => Promise<boolean> | boolean, timeoutMs = WAIT_MS): Promise<boolean> {
    return waitUntil(() => Promise.resolve(condition()), { what, timeoutMs });
  }

  /** Starts one more control worker; resolves when it takes work. */
  async startControl(id: string, watchDelayMs = 0): Promise<LabProcess> {
    const control = await this.processes.startControl(id, watchDelayMs);
    this.#workers.push(control);
    await this.waitFor(`${id} to take work`, async () => {
      control.assertRunning();
      const pollers = await this.#pollersOf(CONTROL_TASK_QUEUE);
      return pollers.some((identity) => identity.startsWith(`${control.pid ?? '?'}@`));
    });
    return control;
  }

  /** Stops the first control worker in good order, and for good. */
  async retireControl(): Promise<void> {
    const { control } = this.processes;
    this.#workers.splice(this.#workers.indexOf(control), 1);
    await control.stop();
  }

  /** What shall go wrong on a machine from now on; none when left out. Seen whole or not at all. */
  async setFaults(node: string, faults: LabFaults = {}): Promise<void> {
    const path = join(this.processes.rootOf(node), FAULTS_FILE);
    await writeFile(`${path}.new`, JSON.stringify(faults));
    await rename(`${path}.new`, path);
  }

  async hasOnDisk(node: string, { contents }: ChaosRollout): Promise<boolean> {
    return (await this.#revisionOnDisk(node)) === contents;
  }

  node(name: string): ObservedNode {
    const node = this.observer.nodes.get(name);
    if (node === undefined) throw new Error(`no Node ${name} was seen yet`);
    return node;
  }

  /** Nodes of the pool that were touched since the rollout began, by the observer. */
  started(): string[] {
    return NODES.filter((name) => this.node(name).startedAt !== null);
  }

  /** Which attempt of its present step the update of a node is at; undefined between steps. */
  async attemptOf(node: string): Promise<number | undefined> {
    return this.#withTemporal(async (client) => {
      const { raw } = await client.workflow.getHandle(updateNodeId(node)).describe();
      return raw.pendingActivities?.[0]?.attempt ?? undefined;
    });
  }

  /** Identities of those that polled a queue of Temporal in the last minutes. */
  async #pollersOf(taskQueue: string): Promise<string[]> {
    return this.#withTemporal(async ({ connection, options: { namespace } }) => {
      const { pollers } = await connection.workflowService.describeTaskQueue({
        namespace,
        taskQueue: { name: taskQueue },
        taskQueueType: temporal.api.enums.v1.TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
      });
      return pollers.flatMap(({ identity }) => identity ?? []);
    });
  }

  async #withTemporal<T>(ask: (client: Client) => Promise<T>): Promise<T> {
    const { address, namespace } = this.lab.temporal;
    const connection = await Connection.connect({ address });
    try {
      return await ask(new Client({ connection, namespace }));
    } finally {
      await connection.close();
    }
  }

  async #newRevision(): Promise<ChaosRollout> {
    this.#revision += 1;
    const contents = `revision ${this.#revision}\n`;
    const file = {
      path: `/${REVISION_FILE}`,
      mode: 0o644,
      overwrite: true,
      contents: { source: `data:,${encodeURIComponent(contents)}` },
    };
    const spec = { config: { ignition: { version: '3.4.0' }, storage: { files: [file] } } };
    if (this.#revision === 1) {
      const labels = { [flavour.roleLabel]: POOL };
      await this.#client.create(flavour.machineConfig, {
        metadata: { name: CONFIG, labels },
        spec,
      } as KubernetesObject);
    } else {
      await this.#client.patch(flavour.machineConfig, { name: CONFIG }, { spec });
    }
    return { contents };
  }

  /** @returns the rendered config that the pool is on, another one than `before`. */
  async #waitForPool(what: string, before: string | null): Promise<string> {
    return waitUntil(
      async () => {
        const pool = await this.#readPool();
        const isThere = isFullyUpdated(pool) && pool.target !== before && pool.machineCount === NODES.length;
        const settled = NODES.every((name) => this.node(name).current === pool.target && isInService(this.node(name)));
        return isThere && settled && pool.target !== null && pool.target;
      },
      { what, timeoutMs: WAIT_MS, check: () => this.#workers.forEach((worker) => worker.assertRunning()) },
    );
  }

  async #readPool(): Promise<PoolReport> {
    return reportPool(
      await this.#client.get<KubernetesObject & MachineConfigPool>(flavour.machineConfigPool, { name: POOL }),
    );
  }

  async #check(rollout: ChaosRollout, target: string): Promise<void> {
    for (const name of NODES) {
      this.#expectedBoots.set(name, (this.#expectedBoots.get(name) ?? 0) + 1);
      const { state, current, desired, schedulable, bootIds } = this.node(name);
      expect({ name, state, current, desired, schedulable }).toEqual({
        name,
        state: 'Done',
        current: target,
        desired: target,
        schedulable: true,
      });
      expect(await this.#revisionOnDisk(name), `what ${name} has on its disk`).toBe(rollout.contents);
      expect(bootIds.size, `boots that the Node ${name} has shown, the one before included`).toBe(2);
    }
    await this.#checkBoots('for one config');
    const overlap = this.observer.maxOverlap(POOL);
    expect(overlap, 'most nodes out of service at once').toBeLessThanOrEqual(MAX_UNAVAILABLE);
    expect(overlap, 'most nodes out of service at once').toBeGreaterThan(0);
    const byStart = [...NODES].sort((left, right) => this.#startOf(left).localeCompare(this.#startOf(right)));
    expect(new Set(byStart.slice(0, MAX_UNAVAILABLE)), 'the nodes that began first').toEqual(new Set([OLDEST, SECOND]));
  }

  #startOf(name: string): string {
    return this.node(name).startedAt ?? '';
  }

  /** Counts the boots in the machines' own records. */
  async #checkBoots(why: string): Promise<void> {
    for (const name of NODES) {
      const boots = (await bootsOf(this.processes.rootOf(name))).length;
      const expected = this.#expectedBoots.get(name) ?? boots;
      this.#expectedBoots.set(name, expected);
      expect(boots, `boots of ${name} ${why}`).toBe(expected);
    }
  }

  async #revisionOnDisk(node: string): Promise<string | undefined> {
    try {
      return await readFile(join(this.processes.rootOf(node), REVISION_FILE), 'utf8');
    } catch {
      return undefined;
    }
  }

  /** Adds to the error what a person needs to see why. */
  async #explained<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      const what = error instanceof Error ? error.message : String(error);
      throw new Error(`${what}\n\n${await this.#describe()}`, { cause: error });
    }
  }

  async #describe(): Promise<string> {
    const pool = await this.#readPool().then(
      (report) => `${describePools([report])}\n${report.message}`,
      (error: unknown) => `pool ${POOL}: ${String(error)}`,
    );
    const nodes = [...this.observer.nodes.values()].map(
      (node) => `${describeNode(node)}  ${node.startedAt ?? '-'} to ${node.finishedAt ?? '-'}`,
    );
    const logged = [...this.#workers, { id: 'temporal', logFile: this.lab.temporal.logFile }];
    const logs = await Promise.all(logged.map(async ({ id, logFile }) => `-- ${id}\n${await lastLines(logFile)}`));
    return [pool, ...nodes, ...logs].join('\n');
  }
}

function isInService({ ready, schedulable, state }: ObservedNode): boolean {
  return ready && schedulable && state === 'Done';
}

async function lastLines(file: string): Promise<string> {
  try {
    const lines = (await readFile(file, 'utf8')).trimEnd().split('\n').slice(-LOG_LINES);
    return lines.map((line) => inShort(line).slice(0, LOG_LINE_LENGTH)).join('\n');
  } catch {
    return '(no log)';
  }
}

/** Of a line of JSON what a person looks for; any other line as it is. */
function inShort(line: string): string {
  try {
    const { time, workflowId, node, taskQueue, activityType, msg, err } = JSON.parse(line) as LogLine;
    const parts = [
      time && new Date(time).toISOString(),
      workflowId ?? node ?? taskQueue,
      activityType,
      msg,
      err?.message,
    ];
    return parts.filter(Boolean).join('  ');
  } catch {
    return line;
  }
}

interface LogLine {
  readonly time?: number | string;
  readonly workflowId?: string;
  readonly node?: string;
  readonly taskQueue?: string;
  readonly activityType?: string;
  readonly msg?: string;
  readonly err?: { readonly message?: string };
}
