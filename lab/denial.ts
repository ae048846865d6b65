/** From what was found on the machine to what its owner can do about it. */
export interface DenialFacts {
  readonly isRoot: boolean;
  readonly missingTools: readonly string[];
  /** What the attempt to make namespaces printed. */
  readonly complaint: string;
  /** Kernel switches by their path below /proc/sys; undefined where this kernel has none. */
  readonly switches: Readonly<Record<string, string | undefined>>;
}

const PACKAGES: Readonly<Record<string, string>> = {
  unshare: 'util-linux',
  nsenter: 'util-linux',
  setpriv: 'util-linux',
  ip: 'iproute2',
};

export function explainDenial(facts: DenialFacts): readonly string[] {
  const reasons = [...missingTools(facts), ...closedSwitches(facts), ...kernelGaps(facts)];
  if (reasons.length === 0) reasons.push(facts.isRoot ? UNPRIVILEGED_CONTAINER : UNKNOWN_DENIAL);
  if (facts.complaint !== '') reasons.push(`The attempt said: ${facts.complaint}.`);
  return reasons;
}

const UNPRIVILEGED_CONTAINER =
  'This is root without CAP_SYS_ADMIN and CAP_NET_ADMIN, as in a container: run the container with --privileged.';
const UNKNOWN_DENIAL =
  'No kernel switch forbids it, so a container or a seccomp profile may: run as root, or the container with --privileged.';

function missingTools({ missingTools: tools }: DenialFacts): readonly string[] {
  return tools.map((tool) => `The command ${tool} is missing: apt-get install ${PACKAGES[tool] ?? tool}.`);
}

function closedSwitches({ isRoot, missingTools: tools, switches }: DenialFacts): readonly string[] {
  if (tools.length > 0) return [];
  const reasons: string[] = [];
  if (switches['user/max_net_namespaces'] === '0') {
    reasons.push('The kernel allows no network namespaces: sysctl -w user.max_net_namespaces=1000.');
  }
  if (isRoot) return reasons;
  if (switches['kernel/unprivileged_userns_clone'] === '0') {
    reasons.push(
      'User namespaces are for root only: sysctl -w kernel.unprivileged_userns_clone=1, or run as root.',
    );
  }
  if (switches['user/max_user_namespaces'] === '0') {
    reasons.push(
      'The kernel allows no user namespaces: sysctl -w user.max_user_namespaces=10000, or run as root.',
    );
  }
  if (switches['kernel/apparmor_restrict_unprivileged_userns'] === '1') {
    reasons.push(
      'AppArmor takes the rights out of user namespaces: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or run as root.',
    );
  }
  return reasons;
}

function kernelGaps({ complaint }: DenialFacts): readonly string[] {
  if (/unknown device type|not supported/i.test(complaint)) {
    return ['The kernel lacks bridge or veth devices: modprobe bridge veth, as root.'];
  }
  if (/\/proc\/sys.*(read-only|permission denied)/i.test(complaint)) {
    return ['/proc/sys cannot be written, as in most containers: run the container with --privileged.'];
  }
  return [];
}
