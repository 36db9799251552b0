import { readdir, readFile, realpath } from 'node:fs/promises';
import { basename, dirname, join, posix } from 'node:path';
import { parse } from 'yaml';
import { isErrno, readIfThere } from './durable.js';
import { ProgramFailed, type RunProgram } from './run-program.js';
import { propertiesIn } from './systemctl.js';

/** What the kubelets of the usual distributions depend on, whether or not one runs at present. */
const WELL_KNOWN = [
  '/var/lib/kubelet/pki',
  '/var/lib/kubelet/kubeconfig',
  '/etc/kubernetes/kubeconfig',
  '/etc/kubernetes/kubelet.conf',
  '/etc/kubernetes/bootstrap-kubelet.conf',
  '/var/lib/rancher/k3s/agent/kubelet.kubeconfig',
  '/var/lib/rancher/k3s/agent/client-kubelet.crt',
  '/var/lib/rancher/k3s/agent/client-kubelet.key',
  '/var/lib/rancher/rke2/agent/kubelet.kubeconfig',
  '/var/lib/rancher/rke2/agent/client-kubelet.crt',
  '/var/lib/rancher/rke2/agent/client-kubelet.key',
];

const KUBELET_UNIT = 'kubelet.service';
/** `--flag=/path` and `--flag /path`, quoted or not. */
const FLAG = /--(kubeconfig|bootstrap-kubeconfig|cert-dir)(?:=|\s+)["']?(\/[^\s"';]+)/g;
const REFERENCES = ['certificate-authority', 'client-certificate', 'client-key', 'tokenFile'];

/** What a kubelet is told about its identity, by its command line or its unit. */
export interface KubeletIdentity {
  readonly kubeconfigs: readonly string[];
  readonly bootstrapKubeconfigs: readonly string[];
  readonly certificateFolders: readonly string[];
}

interface Dependencies {
  readonly root: string;
  readonly run: RunProgram;
}

/** What the kubelet that runs says, and what its unit says: the next start may differ from the present one. */
export async function kubeletIdentity(dependencies: Dependencies): Promise<KubeletIdentity> {
  const texts = [...(await commandLines(dependencies.root)), ...(await unitTexts(dependencies))];
  const found = texts.flatMap((text) => [...text.matchAll(FLAG)].map(([, flag = '', path = '']) => ({ flag, path })));
  const of = (flag: string) => [...new Set(found.filter((one) => one.flag === flag).map(({ path }) => path))];
  return {
    kubeconfigs: of('kubeconfig'),
    bootstrapKubeconfigs: of('bootstrap-kubeconfig'),
    certificateFolders: of('cert-dir'),
  };
}

/**
 * The files and folders (with all below) that the kubelet of this host proves itself with, and those that `kubeconfigs`
 * name; as they are written and, where links are among their parents, as they really are. Sorted.
 */
export async function identityPaths(
  kubeconfigs: readonly string[],
  dependencies: Dependencies,
): Promise<readonly string[]> {
  const { root } = dependencies;
  const kubelet = await kubeletIdentity(dependencies);
  const files = [...WELL_KNOWN, ...kubelet.kubeconfigs, ...kubelet.bootstrapKubeconfigs, ...kubeconfigs];
  const named = (await Promise.all(files.map((file) => referencesIn(root, file)))).flat();
  const paths = [...files, ...named, ...kubelet.certificateFolders].map((path) => posix.normalize(path));
  const real = await Promise.all(paths.map((path) => realPath(root, path)));
  return [...new Set([...paths, ...real])].sort();
}

/** The arguments of every process that is a kubelet, as one text each. */
async function commandLines(root: string): Promise<string[]> {
  const lines: string[] = [];
  for (const name of await readdir(join(root, 'proc')).catch(() => [])) {
    if (!/^\d+$/.test(name)) continue;
    const text = await readProcess(join(root, 'proc', name, 'cmdline'));
    const [program = '', ...args] = text.split('\0');
    if (basename(program) === 'kubelet' || (basename(program) === 'hyperkube' && args[0] === 'kubelet')) {
      lines.push(args.join(' '));
    }
  }
  return lines;
}

/** Processes end while we look at them. */
async function readProcess(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ESRCH', 'EACCES', 'ENOTDIR')) return '';
    throw error;
  }
}

/** The command and the environment of the kubelet's unit, with the files that the environment comes from. */
async function unitTexts({ root, run }: Dependencies): Promise<string[]> {
  const properties = 'ExecStart,Environment,EnvironmentFiles';
  try {
    const shown = await run('systemctl', ['--no-pager', 'show', `--property=${properties}`, '--', KUBELET_UNIT]);
    if (shown.code !== 0) return [];
    const files = [...shown.stdout.matchAll(/^EnvironmentFiles=(.*) \(ignore_errors=/gm)].map(([, file = '']) => file);
    const texts = await Promise.all(files.map((file) => readIfThere(join(root, file))));
    const { ExecStart, Environment } = Object.fromEntries(propertiesIn(shown.stdout));
    return [ExecStart, Environment, ...texts].filter((text) => text !== undefined);
  } catch (error) {
    if (error instanceof ProgramFailed) return [];
    throw error;
  }
}

/** The files that a kubeconfig names; none where it cannot be read. */
async function referencesIn(root: string, kubeconfig: string): Promise<string[]> {
  try {
    const text = await readIfThere(join(root, kubeconfig));
    const config = parse(text ?? '') as { clusters?: unknown[]; users?: unknown[] } | null;
    const entries = [...(config?.clusters ?? []), ...(config?.users ?? [])] as Record<string, unknown>[];
    return entries
      .flatMap((entry) => [entry.cluster, entry.user])
      .flatMap((part) => REFERENCES.map((key) => (part as Record<string, unknown> | undefined)?.[key]))
      .filter((value) => typeof value === 'string' && value !== '')
      .map((value) => posix.resolve(dirname(kubeconfig), String(value)));
  } catch {
    // Not a kubeconfig, or a folder: there is nothing more to protect than the path itself.
    return [];
  }
}

/** The path with the links among its parents followed. */
async function realPath(root: string, path: string): Promise<string> {
  try {
    const folder = await realpath(join(root, dirname(path)));
    const base = root === '/' ? '' : root;
    return folder.startsWith(`${base}/`) ? `${folder.slice(base.length)}/${basename(path)}` : path;
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR', 'ELOOP')) return path;
    throw error;
  }
}
