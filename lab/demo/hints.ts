/** What to try next: commands to paste, with the real process ids. */
import { accessSync, constants } from 'node:fs';
import { isAbsolute, relative } from 'node:path';
import type { painter } from '../../src/cli/table.ts';
import type { Lab } from '../lab.ts';
import { TOOL_PATH } from '../tools.ts';
import type { HostName } from '../topology.ts';
import { isInGuest, isInUserNamespace, usersPath } from './inside.ts';
import { hasKeyboard } from './keyboard.ts';
import type { DemoOptions } from './options.ts';
import type { LivePage } from './page.ts';
import { JUNCTION } from './paths.ts';

export interface HintFacts {
  readonly lab: Lab;
  readonly variant: string | undefined;
  readonly options: Pick<DemoOptions, 'manifests' | 'mode'>;
  readonly paint: ReturnType<typeof painter>;
  readonly page?: LivePage | undefined;
}

export function printHints(facts: HintFacts): string {
  const { paint, options } = facts;
  const lines = [
    'pod-a and pod-b are on node1, where Junction runs, pod-c and pod-d on node2.',
    'client (192.0.2.10) and far client (198.18.0.10) are outside.',
    ...(options.mode === 'iptables'
      ? []
      : [`In the mode ${options.mode} no node port answers on 127.0.0.1.`]),
    '',
    paint('bold', 'Try next'),
    ...(facts.page?.link === undefined ? [] : [`  Open ${facts.page.link}: where packets go, drawn.`]),
    `  Edit ${shortPath(options.manifests)}/api.yaml, for instance remove an endpoint, and save:`,
    `  the rows that change appear here${facts.page?.link === undefined ? '' : ', and the page shows it'}.`,
    '',
    ...(isInGuest() ? [] : inAnotherTerminal(facts)),
    ...(hasKeyboard() ? atTheKeyboard(facts) : ['Ctrl-C: end; nothing stays behind.']),
  ];
  return `${lines.join('\n')}\n`;
}

function inAnotherTerminal(facts: HintFacts): readonly string[] {
  return [
    '  In another terminal, what Junction wrote:',
    `    ${inside(facts, 'node1', lookCommand(facts))}`,
    '  a request of your own, from a pod and from outside:',
    `    ${inside(facts, 'pod-b', ask('10.96.0.10', 80))}`,
    `    ${inside(facts, 'client', ask('192.0.2.1', 30080))}`,
    ...(facts.page === undefined
      ? []
      : ['  ask Junction:', `    ${shortPath(JUNCTION)} explain shop/web --api-socket ${facts.page.socket}`]),
    '  a shell on node1:',
    `    ${inside(facts, 'node1', 'bash')}`,
    '',
  ];
}

function atTheKeyboard(facts: HintFacts): readonly string[] {
  const key = (text: string): string => facts.paint('bold', text);
  return [
    `${key('r')} Enter: all requests again.  ${key('q')} Enter or Ctrl-C: end; nothing stays behind.`,
    `${key('HOST COMMAND')} Enter: run it there, for instance what Junction wrote:`,
    `  node1 ${lookCommand(facts)}`,
    ...(isInGuest() ? [`or a request of your own:`, `  pod-b ${ask('10.96.0.10', 80)}`] : []),
  ];
}

/** Shows what Junction wrote into the kernel. */
function lookCommand({ options, variant }: HintFacts): string {
  if (options.mode === 'nftables')
    return isInstalled('nft')
      ? 'nft list table ip junction-a'
      : 'nft list table ip junction-a  (package nftables)';
  if (options.mode === 'ipvs') return isInstalled('ipvsadm') ? 'ipvsadm -Ln' : 'cat /proc/net/ip_vs';
  return `iptables-${variant === undefined ? '' : `${variant}-`}save -t nat | grep KUBE`;
}

/** curl may not be there, and the lab's servers speak lines, not HTTP. */
function ask(address: string, port: number): string {
  return `bash -c 'exec 3<>/dev/tcp/${address}/${port}; echo >&3; head -1 <&3'`;
}

function inside({ lab }: HintFacts, host: HostName, command: string): string {
  const [program = '', ...rest] = command.split(' ');
  const found = [onUsersPath(program), ...rest].join(' ');
  const { pid } = lab.host(host);
  return isInUserNamespace()
    ? `nsenter --target ${pid} --user --preserve-credentials --mount --net ${found}`
    : `nsenter --net=/proc/${pid}/ns/net ${found}`;
}

function shortPath(path: string): string {
  const short = relative(process.cwd(), path);
  return short === '' || short.startsWith('..') || isAbsolute(short) ? path : short;
}

/** The plain name where the user's shell would find it, else the whole path. */
function onUsersPath(program: string): string {
  const usual = usersPath().split(':');
  const folder = TOOL_PATH.split(':').find((candidate) => isExecutable(`${candidate}/${program}`));
  return folder === undefined || usual.includes(folder) ? program : `${folder}/${program}`;
}

function isInstalled(program: string): boolean {
  return TOOL_PATH.split(':').some((folder) => isExecutable(`${folder}/${program}`));
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
