import { access, constants, readFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { LabSettings } from '../settings.js';
import { ensureCached, isCached, type CacheEntry, type Log } from './cache.js';
import { runProgram, tail } from './run-program.js';

/** Programs of the lab's control plane, by absolute path. */
export interface KubernetesTools {
  readonly etcd: string;
  readonly kubeApiServer: string;
  readonly kubeControllerManager: string;
  readonly kubeScheduler: string;
  readonly kubectl: string;
  readonly kwok: string;
}

interface GoModule {
  /** Folder under dev/kubernetes-build with go.mod and go.sum. */
  readonly name: string;
  readonly version: string;
  readonly what: string;
  readonly usually: string;
  readonly linkerFlags: string;
  /** Name of the program -> its package. */
  readonly programs: Readonly<Record<string, string>>;
}

const KUBERNETES_VERSION = '1.34.4';
const [MAJOR = '', MINOR = ''] = KUBERNETES_VERSION.split('.');
const VERSION_PACKAGE = 'k8s.io/component-base/version';

const KUBERNETES: GoModule = {
  name: 'kubernetes',
  version: KUBERNETES_VERSION,
  what: `Kubernetes ${KUBERNETES_VERSION} (API server, controller manager, scheduler, kubectl)`,
  usually: '10 minutes, once',
  // Without these the server reports a version that clients cannot parse.
  linkerFlags: [
    '-s -w',
    `-X ${VERSION_PACKAGE}.gitVersion=v${KUBERNETES_VERSION}`,
    `-X ${VERSION_PACKAGE}.gitMajor=${MAJOR}`,
    `-X ${VERSION_PACKAGE}.gitMinor=${MINOR}`,
  ].join(' '),
  programs: Object.fromEntries(
    ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'kubectl'].map((name) => [
      name,
      `k8s.io/kubernetes/cmd/${name}`,
    ]),
  ),
};

const ETCD: GoModule = {
  name: 'etcd',
  version: '3.7.3',
  what: 'etcd 3.7.3',
  usually: '1 minute, once',
  linkerFlags: '-s -w',
  programs: { etcd: 'go.etcd.io/etcd/server/v3' },
};

const KWOK: GoModule = {
  name: 'kwok',
  version: '0.8.0',
  what: 'kwok 0.8.0 (plays the kubelets)',
  usually: '3 minutes, once',
  linkerFlags: '-s -w',
  programs: { kwok: 'sigs.k8s.io/kwok/cmd/kwok' },
};

const GO_MISSING =
  'Go is missing: the lab builds its Kubernetes API server from source. Install Go 1.26 or newer (https://go.dev/dl), ' +
  'or set DRYDOCK_KUBERNETES_BIN to a folder with etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl ' +
  'and kwok, or use a cluster of your own (kind, minikube): --kubeconfig FILE';

/** The control plane's programs: those of DRYDOCK_KUBERNETES_BIN, or the cache's, built first where they are missing. */
export async function ensureKubernetesTools(settings: LabSettings, log: Log): Promise<KubernetesTools> {
  const given = settings.kubernetesBin;
  const folder = async (module: GoModule) => given ?? (await ensureBuilt(module, settings.cacheDirectory, log));
  const kubernetes = await folder(KUBERNETES);
  const tools = {
    etcd: join(await folder(ETCD), 'etcd'),
    kubeApiServer: join(kubernetes, 'kube-apiserver'),
    kubeControllerManager: join(kubernetes, 'kube-controller-manager'),
    kubeScheduler: join(kubernetes, 'kube-scheduler'),
    kubectl: join(kubernetes, 'kubectl'),
    kwok: join(await folder(KWOK), 'kwok'),
  };
  if (given !== undefined) {
    for (const program of Object.values(tools)) await assertProgram(program, 'DRYDOCK_KUBERNETES_BIN');
  }
  return tools;
}

/** kwok alone, for a cluster of the user's own: given, on PATH, in the cache, or built. */
export async function ensureKwok(settings: LabSettings, log: Log): Promise<string> {
  if (settings.kubernetesBin !== undefined) return join(settings.kubernetesBin, 'kwok');
  const entry = await cacheEntry(KWOK);
  if (!(await isCached(settings.cacheDirectory, entry))) {
    const onPath = await findOnPath('kwok');
    if (onPath !== undefined) return onPath;
  }
  return join(await ensureBuilt(KWOK, settings.cacheDirectory, log), 'kwok');
}

async function ensureBuilt(module: GoModule, cacheDirectory: string, log: Log): Promise<string> {
  return ensureCached(cacheDirectory, await cacheEntry(module), (directory) => build(module, directory), log);
}

async function cacheEntry(module: GoModule): Promise<CacheEntry> {
  const sources = await Promise.all(['go.mod', 'go.sum'].map((file) => readFile(join(folderOf(module), file), 'utf8')));
  const { name, version, usually } = module;
  const recipe = [...sources, module.linkerFlags, ...Object.values(module.programs), process.platform, process.arch];
  return { name, version, usually, recipe, doing: `building ${module.what} from source` };
}

function folderOf(module: GoModule): string {
  return fileURLToPath(new URL(`../kubernetes-build/${module.name}`, import.meta.url));
}

async function build(module: GoModule, directory: string): Promise<void> {
  for (const [program, source] of Object.entries(module.programs)) {
    // One program at a time: together they need twice the memory and are not faster on two cores.
    const args = ['build', '-mod=readonly', '-trimpath', '-ldflags', module.linkerFlags];
    const result = await runProgram('go', [...args, '-o', join(directory, program), source], { cwd: folderOf(module) });
    if (result.outcome === 'missing') throw new Error(GO_MISSING);
    if (result.outcome === 'failed') {
      throw new Error(
        `building ${program} ${module.version} failed (go build in dev/kubernetes-build/${module.name}): ${tail(result.output)}`,
      );
    }
  }
}

export async function assertProgram(path: string, setting: string): Promise<void> {
  await access(path, constants.X_OK).catch((cause: unknown) => {
    throw new Error(`${setting}: ${path} is not a program that can be run`, { cause });
  });
}

export async function findOnPath(name: string): Promise<string | undefined> {
  for (const directory of (process.env['PATH'] ?? '').split(delimiter)) {
    if (directory === '') continue;
    const candidate = join(directory, name);
    const usable = await access(candidate, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (usable) return candidate;
  }
  return undefined;
}
