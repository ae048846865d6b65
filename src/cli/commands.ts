/** The commands: their flags besides the common ones, and how they are explained. */
import { FLAG_GROUPS, flagHelp, helpColumns } from '../config/help.ts';
import { BOOL, choiceOf, STRING } from '../config/kinds.ts';
import { wrap } from '../text/wrap.ts';
import { type Flag, flag } from '../config/setting.ts';
import { FLAGS } from '../config/table.ts';

export type CommandName = 'run' | 'plan' | 'check' | 'cleanup' | 'doctor' | 'version' | 'completion';

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

/** Flags of commands other than `run`. */
export const OWN_FLAGS = {
  family: flag('family', choiceOf(['both', 'ipv4', 'ipv6']), 'both', { help: 'address families' }),
  planOutput: flag('output', choiceOf(['text', 'script', 'table', 'json']), 'text', {
    short: 'o',
    help: "text: input for nft, or for iptables-restore --noflush (Junction's own chains; the jumps to them are comments), in the ipvs mode for ipset, ipvsadm and ip too; script: a shell script that applies all of it, and leaves the same when it is run again; table: who answers where; json: everything",
  }),
  output: flag('output', choiceOf(['text', 'json']), 'text', {
    short: 'o',
    help: 'for people, or for programs',
  }),
  checkOutput: flag('output', choiceOf(['text', 'json']), 'text', {
    short: 'o',
    help: 'a table for people, or json for programs',
  }),
  probe: flag('probe', BOOL, false, {
    help: 'open real connections from this node to endpoints and frontends, of NAMESPACE/NAME or of a sample of all, and say which leg fails',
  }),
  dryRun: flag('dry-run', BOOL, false, { help: 'say what would be removed, and remove nothing' }),
  cleanupMode: flag('mode', choiceOf(['all', 'iptables', 'ipvs', 'nftables']), 'all', {
    help: "remove only what this mode of Junction left, and nothing of a kube-proxy that runs in another mode; all: everything that is Junction's or kube-proxy's",
  }),
  answerOutput: flag('output', choiceOf(['table', 'wide', 'json', 'yaml']), 'table', {
    short: 'o',
    help: 'table: for people, as wide as the terminal; wide: with all columns; json, yaml: for programs (docs/reference/api.md)',
  }),
  eventOutput: flag('output', choiceOf(['table', 'json']), 'table', {
    short: 'o',
    help: 'table: a line for people; json: an object a line, for programs (docs/reference/api.md)',
  }),
  live: flag('live', BOOL, false, {
    help: 'ask the proxy that runs here; so it is without another source',
  }),
  bundle: flag('bundle', STRING, '', {
    placeholder: 'FILE',
    help: 'answer from a file that junction bundle wrote',
  }),
  from: flag('from', STRING, '', {
    placeholder: 'ADDRESS|pod/NS/NAME|node|outside',
    help: 'who sends the packet',
  }),
  to: flag('to', STRING, '', {
    placeholder: 'ADDRESS:PORT[/udp]|svc/NS/NAME[:PORT]',
    help: 'whom it dials',
  }),
  at: flag('at', STRING, '', {
    placeholder: 'TIME',
    help: 'answer for an earlier time, as far as the proxy remembers its changes: 14:03, 14:03:20 or 2026-11-16T14:03:20Z',
  }),
  namespace: flag('namespace', STRING, '', {
    short: 'n',
    placeholder: 'NAMESPACE',
    help: 'only Services of this namespace; names then go without it: -n shop svc/web',
  }),
  problems: flag('problems', BOOL, false, { help: 'only those that are not ok' }),
  watch: flag('watch', BOOL, false, {
    short: 'w',
    help: 'show it again every two seconds, until Ctrl-C; in a pipe, when it has changed',
  }),
  force: flag('force', BOOL, false, {
    help: 'remove although a Junction runs here, which then writes its rules again',
  }),
};
const {
  probe,
  answerOutput,
  live,
  bundle,
  family,
  planOutput,
  checkOutput,
  cleanupMode,
  output,
  dryRun,
  force,
} = OWN_FLAGS;

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
  ...words('manifests strict kubeconfig master kube-api-qps kube-api-burst'),
  ...words('hostname-override bind-address feature-gates proxy-mode'),
  ...words('cluster-cidr detect-local-mode pod-bridge-interface pod-interface-name-prefix'),
  ...words('nodeport-addresses masquerade-all iptables-localhost-nodeports iptables-layout ipvs-scheduler'),
];

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
    name: 'plan',
    summary:
      'Print what would be written for given manifests, or for what a cluster has now. Needs no root, touches nothing.',
    ownFlags: [family, planOutput],
    uses: [...ANYWHERE, ...PLANNED_FROM, ...words('iptables-masquerade-bit nftables-counters')],
    examples: [
      'junction plan --manifests examples --hostname-override node1 --output table',
      'junction plan --manifests examples --hostname-override node1 --family ipv4',
      'junction plan --manifests examples --hostname-override node1 --family ipv4 | iptables-restore --noflush --test',
      'junction plan --manifests examples --hostname-override node1 --output script | sh',
      'junction plan --manifests examples --hostname-override node1 --proxy-mode ipvs --family ipv4',
      'junction plan --manifests examples --hostname-override node1 --proxy-mode nftables | nft --check --file -',
      'junction plan --manifests examples --hostname-override node1 --proxy-mode nftables | nft --file -',
      'junction plan --manifests services.yaml --hostname-override node1 --strict --output table',
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
      ...words('manifests strict proxy-mode iptables-variant iptables-layout sysctl-root'),
      ...words('nodeport-addresses iptables-localhost-nodeports ipvs-scheduler ipvs-strict-arp'),
    ],
    examples: [
      'junction check --proxy-mode iptables',
      'junction check --proxy-mode ipvs --ipvs-scheduler wrr',
      'junction check --proxy-mode nftables',
      'junction check --config /var/lib/kube-proxy/config.conf --output json',
      'junction check --manifests examples --strict',
    ],
  },
  {
    name: 'cleanup',
    summary:
      "Remove everything that is Junction's (or kube-proxy's) from iptables, IPVS, ipset and nftables, and say what it was.",
    ownFlags: [family, cleanupMode, output, dryRun, force],
    uses: [...ANYWHERE, 'iptables-variant', 'metrics-bind-address', 'metrics-port'],
    examples: [
      'junction cleanup --dry-run',
      'junction cleanup --output json',
      'junction cleanup --mode nftables',
    ],
  },
  {
    name: 'doctor',
    summary:
      'Find what keeps services from working on this node: kernel, settings, other proxies, firewalls, routes, conntrack, the API server, the proxy, and every service with a problem; each with evidence, consequence and cure. Exit code 1: something is wrong.',
    ownFlags: [probe, family, answerOutput, live, bundle],
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
      'junction doctor --probe shop/web',
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

export function commandHelp(command: CommandInfo, width: number): string {
  const shared = FLAG_GROUPS.map(({ title, flags }) => ({
    title,
    flags: flags.filter(({ name }) => command.uses?.includes(name) ?? true),
  })).filter(({ flags }) => flags.length > 0);
  const own = command.ownFlags.length === 0 ? [] : [{ title: 'This command', flags: command.ownFlags }];
  const columns = helpColumns(width);
  const examples = command.examples.map((example) => printExample(example, columns)).join('');
  const usage = [
    command.name,
    ...(command.arguments === undefined ? [] : [command.arguments.usage]),
    '[flags]',
  ];
  const summary = wrap(command.summary, columns).join('\n');
  return `Usage: junction ${usage.join(' ')}\n\n${summary}\n\nExamples:\n${examples}\n${flagHelp(width, [...own, ...shared])}`;
}

const UNBREAKABLE = '\u00a0';

/** One that is too long is broken as a shell takes it, and not between a flag and its value. */
function printExample(example: string, columns: number): string {
  const indent = '  ';
  if (indent.length + example.length <= columns) return `${indent}${example}\n`;
  const room = columns - ' \\'.length - 2 * indent.length;
  const lines = wrap(example.replaceAll(/ (?!--|\|)/g, UNBREAKABLE), room);
  return `${indent}${lines.join(` \\\n${indent}${indent}`).replaceAll(UNBREAKABLE, ' ')}\n`;
}

const NAME_COLUMNS = 14;

export function overview(width: number): string {
  const columns = helpColumns(width);
  const commands = COMMANDS.map(({ name, summary }) => {
    const lines = wrap(summary, columns - NAME_COLUMNS);
    return `${`  ${name}`.padEnd(NAME_COLUMNS)}${lines.join(`\n${' '.repeat(NAME_COLUMNS)}`)}\n`;
  });
  const about =
    'A Kubernetes service proxy that syncs in milliseconds and says why a packet goes where it goes.';
  const more =
    'junction COMMAND --help explains a command and its flags. Without a command, flags alone mean run, so that Junction can stand where kube-proxy stood. junction --version prints the version.';
  return `Usage: junction COMMAND [flags]

${wrap(about, columns).join('\n')}

Commands:
${commands.join('')}
${wrap(more, columns).join('\n')}
`;
}
