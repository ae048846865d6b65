/** The commands: which flags each has, and examples. */
import type { Flag } from '../config/setting.ts';
import { FLAGS } from '../config/table.ts';
import { OWN_FLAGS } from './ownFlags.ts';

export type CommandName =
  | 'run'
  | 'explain'
  | 'services'
  | 'endpoints'
  | 'status'
  | 'watch'
  | 'ui'
  | 'plan'
  | 'check'
  | 'cleanup'
  | 'doctor'
  | 'diff'
  | 'bundle'
  | 'version'
  | 'completion';

export interface CommandInfo {
  readonly name: CommandName;
  readonly summary: string;
  readonly ownFlags: readonly Flag[];
  /** Of the flags of `run`, those that have an effect here; unset: all of them. */
  readonly uses?: readonly string[];
  /** What may stand besides flags. */
  readonly arguments?: { readonly usage: string; readonly most: number };
  readonly examples: readonly string[];
}

const { only, probe, family, planOutput, checkOutput, cleanupMode, output, dryRun, force } = OWN_FLAGS;
const { answerOutput, eventOutput, live, bundle, from, to, namespace, problems, watch } = OWN_FLAGS;
const { waitForProxy, timeout, stay, wait, waitFor, resourceVersion } = OWN_FLAGS;
const { bundleOutput, bundleForce, uiBindAddress } = OWN_FLAGS;
const { toManifests, toKubeconfig, toConfig, toProxyMode, toHostname } = OWN_FLAGS;

/** The command line or the configuration is wrong. */
export class UsageError extends Error {
  readonly problems: readonly string[];
  /** Where help is, for a mistake on the command line. */
  readonly see: string | undefined;
  constructor(problems: readonly string[], see?: string) {
    super(problems.join('\n'));
    this.problems = problems;
    this.see = see;
  }
}

/** What a file says that is for the proxy does no harm, so a command takes the proxy's file as it is. */
const ANYWHERE = ['config', 'help', 'version'];

function words(text: string): readonly string[] {
  return text.split(' ');
}

/** From manifests, or from what an API server has. */
const PLANNED_FROM = [
  ...words('manifests kubeconfig master kube-api-qps kube-api-burst'),
  ...words('hostname-override bind-address feature-gates proxy-mode'),
  ...words('cluster-cidr detect-local-mode pod-bridge-interface pod-interface-name-prefix'),
  ...words('nodeport-addresses masquerade-all iptables-localhost-nodeports iptables-layout ipvs-scheduler'),
];
const ASKED = [...ANYWHERE, 'api-socket', ...PLANNED_FROM];

export const COMMANDS: readonly CommandInfo[] = [
  {
    name: 'run',
    summary:
      'Serve: keep the kernel forwarding service addresses, until stopped. The rules then stay in place.',
    ownFlags: [],
    examples: [
      'junction run --kubeconfig /var/lib/kube-proxy/kubeconfig --hostname-override node1 --cluster-cidr 10.244.0.0/16',
      'junction run --config /var/lib/kube-proxy/config.conf',
      'junction run --manifests examples --hostname-override node1 --cluster-cidr 10.244.0.0/16,fd00:244::/32 --v=1',
    ],
  },
  {
    name: 'explain',
    summary:
      'Say where a packet goes and why, in the plan and in the kernel; or all of it for a Service. Exit codes: 0 forwarded, 3 rejected, 4 dropped, 5 the kernel differs from the plan, 6 no service answers there.',
    ownFlags: [from, to, namespace, answerOutput, live, bundle],
    uses: ASKED,
    arguments: { usage: '[NAMESPACE/NAME[:PORT]]', most: 1 },
    examples: [
      'junction explain --from outside --to 203.0.113.10:80',
      'junction explain --from pod/shop/pod-a --to svc/shop/api:http',
      'junction explain --from 10.244.1.11 --to 10.96.0.53:53/udp --output json',
      'junction explain shop/web',
      'junction explain shop/web --manifests examples --hostname-override node1 --cluster-cidr 10.244.0.0/16',
      'junction explain -n shop svc/web --kubeconfig ~/.kube/config --hostname-override node1',
    ],
  },
  {
    name: 'services',
    summary:
      'List Services with their addresses, endpoints and policies, and whether they are served here. PATTERN is a part of NAMESPACE/NAME; * stands for anything.',
    ownFlags: [namespace, problems, watch, answerOutput, live, bundle],
    uses: ASKED,
    arguments: { usage: '[PATTERN]', most: 1 },
    examples: [
      'junction services',
      'junction services --problems',
      "junction services -n shop 'web*' --output wide",
      'junction services --manifests examples --hostname-override node1',
    ],
  },
  {
    name: 'endpoints',
    summary: 'List the endpoints of a Service: which are used, and why the others are not.',
    ownFlags: [namespace, watch, answerOutput, live, bundle],
    uses: ASKED,
    arguments: { usage: 'NAMESPACE/NAME', most: 1 },
    examples: [
      'junction endpoints shop/web',
      'junction endpoints -n shop web --watch',
      'junction endpoints shop/web --manifests examples --hostname-override node1 --output wide',
    ],
  },
  {
    name: 'status',
    summary:
      'Say how the running proxy is: its version and mode, the API server, syncs, what the kernel refused, what others changed. Exit code 1 if something is wrong, or if it is still starting.',
    ownFlags: [wait, waitFor, resourceVersion, namespace, watch, answerOutput, live, bundle],
    uses: [...ANYWHERE, 'api-socket'],
    examples: [
      'junction status',
      'junction status --watch',
      'junction status --wait',
      'junction status --wait=2m --output json',
      'junction status -n shop --wait-for svc/web --resource-version 81234',
      'junction status --output json',
    ],
  },
  {
    name: 'watch',
    summary:
      'Show what the running proxy does, a line for each event: what changed, what that changed in the plan, what was written and in how long, and what other programs did to it.',
    ownFlags: [namespace, eventOutput, live, bundle],
    uses: [...ANYWHERE, 'api-socket'],
    arguments: { usage: '[PATTERN]', most: 1 },
    examples: [
      'junction watch',
      'junction watch -n shop',
      'junction watch --output json | jq .kind',
      'junction watch --bundle node1.json.gz',
    ],
  },
  {
    name: 'ui',
    summary:
      'Serve a page that shows where packets go: services with their paths, packets through the rules, syncs, the node. Prints its link, and stays until Ctrl-C. FILE is a bundle that somebody sent. Changes nothing.',
    ownFlags: [uiBindAddress, live, bundle],
    uses: ASKED,
    arguments: { usage: '[FILE]', most: 1 },
    examples: [
      'junction ui',
      'junction ui --ui-bind-address 127.0.0.1:8080',
      'junction ui --manifests examples --hostname-override node1 --cluster-cidr 10.244.0.0/16,fd00:244::/32',
      'junction ui --kubeconfig ~/.kube/config --hostname-override node1',
      'junction ui node1.json.gz',
    ],
  },
  {
    name: 'plan',
    summary:
      'Print what would be written for given manifests, or for what a cluster has now. Needs no root, touches nothing.',
    ownFlags: [family, planOutput],
    uses: [...ANYWHERE, ...PLANNED_FROM, ...words('iptables-masquerade-bit nftables-counters')],
    examples: [
      'junction plan --manifests examples --hostname-override node1 --output table',
      'junction plan --manifests examples --hostname-override node1 --family ipv4',
      'junction plan --manifests examples --hostname-override node1 --family ipv4 | iptables-restore --noflush --test',
      'junction plan --manifests examples --hostname-override node1 --proxy-mode ipvs --family ipv4',
      'junction plan --manifests examples --hostname-override node1 --proxy-mode nftables | nft --check --file -',
      'junction plan --manifests examples --hostname-override node1 --proxy-mode nftables | nft --file -',
      'junction plan --kubeconfig ~/.kube/config --hostname-override node1 --output table',
      'kubectl get services,endpointslices,nodes -A -o yaml | junction plan --manifests - --hostname-override node1 --family ipv4',
    ],
  },
  {
    name: 'check',
    summary:
      'Say whether this machine has what a proxy mode needs, and what brings what is missing; with --manifests, whether they can be used. Leaves nothing behind.',
    ownFlags: [family, checkOutput],
    uses: [
      ...ANYWHERE,
      ...words('manifests proxy-mode iptables-variant iptables-layout sysctl-root'),
      ...words('nodeport-addresses iptables-localhost-nodeports ipvs-scheduler ipvs-strict-arp'),
    ],
    examples: [
      'junction check --proxy-mode iptables',
      'junction check --proxy-mode ipvs --ipvs-scheduler wrr',
      'junction check --proxy-mode nftables',
      'junction check --config /var/lib/kube-proxy/config.conf --output json',
      'junction check --manifests examples',
    ],
  },
  {
    name: 'cleanup',
    summary:
      "Remove everything that is Junction's (or kube-proxy's) from iptables, IPVS, ipset and nftables, and say what it was.",
    ownFlags: [family, cleanupMode, output, dryRun, force, waitForProxy, timeout, stay],
    uses: [...ANYWHERE, 'iptables-variant', 'metrics-bind-address', 'metrics-port'],
    examples: [
      'junction cleanup --dry-run',
      'junction cleanup --output json',
      'junction cleanup --mode nftables',
      'junction cleanup --mode nftables --wait-for-proxy 127.0.0.1:10256 --timeout 10m',
    ],
  },
  {
    name: 'doctor',
    summary:
      'Find what keeps services from working on this node: kernel, settings, other proxies, firewalls, routes, conntrack, the API server, the proxy, and every service with a problem; each with evidence, consequence and cure. Exit code 1: something is wrong.',
    ownFlags: [only, probe, family, answerOutput, live, bundle],
    uses: [
      ...ANYWHERE,
      'api-socket',
      ...PLANNED_FROM,
      ...words('iptables-masquerade-bit iptables-variant ipvs-strict-arp sysctl-root'),
    ],
    arguments: { usage: '[NAMESPACE/NAME]', most: 1 },
    examples: [
      'junction doctor',
      'junction doctor --config /var/lib/kube-proxy/config.conf --output json',
      'junction doctor --only conntrack,sysctls',
      'junction doctor --probe shop/web',
    ],
  },
  {
    name: 'diff',
    summary:
      'Compare what is in the kernel of this node with what is planned, or one plan with another: which rules, which services, and which packets go elsewhere. Changes nothing. Exit code 1: they differ.',
    ownFlags: [
      toManifests,
      toKubeconfig,
      toConfig,
      toProxyMode,
      toHostname,
      family,
      answerOutput,
      live,
      bundle,
    ],
    uses: [...ANYWHERE, 'api-socket', ...PLANNED_FROM, ...words('iptables-masquerade-bit iptables-variant')],
    examples: [
      'junction diff',
      'junction diff --kubeconfig /var/lib/kube-proxy/kubeconfig --config /var/lib/kube-proxy/config.conf',
      'junction diff --to-manifests proposed.yaml',
      'junction diff --to-proxy-mode nftables',
      'junction diff --manifests examples --hostname-override node1 --to-config new.conf',
      'junction diff --bundle node1.json.gz --output json',
    ],
  },
  {
    name: 'bundle',
    summary:
      'Write one compressed file with all that questions about this node are answered from: Services, endpoints, rules in the kernel, recent changes, status, configuration, versions, findings of doctor. Secrets are removed. Other commands take it with --bundle.',
    ownFlags: [bundleOutput, bundleForce, family],
    uses: [...ANYWHERE, 'api-socket'],
    examples: [
      'junction bundle',
      'junction bundle --output node1.json.gz',
      'junction bundle --output - | ssh me@example.com tee node1.json.gz',
    ],
  },
  {
    name: 'version',
    summary: 'Say which version this is, of which commit, and when it was built.',
    ownFlags: [output],
    uses: ['help'],
    examples: ['junction version', 'junction version --output json'],
  },
  {
    name: 'completion',
    summary: 'Print a script by which a shell completes commands and flags: bash, zsh or fish.',
    ownFlags: [],
    uses: ['help'],
    arguments: { usage: 'bash|zsh|fish', most: 1 },
    examples: [
      'source <(junction completion bash)',
      'source <(junction completion zsh)',
      'junction completion fish | source',
    ],
  },
];

export function commandFlags({ ownFlags, uses }: CommandInfo): readonly Flag[] {
  return [...ownFlags, ...FLAGS.filter(({ name }) => uses?.includes(name) ?? true)];
}

/** Flags of `run` that do nothing for a command. */
export function flagsElsewhere({ uses }: CommandInfo): readonly string[] {
  return FLAGS.flatMap(({ name }) => (uses?.includes(name) === false ? name : []));
}
