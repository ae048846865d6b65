/**
 * Every error that Junction raises, in one table. What is expected (a bad object, an absent rule) is a value instead.
 */
interface ErrorEntry {
  readonly meaning: string;
  /** What an operator does about it; an error may carry a better hint of its own. */
  readonly remedy: string;
}

export const ERRORS = {
  QUESTION_UNANSWERABLE: {
    meaning:
      'A question to explain, services or endpoints names something that is not there, or cannot be read.',
    remedy: 'Read the message: it says which part, and what would be understood.',
  },
  PROGRAM_MISSING: {
    meaning: 'A program that Junction runs is not installed, or not on its PATH.',
    remedy: 'Install the package that the message names.',
  },
  PROGRAM_NOT_STARTED: {
    meaning: 'A program is there, but the kernel would not start it.',
    remedy: 'Check its permissions, and the limits on processes and memory.',
  },
  PROGRAM_TIMED_OUT: {
    meaning: 'A program ran longer than it may, and was killed.',
    remedy: 'Look for a process that holds the xtables lock, or for an overloaded machine.',
  },
  PROGRAM_KILLED: {
    meaning: 'A program was ended by a signal before it answered.',
    remedy: 'Junction tries again. Look in the kernel log for the OOM killer.',
  },
  IPTABLES_VERSION_UNKNOWN: {
    meaning: 'iptables did not say which version it is.',
    remedy: 'Run `iptables --version`; reinstall the package iptables if that fails too.',
  },
  IPTABLES_FAILED: {
    meaning: 'An iptables command failed for a reason other than the lock or an absent object.',
    remedy: 'Read its output in the detail. Junction must run as root in the network namespace of the node.',
  },
  IPTABLES_RESTORE_FAILED: {
    meaning:
      'iptables-restore refused its input, or the kernel did. The table that it was about is as it was before.',
    remedy: 'The detail shows the refused line; report it with the versions of iptables and the kernel.',
  },
  XTABLES_LOCK_HELD: {
    meaning: 'Another program held the xtables lock for longer than Junction waits.',
    remedy: 'Junction tries again. If it keeps happening, stop or repair the program that holds the lock.',
  },
  XTABLES_LOCK_UNUSABLE: {
    meaning: 'The xtables lock could not be opened at all.',
    remedy: 'Mount /run/xtables.lock into the container, as a file (hostPath type FileOrCreate).',
  },
  ALREADY_RUNNING: {
    meaning: "Another Junction serves this network namespace. Two would undo each other's work.",
    remedy: 'Stop the one that the message names, or this one.',
  },
  UNIX_SOCKET_FAILED: {
    meaning: 'A unix socket, by which Junctions find each other, could not be used.',
    remedy: 'Check the limits on open files, and what seccomp or SELinux deny.',
  },
  PREFLIGHT_FAILED: {
    meaning: 'The machine lacks something that the proxy mode cannot do without. Nothing was written.',
    remedy: 'The detail names each missing thing and what brings it; `junction check` shows all of them.',
  },
  NOT_PERMITTED: {
    meaning:
      'The process may not change the network: it lacks the capability NET_ADMIN. Nothing was changed.',
    remedy:
      'Run as root; in a container, privileged or with the capability NET_ADMIN (securityContext.capabilities.add).',
  },
  STILL_RUNNING: {
    meaning:
      'A clean-up of one mode was asked for while a service proxy runs in that mode. Nothing was removed.',
    remedy: 'Stop that proxy first.',
  },
  NO_OTHER_PROXY: {
    meaning:
      'A clean-up was to wait until another service proxy has taken over this node, and none did in time. Nothing was removed.',
    remedy:
      'Start kube-proxy on this node, then again; the message says what is missing. Without --wait-for-proxy it is removed at once.',
  },
  CONFIG_INCONSISTENT: {
    meaning: 'The configuration contradicts the machine: addresses of a family that it does not serve.',
    remedy: 'Give CIDRs of the families that the node has.',
  },
  SYSCTL_MISSING: {
    meaning: 'The kernel has no such setting under /proc/sys.',
    remedy: 'Load the kernel module that brings it.',
  },
  SYSCTL_DENIED: {
    meaning: 'A setting under /proc/sys may not be read or written.',
    remedy:
      "Run privileged, with /proc/sys mounted read-write; or mount the node's /proc/sys/net, writable, as DIR/net and say --sysctl-root=DIR.",
  },
  SYSCTL_REFUSED: {
    meaning: 'The kernel refused a value for a setting under /proc/sys.',
    remedy: 'Check the value against the documentation of the setting.',
  },
  NATIVE_UNAVAILABLE: {
    meaning: 'The library for calling libc (koffi) has no build for this machine.',
    remedy: 'Install Junction on Linux for x64 or arm64, with its optional packages.',
  },
  NETLINK_FAILED: {
    meaning: 'A netlink socket could not be opened, written or read.',
    remedy: 'Junction must run as root; the kernel must have the netlink family that the message names.',
  },
  NETLINK_TIMED_OUT: {
    meaning: 'The kernel did not answer a netlink request in time.',
    remedy: 'Look for an overloaded machine; Junction tries again.',
  },
  NETLINK_MALFORMED: {
    meaning: 'A netlink message does not have the shape that its header claims.',
    remedy: 'Report it with the version of the kernel.',
  },
  IPVS_UNAVAILABLE: {
    meaning: 'The kernel lacks something that the IPVS mode cannot do without.',
    remedy: 'Run `junction check --proxy-mode ipvs`, which names every missing part; or use another mode.',
  },
  IPSET_TAKEN: {
    meaning: 'A set has the name of one of ours and is of another type.',
    remedy: 'Destroy it, once nobody uses it.',
  },
  DEVICE_TAKEN: {
    meaning: 'There is a link named kube-ipvs0 that is no dummy device.',
    remedy: 'Delete or rename it.',
  },
  IPVS_CHANGED: {
    meaning: 'Another program changed sets or virtual servers while Junction wrote them.',
    remedy:
      'Junction tries again. If it keeps happening, find the other program: a second proxy on this node?',
  },
  IPVS_REFUSED: {
    meaning: 'The kernel refused a set, a virtual server, an endpoint or an address.',
    remedy: 'Run `junction check --proxy-mode ipvs`, which names what the kernel lacks.',
  },
  NFTABLES_REFUSED: {
    meaning: 'The kernel refused a part of the nftables table. Everything else is in force.',
    remedy: 'Run `junction check --proxy-mode nftables`, which names what the kernel lacks.',
  },
  NFTABLES_CHANGED: {
    meaning:
      'Another program deleted the nftables table, or a part of it, while it was being written, several times in a row.',
    remedy: 'Junction keeps retrying. `junction_foreign_changes_total` names the program that does it.',
  },
  NFTABLES_OWNED: {
    meaning:
      'Another process owns a table with one of our names: the kernel lets nobody else change it. Nothing was changed.',
    remedy: 'Stop the process that the message names; Junction keeps retrying.',
  },
  LOCAL_API_UNREACHABLE: {
    meaning: 'No running Junction answers at the unix socket that questions go to.',
    remedy:
      'Start it, name its socket with --api-socket, or name another source: --manifests, --kubeconfig or --bundle.',
  },
  LOCAL_API_REFUSED: {
    meaning: 'The running Junction could not answer a question.',
    remedy: 'Ask again; if it keeps happening, read its log.',
  },
  LOCAL_API_MALFORMED: {
    meaning: 'What answers at the unix socket does not speak the protocol of Junction.',
    remedy: 'Check --api-socket; the command and the proxy should be of one version.',
  },
  PAGE_NOT_SERVED: {
    meaning: 'The page cannot be served at the address that was named: another program has it, most likely.',
    remedy:
      'Name another with --ui-bind-address, or none for a free port; `ss -ltnp` shows which program has it.',
  },
  MANIFESTS_UNREADABLE: {
    meaning: 'A file or directory of manifests is not there, or may not be read.',
    remedy: 'Check --manifests. Once Junction runs, what it names may be deleted and added.',
  },
  BUNDLE_UNREADABLE: {
    meaning: 'A file is not a bundle of Junction, is cut short, or is larger than a bundle may be.',
    remedy: 'Make it again, with `junction bundle` on the node that it is about, and send it as it is.',
  },
  EXEC_FAILED: {
    meaning: 'A command could not be run in a pod, or its end is not known.',
    remedy:
      'Check that the pod runs: `kubectl --namespace kube-system get pods --output wide`. Then try again.',
  },
  KUBECONFIG_INVALID: {
    meaning:
      'The kubeconfig, or what stands in for it inside a cluster, does not say how to reach the API server.',
    remedy:
      'Correct the field that the message names; `kubectl --kubeconfig FILE get nodes` must work with it.',
  },
  CREDENTIALS_UNAVAILABLE: {
    meaning: 'A token, certificate or key could not be read, or a credential plugin gave none.',
    remedy: 'Check that the file exists and is readable, or run the plugin by hand.',
  },
  API_UNREACHABLE: {
    meaning: 'The API server, or the proxy before it, could not be reached, or stopped answering.',
    remedy: 'Junction tries again. Check the address, the network and whether the API server runs.',
  },
  API_UNTRUSTED: {
    meaning: 'The API server showed a certificate that Junction has no reason to trust.',
    remedy: 'Check certificate-authority and tls-server-name in the kubeconfig, and the clocks.',
  },
  API_REFUSED: {
    meaning: 'The API server answered with an error.',
    remedy: 'Junction tries again. Check its rights: the ClusterRole system:node-proxier has all it needs.',
  },
  API_MALFORMED: {
    meaning: 'An answer of the API server was cut off, or is not what the protocol allows.',
    remedy: 'Junction tries again. If it keeps happening, look for a proxy that changes or cuts answers.',
  },
} as const satisfies Readonly<Record<string, ErrorEntry>>;

export type ErrorCode = keyof typeof ERRORS;

export interface ErrorOptions {
  readonly hint?: string | undefined;
  readonly cause?: unknown;
  /** Long text: a program's output, the input around a refused line. */
  readonly detail?: string | undefined;
  /** Which line of the input was refused, from 1. */
  readonly line?: number | undefined;
}

export class JunctionError extends Error {
  override readonly name = 'JunctionError';
  readonly code: ErrorCode;
  readonly hint: string;
  readonly detail: string | undefined;
  readonly line: number | undefined;

  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.hint = options.hint ?? ERRORS[code].remedy;
    this.detail = options.detail;
    this.line = options.line;
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** `ENOENT`: what Node adds to the errors of system calls. */
export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined;
}

export function isJunctionError(error: unknown, code?: ErrorCode): error is JunctionError {
  return error instanceof JunctionError && (code === undefined || error.code === code);
}

/** `undefined`: it failed, and why does not matter. A file may not be there; processes start and end while we look. */
export function attempt<T>(act: () => T): T | undefined {
  try {
    return act();
  } catch {
    return undefined;
  }
}
