/** What to try next: commands to paste, with the real process ids. */
import { accessSync, constants } from 'node:fs';
import { isAbsolute, relative } from 'node:path';
import type { painter } from '../cli/table.ts';
import type { Lab } from '../lab/lab.ts';
import { TOOL_PATH } from '../lab/tools.ts';
import type { HostName } from '../lab/topology.ts';

export interface HintFacts {
  readonly lab: Lab;
  readonly variant: string | undefined;
  readonly manifests: string;
  readonly paint: ReturnType<typeof painter>;
  readonly hasKeyboard: boolean;
  /** The demo runs in a user namespace of its own, and what is pasted has to enter that too. */
  readonly inUserNamespace: boolean;
}

export function printHints(facts: HintFacts): string {
  const { paint, hasKeyboard } = facts;
  const save = `iptables-${facts.variant === undefined ? '' : `${facts.variant}-`}save`;
  const lines = [
    'pod-a and pod-b are on node1, where Junction runs, pod-c and pod-d on node2. client (192.0.2.10) and far client',
    '(198.18.0.10) are outside.',
    '',
    paint('bold', 'Try next'),
    `  Edit ${shortPath(facts.manifests)}/api.yaml, for instance remove an endpoint, and save: the rows that change appear here.`,
    '',
    '  In another terminal, the rules that Junction wrote:',
    `    ${inside(facts, 'node1', save)} -t nat | grep KUBE`,
    '  a request of your own, from a pod and from outside:',
    `    ${inside(facts, 'pod-b', ask('10.96.0.10', 80))}`,
    `    ${inside(facts, 'client', ask('192.0.2.1', 30080))}`,
    '  a shell on node1:',
    `    ${inside(facts, 'node1', 'bash')}`,
    '',
    hasKeyboard
      ? `${paint('bold', 'r')} Enter: all requests again.  ${paint('bold', 'q')} Enter or Ctrl-C: end; nothing stays behind.`
      : 'Ctrl-C: end; nothing stays behind.',
  ];
  return `${lines.join('\n')}\n`;
}

/** curl may not be there, and the lab's servers speak lines, not HTTP. */
function ask(address: string, port: number): string {
  return `bash -c 'exec 3<>/dev/tcp/${address}/${port}; echo >&3; head -1 <&3'`;
}

function inside({ lab, inUserNamespace }: HintFacts, host: HostName, command: string): string {
  const [program = '', ...rest] = command.split(' ');
  const found = [onUsersPath(program), ...rest].join(' ');
  const { pid } = lab.host(host);
  return inUserNamespace
    ? `nsenter --target ${pid} --user --preserve-credentials --mount --net ${found}`
    : `nsenter --net=/proc/${pid}/ns/net ${found}`;
}

function shortPath(path: string): string {
  const short = relative(process.cwd(), path);
  return short === '' || short.startsWith('..') || isAbsolute(short) ? path : short;
}

/** The plain name where the user's shell would find it, else the whole path. */
function onUsersPath(program: string): string {
  const usual = (process.env['JUNCTION_DEMO_PATH'] ?? process.env['PATH'] ?? '').split(':');
  const folder = TOOL_PATH.split(':').find((candidate) => isExecutable(`${candidate}/${program}`));
  return folder === undefined || usual.includes(folder) ? program : `${folder}/${program}`;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
