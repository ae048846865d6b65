/** Whether this process can make the lab's namespaces, and if not, exactly what stands in the way. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants, readFileSync } from 'node:fs';
import { type DenialFacts, explainDenial } from './denial.ts';
import { TOOL_PATH, toolEnvironment } from './tools.ts';

export type LabAccess =
  /** This process can, as it is. */
  | { readonly kind: 'direct' }
  /** It can once it runs in a user namespace of its own: see `reexecInUserNamespace`. */
  | { readonly kind: 'user-namespace' }
  | { readonly kind: 'none'; readonly missing: readonly string[] };

export type ReexecNetwork =
  /** A network of its own with nothing but loopback. */
  | 'new'
  /** The machine's network, so that a page served on localhost can be opened; the lab's hosts have their own anyway. */
  | 'machine';

/** Does, in a namespace that is gone at once, what the lab will do. */
const PROBE = [
  'ip link add junction0 type bridge',
  'ip link add junction1 type veth peer name junction2',
  'echo 1 > /proc/sys/net/ipv4/ip_forward',
].join(' && ');

const TOOLS = ['unshare', 'nsenter', 'setpriv', 'ip'] as const;

const SWITCHES = [
  'kernel/unprivileged_userns_clone',
  'kernel/apparmor_restrict_unprivileged_userns',
  'user/max_user_namespaces',
  'user/max_net_namespaces',
] as const;

export function labAccess(): LabAccess {
  const missingTools = TOOLS.filter((tool) => !isInstalled(tool));
  if (missingTools.length > 0) return { kind: 'none', missing: explainDenial(facts({ missingTools })) };
  const direct = probe(['--net']);
  if (direct === undefined) return { kind: 'direct' };
  const isRoot = process.geteuid?.() === 0;
  const mapped = probe(['--user', '--map-root-user', '--net', '--mount']);
  if (mapped === undefined) return { kind: 'user-namespace' };
  return { kind: 'none', missing: explainDenial(facts({ isRoot, complaint: isRoot ? direct : mapped })) };
}

/** `undefined` when the lab can start in this process, else a sentence for people. */
export function whyNoLab(access: LabAccess = labAccess()): string | undefined {
  if (access.kind === 'direct') return undefined;
  if (access.kind === 'none') return `Network namespaces cannot be made here. ${access.missing.join(' ')}`;
  return (
    'Network namespaces need root or a user namespace. This kernel allows user namespaces: start the command as ' +
    'unshare --user --map-root-user --net --mount -- sh -c \'mount -t tmpfs tmpfs /run && exec "$@"\' sh COMMAND'
  );
}

/**
 * Runs a command as root of a new user namespace and answers with its exit code. It gets an empty /run because
 * iptables-legacy takes its lock there. Signals that ask this process to end are passed on.
 */
export async function reexecInUserNamespace(
  argv: readonly string[],
  options: { readonly network?: ReexecNetwork } = {},
): Promise<number> {
  const network = options.network ?? 'new';
  const setUp = [
    'mount -t tmpfs tmpfs /run',
    ...(network === 'new' ? ['ip link set lo up'] : []),
    'exec "$@"',
  ];
  const namespaces = ['--user', '--map-root-user', '--mount', ...(network === 'new' ? ['--net'] : [])];
  const child = spawn('unshare', [...namespaces, '--', 'sh', '-c', setUp.join(' && '), 'sh', ...argv], {
    stdio: 'inherit',
    env: { ...process.env, PATH: TOOL_PATH },
  });
  const pass = (signal: NodeJS.Signals): void => void child.kill(signal);
  const signals: readonly NodeJS.Signals[] = ['SIGTERM', 'SIGINT', 'SIGHUP'];
  for (const signal of signals) process.on(signal, pass);
  try {
    const [code] = (await once(child, 'exit')) as [number | null];
    return code ?? 1;
  } finally {
    for (const signal of signals) process.off(signal, pass);
  }
}

function probe(namespaces: readonly string[]): string | undefined {
  const { status, stderr, error } = spawnSync('unshare', [...namespaces, '--', 'sh', '-c', PROBE], {
    encoding: 'utf8',
    env: toolEnvironment(),
    timeout: 5000,
  });
  if (status === 0) return undefined;
  return error?.message ?? stderr.trim();
}

function isInstalled(tool: string): boolean {
  return TOOL_PATH.split(':').some((folder) => {
    try {
      accessSync(`${folder}/${tool}`, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

function facts(known: Partial<DenialFacts>): DenialFacts {
  const switches = Object.fromEntries(SWITCHES.map((path) => [path, readSwitch(path)]));
  return { isRoot: false, missingTools: [], complaint: '', switches, ...known };
}

function readSwitch(path: string): string | undefined {
  try {
    return readFileSync(`/proc/sys/${path}`, 'utf8').trim();
  } catch {
    return undefined;
  }
}
