import type { OsField } from '../../machine-config/change/os-fields.js';
import type { Account } from './accounts.js';
import type { Owner } from './path-state.js';

/** What the node worker needs of systemd. Unit names are full, `chronyd.service`. */
export interface Systemctl {
  /** The answer of `systemctl is-enabled`: enabled, disabled, static, masked, not-found, … */
  enablement(unit: string): Promise<string>;
  /** Makes the links that the unit's [Install] section asks for; idempotent. */
  enable(units: readonly string[]): Promise<void>;
  /** Removes them; idempotent, also when the unit file is gone. */
  disable(units: readonly string[]): Promise<void>;
  /** Makes systemd read its unit files again (daemon-reload); a root folder in which no systemd runs does nothing. */
  reload(): Promise<void>;
  /** It runs, or is about to. A unit that does not exist does not run. */
  isActive(unit: string): Promise<boolean>;
  /** Each waits for the job's result and throws, with systemd's reason, if the unit did not get there. */
  start(unit: string): Promise<void>;
  stop(unit: string): Promise<void>;
  restart(unit: string): Promise<void>;
  /** Asks the unit to read its configuration again. */
  reloadUnit(unit: string): Promise<void>;
  /** Forgets how often a unit failed to start, so that systemd lets it be started once more; where that is counted. */
  resetFailed?(unit: string): Promise<void>;
}

/** What of the operating system itself Drydock manages, as one value. */
export interface OsState {
  /** Drydock's own kernel arguments, in order. */
  readonly kernelArguments: readonly string[];
  /** Empty: the image is not ours to choose. */
  readonly osImageURL: string;
  /** `default`, `realtime` or `64k-pages`. */
  readonly kernelType: string;
  readonly extensions: readonly string[];
}

export type OsBackendName = 'bootc' | 'rpm-ostree' | 'grub' | 'grubby' | 'none' | 'simulated';

/** What the operating system itself can change; found by looking at the host. All changes take effect at the next boot. */
export interface OsBackend {
  readonly name: OsBackendName;
  /** Why this host cannot do what a field asks, in general or as it is `wanted`; undefined: it can. */
  refusal(field: OsField, wanted?: OsState): string | undefined;
  /** Ours, as the next boot will have it. */
  staged(): Promise<OsState>;
  /** Makes the next boot so; idempotent, durable, and whole: interrupted at any point it may be asked for again. */
  stage(wanted: OsState): Promise<void>;
  /** What the running system was booted with: all kernel arguments (ours and others'), and the image, type and extensions. */
  booted(): Promise<OsState>;
  /**
   * Which deployment `/etc` belongs to, where every image has its own; empty where there is only one `/etc`. An older
   * deployment that was booted brings its own, older `/etc` with it.
   */
  deployment(): Promise<string>;
}

/** What a host is, for the Node's annotation and for messages. */
export interface HostFacts {
  /** For example `Debian GNU/Linux 12 (bookworm)`. */
  readonly os: string;
  /** As Go names it: amd64, arm64. */
  readonly arch: string;
}

/** Where the SSH keys of a user go. */
export interface SshKeyPlace {
  /** Absolute within the root. */
  readonly path: string;
  /** Others write into this file as well: ours is a marked block in it, and the rest stays. */
  readonly shared: boolean;
}

/** What systemd says of unit files that are not in place yet. Lines for people, each with the unit's name first. */
export interface UnitFindings {
  readonly errors: readonly string[];
  readonly warnings: readonly string[];
}

/** One machine. All that is done to it goes through here, so that a folder, a container and a real host look alike. */
export interface Host {
  /** The folder that is the machine's `/`. */
  readonly root: string;
  readonly systemctl: Systemctl;
  readonly os: OsBackend;
  readonly facts: HostFacts;
  /** The account of this host that a config's one user (`core` or `boot`) stands for; absent: the one of that name. */
  readonly sshAccount?: string;
  /** Changes with every boot, and with nothing else. */
  bootId(): Promise<string>;
  /** Epoch milliseconds at which this boot began, by the host's clock; absent: not known. */
  bootedAt?(): Promise<number>;
  /**
   * Asks for a reboot, which comes some time after the promise. Asked again in the same boot it is one reboot; `bootId` is
   * the boot to be ended, and nothing happens where that has ended already. Throws RebootInhibited.
   */
  reboot(request: { readonly bootId: string; readonly reason: string }): Promise<void>;
  /** The owner that a file gets on the disk: the same, unless the host is a folder of an unprivileged user. */
  ownerOnDisk(owner: Owner): Owner;
  /** Where sshd of this host looks for the keys of a user. */
  sshKeyPlace(account: Account): Promise<SshKeyPlace>;
  /** Paths that no config may manage because something on this host depends on them, for example the kubelet's kubeconfig. */
  protectedPaths(): Promise<readonly string[]>;
  /**
   * Checks units as they will be: `files` are the planned unit files and drop-ins by path within the root (undefined: will
   * be gone), `others` every other path that the update creates. Nothing is written outside a temporary folder.
   */
  verifyUnits(
    units: readonly string[],
    planned: { readonly files: ReadonlyMap<string, Buffer | undefined>; readonly others: ReadonlySet<string> },
  ): Promise<UnitFindings>;
  /** Gives a file that is about to take the place of `path` the security label that belongs there. */
  label(temporary: string, path: string): Promise<void>;
  /**
   * Called before each step of a change, with words that name it. Real hosts do nothing; simulated ones may fail, freeze
   * or die here.
   */
  beforeStep(step: string): Promise<void>;
}

/** Something on the host asks that it is not shut down now; worth another try. Names who and why. */
export class RebootInhibited extends Error {
  override readonly name = 'RebootInhibited';
}
