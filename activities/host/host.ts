import type { Owner } from './path-state.js';

/** What the node worker needs of systemd. Unit names are full, `chronyd.service`. */
export interface Systemctl {
  /** The answer of `systemctl is-enabled`: enabled, disabled, static, masked, not-found, … */
  enablement(unit: string): Promise<string>;
  /** Makes the links that the unit's [Install] section asks for; idempotent. */
  enable(units: readonly string[]): Promise<void>;
  /** Removes them; idempotent, also when the unit file is gone. */
  disable(units: readonly string[]): Promise<void>;
  /** Makes systemd read its unit files again; a root folder in which no systemd runs does nothing. */
  reload(): Promise<void>;
}

/** What the operating system itself can change: in this release only kernel arguments, and only on some hosts. */
export interface OsBackend {
  readonly name: string;
  readonly canSetKernelArguments: boolean;
  /** Drydock's own kernel arguments as the next boot will have them, in order. */
  stagedKernelArguments(): Promise<string[]>;
  /** Replaces them; takes effect at the next boot; idempotent and durable. */
  stageKernelArguments(wanted: readonly string[]): Promise<void>;
  /** The arguments of the running kernel, ours and others'. */
  bootedKernelArguments(): Promise<string[]>;
}

/** One machine. All that is done to it goes through here, so that a folder, a container and a real host look alike. */
export interface Host {
  /** The folder that is the machine's `/`. */
  readonly root: string;
  readonly systemctl: Systemctl;
  readonly os: OsBackend;
  /** Changes with every boot, and with nothing else. */
  bootId(): Promise<string>;
  /**
   * Asks for a reboot, which comes some time after the promise. Asked again in the same boot it is one reboot; `bootId` is
   * the boot to be ended, and nothing happens where that has ended already.
   */
  reboot(request: { readonly bootId: string; readonly reason: string }): Promise<void>;
  /** The owner that a file gets on the disk: the same, unless the host is a folder of an unprivileged user. */
  ownerOnDisk(owner: Owner): Owner;
  /**
   * Called before each step of a change, with words that name it. Real hosts do nothing; simulated ones may fail, freeze
   * or die here.
   */
  beforeStep(step: string): Promise<void>;
}
