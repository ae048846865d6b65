/** Every flag, once: its name, what it takes, its default, what it does, and which commands have it. */
export type FlagKind = 'string' | 'list' | 'bool' | 'int' | 'duration';
export type CommandName = 'run' | 'plan' | 'cleanup';

export interface Flag {
  readonly name: string;
  readonly short?: string;
  readonly kind: FlagKind;
  /** As a user would type it. */
  readonly default?: string;
  readonly placeholder?: string;
  readonly choices?: readonly string[];
  readonly help: string;
  readonly commands: readonly CommandName[];
}

const BOTH: readonly CommandName[] = ['run', 'plan'];
const ALL: readonly CommandName[] = ['run', 'plan', 'cleanup'];

export const FLAGS: readonly Flag[] = [
  {
    name: 'manifests',
    kind: 'list',
    placeholder: 'FILE|DIR',
    help: 'read Services, EndpointSlices, Endpoints and Nodes from YAML or JSON files; may be repeated',
    commands: BOTH,
  },
  {
    name: 'proxy-mode',
    kind: 'string',
    default: 'iptables',
    choices: ['iptables'],
    help: 'which part of the kernel does the work',
    commands: BOTH,
  },
  {
    name: 'iptables-layout',
    kind: 'string',
    default: 'current',
    choices: ['current', 'classic'],
    help: "how rules are arranged: today's kube-proxy's chains, or those of 1.5 to 1.23",
    commands: BOTH,
  },
  {
    name: 'iptables-variant',
    kind: 'string',
    default: 'auto',
    choices: ['auto', 'nft', 'legacy'],
    help: 'which iptables programs to use; auto goes by what kubelet and the machine use',
    commands: ['run', 'cleanup'],
  },
  {
    name: 'hostname-override',
    kind: 'string',
    placeholder: 'NAME',
    help: "this node's name, if it is not the host name",
    commands: BOTH,
  },
  {
    name: 'bind-address',
    kind: 'string',
    placeholder: 'IP',
    default: '0.0.0.0',
    help: "this node's address, if it is not the one of the Node object",
    commands: BOTH,
  },
  {
    name: 'cluster-cidr',
    kind: 'list',
    placeholder: 'CIDR',
    help: 'addresses of pods, one CIDR per family',
    commands: BOTH,
  },
  {
    name: 'detect-local-mode',
    kind: 'string',
    default: 'ClusterCIDR',
    choices: ['ClusterCIDR', 'NodeCIDR', 'BridgeInterface', 'InterfaceNamePrefix'],
    help: 'how to tell traffic of pods from other traffic',
    commands: BOTH,
  },
  {
    name: 'pod-bridge-interface',
    kind: 'string',
    placeholder: 'NAME',
    help: 'the bridge of the pods, for BridgeInterface',
    commands: BOTH,
  },
  {
    name: 'pod-interface-name-prefix',
    kind: 'string',
    placeholder: 'PREFIX',
    help: "what pods' interfaces begin with, for InterfaceNamePrefix",
    commands: BOTH,
  },
  {
    name: 'masquerade-all',
    kind: 'bool',
    default: 'false',
    help: 'masquerade everything that goes to a cluster IP',
    commands: BOTH,
  },
  {
    name: 'nodeport-addresses',
    kind: 'list',
    placeholder: 'CIDR|primary',
    help: 'where node ports answer; default: on all addresses of the node',
    commands: BOTH,
  },
  {
    name: 'iptables-masquerade-bit',
    kind: 'int',
    default: '14',
    help: 'the bit of the packet mark that means "masquerade"',
    commands: BOTH,
  },
  {
    name: 'iptables-localhost-nodeports',
    kind: 'bool',
    default: 'true',
    help: 'let node ports answer on 127.0.0.1 too',
    commands: BOTH,
  },
  {
    name: 'iptables-sync-period',
    kind: 'duration',
    default: '30s',
    help: 'how soon a failed sync is tried again, and how often rules are checked',
    commands: ['run'],
  },
  {
    name: 'iptables-min-sync-period',
    kind: 'duration',
    default: '1s',
    help: 'rest between two syncs',
    commands: ['run'],
  },
  {
    name: 'family',
    kind: 'string',
    default: 'both',
    choices: ['both', 'ipv4', 'ipv6'],
    help: 'address families',
    commands: ALL,
  },
  {
    name: 'output',
    short: 'o',
    kind: 'string',
    default: 'text',
    choices: ['text', 'table', 'json'],
    help: 'text: input for iptables-restore; table: who answers where; json: everything',
    commands: ['plan'],
  },
  {
    name: 'output',
    short: 'o',
    kind: 'string',
    default: 'text',
    choices: ['text', 'json'],
    help: 'for people, or for machines',
    commands: ['cleanup'],
  },
  {
    name: 'dry-run',
    kind: 'bool',
    default: 'false',
    help: 'say what would be removed, and remove nothing',
    commands: ['cleanup'],
  },
  {
    name: 'logging-format',
    kind: 'string',
    default: 'text',
    choices: ['text', 'json'],
    help: 'how log lines look',
    commands: ['run'],
  },
  {
    name: 'v',
    short: 'v',
    kind: 'int',
    default: '0',
    placeholder: 'LEVEL',
    help: 'how much to log: 1 every sync, 2 and up for debugging',
    commands: ['run'],
  },
];

export function flagsOf(command: CommandName): readonly Flag[] {
  return FLAGS.filter((flag) => flag.commands.includes(command));
}
