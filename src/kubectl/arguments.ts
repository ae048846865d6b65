/** The command line of the kubectl plugin: flags as kubectl has them, and the rest for Junction in the pod. */
import { UsageError } from '../cli/commands.ts';
import { didYouMean } from '../text/suggest.ts';

const COMMANDS = [
  'explain',
  'services',
  'endpoints',
  'status',
  'doctor',
  'diff',
  'watch',
  'bundle',
  'version',
] as const;
type PluginCommand = (typeof COMMANDS)[number];

export interface PluginArguments {
  /** `help`: say how it is used. */
  readonly command: PluginCommand | 'help';
  readonly node: string;
  readonly kubeconfig: string;
  readonly context: string;
  /** Of the Service that is asked about; '' where none was named. */
  readonly namespace: string;
  /** Where Junction's pods are. */
  readonly junctionNamespace: string;
  /** Where the file goes. */
  readonly output: string;
  readonly force: boolean;
  /** For Junction: everything else, as it was given. */
  readonly rest: readonly string[];
}

/** Flags of ours; each takes a value. */
const FLAGS: Readonly<Record<string, keyof typeof DEFAULTS>> = {
  '--node': 'node',
  '--kubeconfig': 'kubeconfig',
  '--context': 'context',
  '--namespace': 'namespace',
  '-n': 'namespace',
  '--junction-namespace': 'junctionNamespace',
};

const DEFAULTS = {
  node: '',
  kubeconfig: '',
  context: '',
  namespace: '',
  junctionNamespace: 'kube-system',
  output: '',
};

/** Flags of Junction that take a value in the next word, so that it is not taken for a name. */
const WITH_VALUE = new Set([
  '-o',
  '--output',
  '--from',
  '--to',
  '--family',
  '--wait-for',
  '--resource-version',
]);
/** What the pod has and this machine has not, or the other way round. */
const REFUSED = /^--(?:bundle|manifests|to-manifests|to-kubeconfig|to-config|config|api-socket|live)(?:=|$)/;

export function readArguments(argv: readonly string[]): PluginArguments {
  const values = { ...DEFAULTS };
  const rest: string[] = [];
  let command: PluginCommand | undefined;
  let force = false;
  for (let index = 0; index < argv.length; index += 1) {
    const word = argv[index] ?? '';
    if (word === '--help' || word === '-h' || (word === 'help' && command === undefined)) return help(values);
    const [flag, inline] = splitFlag(word);
    const known =
      FLAGS[flag] ?? (command === 'bundle' && /^(?:-o|--output)$/.test(flag) ? 'output' : undefined);
    if (known !== undefined) {
      const value = inline ?? argv[++index];
      if (value === undefined || value === '') throw new UsageError([`${flag} needs a value`], SEE);
      values[known] = value;
    } else if (command === 'bundle' && flag === '--force') force = true;
    else if (REFUSED.test(word))
      throw new UsageError(
        [`${flag} is not for kubectl junction: what is asked is the proxy of a node`],
        SEE,
      );
    else if (command === undefined && !word.startsWith('-')) command = commandNamed(word);
    else {
      rest.push(word);
      if (WITH_VALUE.has(word)) rest.push(...argv.slice(++index, index + 1));
    }
  }
  if (command === undefined) return help(values);
  return { command, ...values, force, rest };
}

function help(values: typeof DEFAULTS): PluginArguments {
  return { command: 'help', ...values, force: false, rest: [] };
}

const SEE = 'kubectl junction --help explains the commands';

const PAGE =
  'junction ui --kubeconfig FILE shows the cluster from here; the page of a proxy: kubectl --namespace kube-system exec -it POD -- junction ui --ui-bind-address 127.0.0.1:10270, and port-forward POD 10270';

/** `-nshop`, `--node=worker-1` */
function splitFlag(word: string): readonly [flag: string, value: string | undefined] {
  if (/^-n[^-]/.test(word)) return ['-n', word.slice(2).replace(/^=/, '')];
  const [, flag, value] = /^(--[^=]+)=(.*)$/s.exec(word) ?? [];
  return flag === undefined ? [word, undefined] : [flag, value];
}

function commandNamed(word: string): PluginCommand {
  const found = COMMANDS.find((each) => each === word);
  if (found !== undefined) return found;
  if (word === 'ui') throw new UsageError(['ui is not for kubectl junction: a page needs a port here'], PAGE);
  const hint = didYouMean(word, COMMANDS) || ` (expected one of ${COMMANDS.join(', ')})`;
  throw new UsageError([`unknown command ${JSON.stringify(word)}${hint}`], SEE);
}

/** What Junction in the pod is given. */
export function remoteCommand(
  { command, namespace, rest }: Pick<PluginArguments, 'command' | 'namespace' | 'rest'>,
  contextNamespace: string,
): readonly string[] {
  const given = namespace === '' ? defaultNamespace(command, rest, contextNamespace) : namespace;
  return ['junction', command, ...(given === '' ? [] : ['--namespace', given]), ...rest];
}

/** As with kubectl: a name without a namespace is one of the context's namespace. */
function defaultNamespace(
  command: PluginArguments['command'],
  rest: readonly string[],
  contextNamespace: string,
): string {
  if (command !== 'explain' && command !== 'endpoints' && command !== 'status') return '';
  const names = rest.flatMap((word, index) => {
    if (/^--(?:from|to|wait-for)=/.test(word)) return [word.replace(/^[^=]*=/, '')];
    const before = rest[index - 1] ?? '';
    if (['--from', '--to', '--wait-for'].includes(before)) return [word];
    return word.startsWith('-') || WITH_VALUE.has(before) ? [] : [word];
  });
  const isBare = names.some((name) => /^(?:(?:svc|service|services|pod)\/)[^/]+$/.test(name));
  const isName = names.some(
    (name) => /^[a-z0-9-]+(?::[^/]*)?$/.test(name) && !/^(?:node|outside)$/.test(name),
  );
  const isPacket = rest.some((word) => /^--(?:from|to)\b/.test(word));
  return isBare || (isName && !isPacket) ? contextNamespace || 'default' : '';
}

export const HELP = `Usage: kubectl junction COMMAND [flags]

Runs a command of Junction in its pod on a node, by kubectl exec, and prints what it says.

Commands:
  status       how Junction is on every node, worst first; with --node, all about one
  explain      why a packet goes where it goes: NAME, or --from and --to
  services     services as one node serves them
  endpoints    endpoints of one service
  doctor       what keeps services from working on a node
  diff         the kernel of a node against its plan
  watch        what the proxy of a node does, until Ctrl-C
  bundle       one file with all that questions are answered from: --node NODE [--output FILE] [--force]
  version      the version that a node runs

The page in a browser: junction ui --kubeconfig FILE.

Examples:
  kubectl junction status
  kubectl junction explain -n shop svc/web --node worker-1
  kubectl junction explain --from outside --to 203.0.113.10:80 --node worker-1
  kubectl junction doctor --node worker-1
  kubectl junction bundle --node worker-1

Flags:
  --node NODE                  which node; needed where there are several
  -n, --namespace NAMESPACE    of the Service; without it, that of the context
  --context, --kubeconfig      as with kubectl; KUBECONFIG counts too
  --junction-namespace NAME    where Junction's pods are (default kube-system)

All others are Junction's own: kubectl junction explain --node worker-1 -o json. What the user needs in the cluster: get and
list pods, and create and get pods/exec, in Junction's namespace.
`;
