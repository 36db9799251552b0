import { HostBusyError } from '../host/lock.js';
import { PathWatch } from '../host/watch-paths.js';
import { Bell } from './bell.js';
import type { NodeDependencies } from './dependencies.js';
import { lookAtDisk, type DiskFinding } from './drift-look.js';
import { DriftPaths } from './drift-paths.js';
import { isForceAsked, reportDrift } from './drift-report.js';
import { driftReason } from './drift-verdict.js';

/** In milliseconds. */
export interface DriftPace {
  /** Changes are let come to rest for so long, since most come in twos and threes, */
  readonly quiet: number;
  /** but no longer than this: a storm must not keep drift from being found. */
  readonly longestQuiet: number;
  /** Between two looks, and at least as long as the look before took: half of the time the host is for others. */
  readonly rest: number;
}

const PACE: DriftPace = { quiet: 100, longestQuiet: 300, rest: 200 };
/** Somebody else holds the host; or the Node could not be written, growing. */
const BUSY_RETRY_MS = 1_000;
const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 30_000;
/** Where the kernel does not grant the watches that are needed, looking takes their place. */
const UNWATCHED_SCAN_SECONDS = 30;

export interface DriftLogger {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

export interface DriftMonitorOptions {
  /** How often all is compared although nothing was seen to change; 0: never, but where the kernel grants no watches. */
  readonly scanSeconds: number;
  readonly signal?: AbortSignal | undefined;
  readonly logger: DriftLogger;
  readonly pace?: DriftPace;
}

export interface DriftMonitor {
  /** Looks now, whatever was seen. Resolves after a look that began later than the call, whether or not it succeeded. */
  check(): Promise<void>;
  /** Resolves when nothing of it runs any more. */
  stop(): Promise<void>;
}

/**
 * Finds what differs from the config that the disk is meant to be at, within a second of the change, and has the Node
 * say so, and say so no more when it was put back. It never changes the host. It looks at the start, at every change of
 * something managed, and on a timer; what could not be told is told later.
 */
export function startDriftMonitor(deps: NodeDependencies, options: DriftMonitorOptions): DriftMonitor {
  const monitor = new Monitor(deps, options);
  const running = monitor.run();
  return {
    check: () => monitor.check(),
    stop: () => {
      monitor.stop();
      return running;
    },
  };
}

class Monitor {
  private readonly deps: NodeDependencies;
  private readonly options: DriftMonitorOptions;
  private readonly watch: PathWatch;
  private readonly paths: DriftPaths;
  private readonly bell = new Bell();
  private readonly pace: DriftPace;
  private isStopped = false;
  /** When the first and the last change came that no look has seen. */
  private changed: { readonly first: number; last: number } | undefined;
  private asked: (() => void)[] = [];
  private scanDueAt = 0;
  private retryDueAt = Number.POSITIVE_INFINITY;
  private failures = 0;
  /** What the Node was brought to say last; undefined: not known. */
  private said: string | undefined;
  private told: string | undefined;

  constructor(deps: NodeDependencies, options: DriftMonitorOptions) {
    this.deps = deps;
    this.options = options;
    this.paths = new DriftPaths(deps);
    this.pace = options.pace ?? PACE;
    this.watch = new PathWatch({
      root: deps.host.root,
      onChange: () => {
        const now = performance.now();
        if (this.changed === undefined) this.changed = { first: now, last: now };
        else this.changed.last = now;
        this.bell.ring();
      },
      onTrouble: (err) =>
        options.logger.warn(
          { err, scanSeconds: this.scanSeconds(false) },
          'the kernel refuses to watch what is managed, so drift is found later, by looking; raise fs.inotify.max_user_watches and max_user_instances',
        ),
    });
    options.signal?.addEventListener('abort', () => this.stop(), { once: true });
    if (options.signal?.aborted) this.stop();
  }

  check(): Promise<void> {
    if (this.isStopped) return Promise.resolve();
    return new Promise((resolve) => {
      this.asked.push(resolve);
      this.bell.ring();
    });
  }

  stop(): void {
    this.isStopped = true;
    this.bell.ring();
  }

  async run(): Promise<void> {
    for (;;) {
      await this.untilDue();
      if (this.isStopped) break;
      const began = performance.now();
      const askers = this.asked.splice(0);
      await this.look(askers.length > 0);
      for (const resolve of askers) resolve();
      await this.bell.sleep(Math.max(this.pace.rest, performance.now() - began), () => this.isUrgent());
    }
    this.watch.close();
    for (const resolve of this.asked.splice(0)) resolve();
  }

  private isUrgent(): boolean {
    return this.isStopped || this.asked.length > 0;
  }

  /** Waits for a change that has come to rest, or until it is time to look without one. */
  private async untilDue(): Promise<void> {
    while (!this.isUrgent()) {
      const now = performance.now();
      const quietAt =
        this.changed === undefined
          ? Number.POSITIVE_INFINITY
          : Math.min(this.changed.last + this.pace.quiet, this.changed.first + this.pace.longestQuiet);
      const dueAt = Math.min(quietAt, this.scanDueAt, this.retryDueAt);
      if (dueAt <= now) return;
      const hadChange = this.changed !== undefined;
      await this.bell.sleep(dueAt - now, () => this.isUrgent() || (!hadChange && this.changed !== undefined));
    }
  }

  private async look(isAsked: boolean): Promise<void> {
    const isScan = isAsked || this.scanDueAt <= performance.now() || this.said === undefined;
    this.changed = undefined;
    this.retryDueAt = Number.POSITIVE_INFINITY;
    try {
      await this.watch.follow(await this.paths.of(await this.deps.store.currentConfig(), isScan));
      await this.compare(isScan);
      this.failures = 0;
    } catch (err) {
      this.said = undefined;
      const delay = err instanceof HostBusyError ? BUSY_RETRY_MS : this.failed(err);
      this.retryDueAt = performance.now() + delay;
    }
    if (isScan) this.scanDueAt = performance.now() + this.scanSeconds(this.watch.isComplete) * 1_000;
  }

  /**
   * A look that finds what the Node says already costs the API nothing; a scan also looks at the Node. The metric is true
   * even while the API is away.
   */
  private async compare(isScan: boolean): Promise<void> {
    const { deps } = this;
    const seen = await lookAtDisk(deps);
    this.measure(seen);
    const print = fingerprint(seen, await isForceAsked(deps));
    if (seen.outcome === 'inWork' || (!isScan && print === this.said)) {
      this.said = print;
      return;
    }
    const { finding, isForced, news } = await reportDrift(deps, this.told);
    this.measure(finding);
    this.said = fingerprint(finding, isForced);
    if (finding.outcome === 'inWork') return;
    this.told = finding.outcome === 'drifted' ? driftReason(finding) : undefined;
    const { logger } = this.options;
    if (news === 'drifted') logger.warn({ node: deps.node, reason: this.told }, 'the disk has drifted');
    if (news === 'recovered') logger.info({ node: deps.node }, 'the disk is as its config says again');
  }

  private measure(finding: DiskFinding): void {
    if (finding.outcome === 'inWork') return;
    const { metrics, now } = this.deps;
    metrics?.drift(finding.outcome === 'drifted' ? finding.items : []);
    metrics?.looked(now());
  }

  /** How long to wait after a failure that is not merely somebody else's turn. */
  private failed(err: unknown): number {
    const delayMs = Math.min(FIRST_RETRY_MS * 2 ** this.failures, LONGEST_RETRY_MS);
    this.failures += 1;
    const { node } = this.deps;
    this.options.logger.warn({ err, node, delayMs }, 'the look for drift failed; trying again');
    return delayMs;
  }

  private scanSeconds(isWatched: boolean): number {
    const asked = this.options.scanSeconds === 0 ? Number.POSITIVE_INFINITY : this.options.scanSeconds;
    return isWatched ? asked : Math.min(asked, UNWATCHED_SCAN_SECONDS);
  }
}

const fingerprint = (finding: DiskFinding, isForced: boolean): string => JSON.stringify([finding, isForced]);
