import { certificateFiles } from '../../machine-config/certificates/files.js';
import { syncCertificateFiles, type CertificateChanges } from '../host/certificate-files.js';
import { HostBusyError, withHostLock } from '../host/lock.js';
import { CURRENT_CONFIG_FILE, JOURNAL_FILE } from '../host/state-store.js';
import { PathWatch } from '../host/watch-paths.js';
import { Bell } from './bell.js';
import { CertificateSources, GRACE_MS } from './certificate-sources.js';
import type { NodeDependencies } from './dependencies.js';
import { isInWork } from './drift-look.js';
import { managedPaths } from './drift-paths.js';

/** In milliseconds. */
export interface CertificatePace {
  /** Changes are let come to rest for so long: a file that is written is told of several times. */
  readonly quiet: number;
  /** So soon a file that others changed is written again, at first; */
  readonly firstRest: number;
  /** so seldom where they go on doing so. */
  readonly longestRest: number;
  /** An update is open, or a file could not be written: then ever more seldom, */
  readonly retry: number;
  /** until so seldom: most of what is in the way tells when it goes. */
  readonly longestRetry: number;
  /** See GRACE_MS. */
  readonly grace: number;
}

const PACE: CertificatePace = {
  quiet: 100,
  firstRest: 1_000,
  longestRest: 60_000,
  retry: 10_000,
  longestRetry: 300_000,
  grace: GRACE_MS,
};
const BUSY_RETRY_MS = 1_000;
const NO_CHANGES: CertificateChanges = { written: [], putBack: [], problems: [] };
/** Somebody who changes a file again within this time is fighting for it. */
const FIGHT_MS = 10 * 60_000;

export interface CertificateLogger {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

export interface CertificateKeeperOptions {
  readonly signal?: AbortSignal | undefined;
  readonly logger: CertificateLogger;
  readonly pace?: Partial<CertificatePace>;
}

export interface CertificateKeeper {
  /** Resolves when nothing of it runs any more. */
  stop(): Promise<void>;
}

/**
 * Keeps the files that ControllerConfig names under `certificates` as their Secrets and ConfigMaps say: at once when
 * those change, also while the pool is paused or Temporal away, without cordon, drain or reboot, but not in the middle
 * of an update. What somebody else makes of such a file is not drift, which a person would have to end: it is written
 * again, and told. What was there before comes back when the entry goes.
 */
export function startCertificateKeeper(deps: NodeDependencies, options: CertificateKeeperOptions): CertificateKeeper {
  const keeper = new Keeper(deps, options);
  const running = keeper.run();
  return {
    stop: () => {
      keeper.stop();
      return running;
    },
  };
}

class Keeper {
  private readonly deps: NodeDependencies;
  private readonly logger: CertificateLogger;
  private readonly pace: CertificatePace;
  private readonly ending = new AbortController();
  private readonly bell = new Bell();
  private readonly sources: CertificateSources;
  private readonly watch: PathWatch;
  /** When to act on what the API said, on what the disk said, and without a word; performance.now(). */
  private newsDueAt = Number.POSITIVE_INFINITY;
  private diskDueAt = Number.POSITIVE_INFINITY;
  private retryDueAt = Number.POSITIVE_INFINITY;
  private rest: number;
  private failures = 0;
  private restoredAt = Number.NEGATIVE_INFINITY;
  private told: ReadonlySet<string> = new Set();

  constructor(deps: NodeDependencies, { signal, logger, pace = {} }: CertificateKeeperOptions) {
    this.deps = deps;
    this.logger = logger;
    this.pace = { ...PACE, ...pace };
    this.rest = this.pace.firstRest;
    const stop = () => this.stop();
    signal?.addEventListener('abort', stop, { once: true });
    if (signal?.aborted) stop();
    this.watch = new PathWatch({
      root: deps.host.root,
      onChange: () => {
        const dueAt = Math.max(performance.now() + this.pace.quiet, this.restoredAt + this.rest);
        this.diskDueAt = Math.min(this.diskDueAt, dueAt);
        this.bell.ring();
      },
      onTrouble: (err) =>
        logger.warn({ err }, 'the kernel refuses to watch files of certificates: what others do to them goes unseen'),
    });
    this.sources = new CertificateSources({
      deps,
      signal: this.ending.signal,
      graceMs: this.pace.grace,
      onChange: () => {
        this.newsDueAt = Math.min(this.newsDueAt, performance.now() + this.pace.quiet);
        this.bell.ring();
      },
    });
  }

  stop(): void {
    this.ending.abort();
    this.bell.ring();
  }

  async run(): Promise<void> {
    for (;;) {
      await this.untilDue();
      if (this.ending.signal.aborted) break;
      this.newsDueAt = this.diskDueAt = this.retryDueAt = Number.POSITIVE_INFINITY;
      try {
        await this.sync();
      } catch (err) {
        if (!(err instanceof HostBusyError)) {
          this.logger.warn(
            { err, node: this.deps.node },
            'the files of certificates were not looked after; trying again',
          );
        }
        this.retryIn(err instanceof HostBusyError ? BUSY_RETRY_MS : this.pace.retry);
      }
    }
    this.watch.close();
  }

  private async untilDue(): Promise<void> {
    const dueAt = () => Math.min(this.newsDueAt, this.diskDueAt, this.retryDueAt);
    while (!this.ending.signal.aborted && dueAt() > performance.now()) {
      const asleepUntil = dueAt();
      await this.bell.sleep(asleepUntil - performance.now(), () => this.ending.signal.aborted || dueAt() < asleepUntil);
    }
  }

  private retryIn(milliseconds: number): void {
    this.retryDueAt = Math.min(this.retryDueAt, performance.now() + milliseconds);
  }

  private async sync(): Promise<void> {
    const certificates = this.sources.certificates();
    if (certificates === undefined) return;
    const kept = (await this.deps.store.certificates()).files;
    const declared = new Set(certificates.map(({ path }) => path));
    const isUsed = declared.size > 0 || Object.keys(kept).length > 0;
    const paths = isUsed ? [JOURNAL_FILE, CURRENT_CONFIG_FILE, ...declared, ...Object.keys(kept)] : [];
    await this.watch.follow({ paths, folders: [] });
    const states = new Set<string>();
    const { files, problems } = certificateFiles(certificates, (object, key) => {
      const found = this.sources.read(object, key);
      states.add(found.state);
      return found;
    });
    // A refusal is told, if it lasts, though nothing changes.
    if (states.has('waiting')) this.retryIn(this.pace.grace);
    const changes = isUsed ? await this.inTurn({ files, declared }) : NO_CHANGES;
    if (changes === undefined) {
      this.retryIn(this.pace.retry);
      return;
    }
    this.tellChanges(changes);
    this.tell([...problems, ...changes.problems]);
    this.failures = changes.problems.length === 0 ? 0 : this.failures + 1;
    if (this.failures === 0) return;
    this.retryIn(Math.min(this.pace.retry * 2 ** (this.failures - 1), this.pace.longestRetry));
  }

  /** As the only one on this host. Undefined: an update is open, whose steps know nothing of what is written here. */
  private inTurn(wanted: Pick<Parameters<typeof syncCertificateFiles>[2], 'files' | 'declared'>) {
    const { host, store } = this.deps;
    return withHostLock(host, 'writing files of certificates', async () => {
      if (await isInWork(this.deps)) return undefined;
      const config = await store.currentConfig();
      const managed = new Set(config === undefined ? [] : await managedPaths(config, this.deps));
      return syncCertificateFiles(host, store, { ...wanted, managed });
    });
  }

  private tellChanges({ written, putBack }: CertificateChanges): void {
    const { node, events } = this.deps;
    for (const { path, source, spoilt } of written) {
      if (spoilt === undefined) {
        this.logger.info({ node, path, source }, 'a file was written from its Secret or ConfigMap');
        continue;
      }
      this.logger.warn({ node, path, source, spoilt }, 'somebody changed a file of certificates; it is written again');
      events?.warning('CertificateRestored', `${path} was not as ${source} says and is written again: ${spoilt}`);
    }
    for (const path of putBack)
      this.logger.info({ node, path }, 'no certificate names a file any more; it is as it was before');
    if (!written.some(({ spoilt }) => spoilt !== undefined)) return;
    const now = performance.now();
    const isFight = now - this.restoredAt < FIGHT_MS;
    this.rest = isFight ? Math.min(this.rest * 2, this.pace.longestRest) : this.pace.firstRest;
    this.restoredAt = now;
  }

  /** Each problem once, until it is over. */
  private tell(problems: readonly string[]): void {
    const { node, events, metrics } = this.deps;
    for (const problem of problems) {
      if (this.told.has(problem)) continue;
      this.logger.warn({ node, problem }, 'a file does not follow its Secret or ConfigMap');
      events?.warning('CertificateProblem', problem);
    }
    if (this.told.size > 0 && problems.length === 0)
      this.logger.info({ node }, 'all files follow their Secrets and ConfigMaps again');
    this.told = new Set(problems);
    metrics?.certificateProblems(problems.length);
  }
}
