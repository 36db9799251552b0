import type { ProgramResult, RunProgram } from '../../activities/host/run-program.js';
import { ProgramFailed } from '../../activities/host/run-program.js';

const ok = (stdout = ''): ProgramResult => ({ code: 0, stdout, stderr: '' });
const failed = (stderr: string, code = 1): ProgramResult => ({ code, stdout: '', stderr });

interface Tree {
  readonly checksum: string;
  readonly serial: number;
  readonly reference: string | null;
  readonly kernelArguments: readonly string[];
  readonly packages: readonly string[];
  readonly removals: readonly string[];
}

/**
 * rpm-ostree as far as it is used here. Sources: the fields of `status --json` are those that RedHatInsights/insights-core
 * keeps of a RHEL CoreOS host (parsers/rpm_ostree_status, docs at insights-core.readthedocs.io); `kargs` and its words
 * "Staging deployment... done", "Changes queued for next boot. Run "systemctl reboot" to start a reboot" and what
 * --append and --delete-if-present mean are from docs.redhat.com (Using image mode for RHEL, editing kernel arguments in
 * bootc systems); that each command goes on from the first deployment, that `cleanup --pending` drops it, and that
 * `override remove … --install …` exchanges a kernel, from coreos/rpm-ostree docs/administrator-handbook.md and the
 * reference daemon's command lines. Stand-in: no image is fetched, and checksums are counted.
 */
export class FakeRpmOstree {
  booted: Tree;
  pending: Tree | undefined;
  rollback: Tree | undefined;
  /** Every command that changes something. */
  readonly commands: string[] = [];
  /** Fails a command, by its first word. */
  failing: string | undefined;
  /** The worker dies before or after the command that has this in it, and asks nothing more until it is started again. */
  dies: { at: string; when: 'before' | 'after' } | undefined;
  #isDead = false;
  /** A command that says it did its work and did not, by its first word. */
  ignoring: string | undefined;
  /** Packages that no repository has. */
  unavailable: readonly string[] = [];
  #count = 0;

  constructor(image: string | null, kernelArguments: readonly string[] = ['root=UUID=1', 'rw']) {
    const reference = image === null ? null : `ostree-unverified-registry:${image}`;
    this.booted = { checksum: 'c0', serial: 0, reference, kernelArguments, packages: [], removals: [] };
  }

  get deployments(): Tree[] {
    return [this.pending, this.booted, this.rollback].filter((tree) => tree !== undefined);
  }

  /** The machine goes through a reboot. */
  boot(): void {
    if (this.pending === undefined) return;
    this.rollback = this.booted;
    this.booted = this.pending;
    this.pending = undefined;
  }

  readonly run: RunProgram = (program, args) => {
    if (program !== 'rpm-ostree') return Promise.reject(new Error(`unexpected program ${program}`));
    const [verb = '', ...rest] = args;
    if (verb === 'status') return Promise.resolve(ok(JSON.stringify(this.#status())));
    if (verb === 'kargs' && rest.every((arg) => arg.startsWith('--deploy-index='))) {
      const index = Number(rest[0]?.split('=')[1] ?? 0);
      return Promise.resolve(ok(`${this.deployments[index]?.kernelArguments.join(' ') ?? ''}\n`));
    }
    const command = args.join(' ');
    this.#isDead ||= this.dies?.when === 'before' && command.includes(this.dies.at);
    if (this.#isDead) return Promise.reject(new Error('killed'));
    this.commands.push(command);
    if (this.failing !== undefined && command.startsWith(this.failing)) {
      return Promise.resolve(failed('error: Connection timed out\n'));
    }
    if (verb === this.ignoring) return Promise.resolve(ok('No changes.\n'));
    const result = this.#change(verb, rest);
    this.#isDead ||= command.includes(this.dies?.at ?? '\0');
    return this.#isDead ? Promise.reject(new Error('killed')) : Promise.resolve(result);
  };

  /** The worker is started again. */
  revive(): void {
    this.dies = undefined;
    this.#isDead = false;
  }

  #status() {
    return {
      deployments: this.deployments.map((tree) => ({
        id: `rhcos-${tree.checksum}.${tree.serial}`,
        osname: 'rhcos',
        checksum: tree.checksum,
        serial: tree.serial,
        booted: tree === this.booted,
        staged: tree === this.pending,
        pinned: false,
        ...(tree.reference?.startsWith('ostree-')
          ? { 'container-image-reference': tree.reference }
          : { origin: tree.reference }),
        'requested-packages': tree.packages,
        'requested-base-removals': tree.removals,
        'requested-local-packages': [],
        'base-removals': [],
        timestamp: 1674005544,
      })),
      transaction: null,
      'cached-update': null,
      'update-driver': null,
    };
  }

  #change(verb: string, args: string[]): ProgramResult {
    const base = this.pending ?? this.booted;
    if (verb === 'cleanup') {
      if (args.join(' ') !== '--pending') return failed('error: Unknown option');
      this.pending = undefined;
      return ok('Deployments unchanged.\n');
    }
    const next = { ...base, ...this.#changed(verb, args, base) };
    const missing = next.packages.filter((name) => this.unavailable.includes(name));
    if (missing.length > 0) return failed(`error: Packages not found: ${missing.join(', ')}\n`);
    if (JSON.stringify(next) === JSON.stringify(base)) return ok('No changes.\n');
    const image = next.reference !== base.reference || next.packages !== base.packages;
    this.#count += 1;
    this.pending = image
      ? { ...next, checksum: `c${this.#count}`, serial: 0 }
      : { ...next, serial: base === this.booted ? base.serial + 1 : base.serial };
    return ok('Staging deployment... done\nChanges queued for next boot. Run "systemctl reboot" to start a reboot\n');
  }

  #changed(verb: string, args: string[], base: Tree): Partial<Tree> {
    const valuesOf = (option: string) => args.flatMap((arg, at) => (args[at - 1] === option ? [arg] : []));
    const plain = args.filter((arg, at) => !arg.startsWith('--') && !(args[at - 1] ?? '').match(/^--(un)?install$/));
    switch (verb) {
      case 'kargs':
        return { kernelArguments: kargs(base.kernelArguments, args) };
      case 'rebase': {
        const reference = plain[0] ?? '';
        return { reference };
      }
      case 'install':
        return { packages: [...new Set([...base.packages, ...plain])] };
      case 'uninstall':
        return { packages: base.packages.filter((name) => !plain.includes(name)) };
      case 'override': {
        const [what, ...names] = plain;
        const packages = base.packages.filter((name) => !valuesOf('--uninstall').includes(name));
        return {
          packages: [...packages, ...valuesOf('--install')],
          removals:
            what === 'remove' ? [...base.removals, ...names] : base.removals.filter((name) => !names.includes(name)),
        };
      }
      default:
        throw new Error(`unexpected rpm-ostree ${verb}`);
    }
  }
}

/** First what is deleted, then what is appended, whatever the order of the options. */
function kargs(present: readonly string[], options: readonly string[]): string[] {
  const left = [...present];
  for (const option of options) {
    const [, gone] = /^--delete-if-present=(.*)$/.exec(option) ?? [];
    const at = gone === undefined ? -1 : left.indexOf(gone);
    if (at >= 0) left.splice(at, 1);
  }
  return [...left, ...options.flatMap((option) => /^--append=(.*)$/.exec(option)?.[1] ?? [])];
}

interface BootcTree {
  readonly image: string;
  readonly transport: string;
  readonly checksum: string;
  readonly serial: number;
}

/**
 * bootc as far as it is used here. Sources: `bootc status` as RHEL 9.4 and Fedora print it (org.containers.bootc/v1alpha1;
 * the same fields as its JSON schema in bootc-dev/bootc, docs/src/host-v1.schema.json); "Queued for next boot" of `switch`
 * and that `rollback` drops what is staged and then boots the image before: bootc-dev/bootc#1418 and #946; that nothing of
 * bootc alone unstages: #406; that `ostree admin undeploy 0` does: ostreedev/ostree, tests/kolainst/staged-deploy.sh.
 */
export class FakeBootc {
  booted: BootcTree;
  staged: BootcTree | undefined;
  rollback: BootcTree | undefined;
  rollbackQueued = false;
  incompatible = false;
  readonly commands: string[] = [];
  failing = false;
  #count = 0;

  constructor(image: string) {
    this.booted = { image, transport: 'registry', checksum: 'c0', serial: 0 };
  }

  boot(): void {
    const next = this.staged ?? (this.rollbackQueued ? this.rollback : undefined);
    this.rollbackQueued = false;
    this.staged = undefined;
    if (next === undefined) return;
    this.rollback = this.booted;
    this.booted = next;
  }

  readonly run: RunProgram = (program, args) => {
    const command = [program, ...args].join(' ');
    if (command === 'bootc status --format=json') return Promise.resolve(ok(JSON.stringify(this.#status())));
    this.commands.push(command);
    if (this.failing) return Promise.resolve(failed('ERROR Switching: manifest unknown\n'));
    if (program === 'bootc' && args[0] === 'switch') return Promise.resolve(this.#switch(args));
    if (program === 'bootc' && args[0] === 'rollback') {
      this.staged = undefined;
      this.rollbackQueued = !this.rollbackQueued;
      return Promise.resolve(ok('Next boot: rollback deployment\n'));
    }
    if (command === 'ostree admin undeploy 0') {
      if (this.staged === undefined)
        return Promise.resolve(failed('error: Cannot undeploy currently booted deployment'));
      this.staged = undefined;
      return Promise.resolve(ok());
    }
    return Promise.reject(new Error(`unexpected ${command}`));
  };

  #switch([, ...args]: readonly string[]): ProgramResult {
    const transport = args[args.indexOf('--transport') + 1] ?? 'registry';
    const image = args.at(-1) ?? '';
    const current = this.staged ?? this.booted;
    if (current.image === image && current.transport === transport) return ok('Image specification is unchanged.\n');
    this.staged = { image, transport, checksum: `c${++this.#count}`, serial: 0 };
    return ok(`Queued for next boot: ${image}\n`);
  }

  #status() {
    const entry = (tree: BootcTree | undefined) =>
      tree === undefined
        ? null
        : {
            image: {
              image: { image: tree.image, transport: tree.transport },
              version: '9.20241019.0',
              timestamp: null,
              imageDigest: `sha256:${tree.checksum}`,
            },
            cachedUpdate: null,
            incompatible: this.incompatible,
            pinned: false,
            store: 'ostreeContainer',
            ostree: { checksum: tree.checksum, deploySerial: tree.serial },
          };
    return {
      apiVersion: 'org.containers.bootc/v1',
      kind: 'BootcHost',
      metadata: { name: 'host' },
      spec: { image: { image: this.booted.image, transport: 'registry' }, bootOrder: 'default' },
      status: {
        staged: entry(this.staged),
        booted: entry(this.booted),
        rollback: entry(this.rollback),
        rollbackQueued: this.rollbackQueued,
        type: 'bootcHost',
      },
    };
  }
}

/**
 * grubby of RHEL 8 and later. Source: rhboot/grubby, the script grubby-bls: how entries are told (`index=`, `kernel=`,
 * `args=`), that an argument replaces the one with the same name, and, in early versions, that `--remove-args` takes
 * whatever begins so.
 */
export class FakeGrubby {
  /** The arguments of each kernel, the default one first. */
  kernels: string[][];
  readonly commands: string[] = [];
  /** As early versions do. */
  removesByPrefix = false;
  /** Only so many kernels are changed before it is killed. */
  diesAfter = Number.POSITIVE_INFINITY;

  constructor(...kernels: string[]) {
    this.kernels = kernels.map((line) => line.split(' '));
  }

  readonly run: RunProgram = (program, args) => {
    if (program !== 'grubby')
      return Promise.reject(new ProgramFailed(`${program}: no such program`, { isMissing: true }));
    if (args[0] === '--info=ALL') return Promise.resolve(ok(this.#info(this.kernels)));
    if (args[0] === '--info=DEFAULT') return Promise.resolve(ok(this.#info(this.kernels.slice(0, 1))));
    this.commands.push(args.join(' '));
    const valueOf = (option: string) =>
      (args.find((arg) => arg.startsWith(`${option}=`))?.slice(option.length + 1) ?? '').split(' ').filter(Boolean);
    const gone = valueOf('--remove-args');
    const isGone = (arg: string) => gone.some((one) => (this.removesByPrefix ? arg.startsWith(one) : arg === one));
    this.kernels = this.kernels.map((kernel, index) => {
      if (index >= this.diesAfter) return kernel;
      let left = kernel.filter((arg) => !isGone(arg));
      for (const added of valueOf('--args')) {
        const key = added.split('=')[0];
        left = [...left.filter((arg) => arg.split('=')[0] !== key), added];
      }
      return left;
    });
    return this.diesAfter < this.kernels.length ? Promise.reject(new Error('killed')) : Promise.resolve(ok());
  };

  #info(kernels: readonly string[][]): string {
    return kernels
      .map(
        (args, index) =>
          `index=${index}\nkernel="/boot/vmlinuz-5.14.0-${427 - index}.el9.x86_64"\nargs="${args.join(' ')}"\nroot="/dev/mapper/rhel-root"\ninitrd="/boot/initramfs-5.14.0-${427 - index}.el9.x86_64.img"\ntitle="Red Hat Enterprise Linux"\n`,
      )
      .join('');
  }
}
