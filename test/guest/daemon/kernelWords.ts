/** What node1's kernel has of the IPVS mode, read with the programs that operators use. */
import type { Host } from '../../../lab/host.ts';

export interface KernelWords {
  readonly servers: readonly string[];
  readonly sets: readonly string[];
  readonly addresses: readonly string[];
  readonly rules: readonly string[];
  readonly rules6: readonly string[];
}

export async function kernelWords(node: Host): Promise<KernelWords> {
  const [servers, sets, addresses, rules, rules6] = await Promise.all([
    serversOf(node),
    setsOf(node),
    addressesOf(node),
    rulesOf(node, 'iptables-legacy-save'),
    rulesOf(node, 'ip6tables-legacy-save'),
  ]);
  return { servers, sets, addresses, rules, rules6 };
}

/** `TCP 10.96.0.1:80 rr persistent 180 -> 10.244.1.11:8080, 10.244.2.11:8080 weight 0`, one for each virtual server. */
export async function serversOf(node: Host): Promise<readonly string[]> {
  const lines = linesOf(await node.run(['ipvsadm', '--save', '--numeric']));
  const endpoints = partsOf(ENDPOINT, lines);
  return partsOf(SERVER, lines)
    .map(({ server, protocol = '', address, scheduler, persistence }) => {
      const own = endpoints.filter((each) => each['server'] === server);
      const to = own.map(({ endpoint = '', weight }) =>
        weight === '1' ? endpoint : `${endpoint} weight ${weight}`,
      );
      const persistent = persistence === undefined ? '' : ` persistent ${persistence}`;
      return `${PROTOCOLS[protocol]} ${address} ${scheduler}${persistent} -> ${to.sort().join(', ')}`.trimEnd();
    })
    .sort();
}

const SERVER =
  /^-A (?<server>(?<protocol>\S+) (?<address>\S+)) -s (?<scheduler>\S+)(?: -p (?<persistence>\d+))?/;
const ENDPOINT = /^-a (?<server>\S+ \S+) -r (?<endpoint>\S+) -m -w (?<weight>\d+)/;
const PROTOCOLS: Readonly<Record<string, string>> = { '-t': 'TCP', '-u': 'UDP', '--sctp-service': 'SCTP' };

type Parts = Readonly<Record<string, string | undefined>>;

function partsOf(pattern: RegExp, lines: readonly string[]): readonly Parts[] {
  return lines.flatMap((line) => {
    const parts = pattern.exec(line)?.groups;
    return parts ? [parts] : [];
  });
}

/** `KUBE-CLUSTER-IP hash:ip,port 10.96.0.1,tcp:443 …`, one for each set. */
export async function setsOf(node: Host): Promise<readonly string[]> {
  const lines = linesOf(await node.run(['ipset', 'save'])).map((line) => line.split(' '));
  const entriesOf = (set: string | undefined): readonly (string | undefined)[] =>
    lines.flatMap(([verb, name, entry]) => (verb === 'add' && name === set ? [entry] : [])).sort();
  return lines
    .filter(([verb]) => verb === 'create')
    .map(([, name, type]) => [name, type, ...entriesOf(name)].join(' '))
    .sort();
}

/** Of the device, without what every link has by itself. */
export async function addressesOf(node: Host): Promise<readonly string[]> {
  const { exitCode, stdout } = await node.exec(['ip', '-oneline', 'address', 'show', 'dev', 'kube-ipvs0']);
  if (exitCode !== 0) return ['no kube-ipvs0'];
  const addresses = linesOf(stdout).map((line) => line.split(/ +/)[3] ?? '');
  return addresses.filter((address) => !address.startsWith('fe80')).sort();
}

/** Chains and rules in the kernel's order, tables by their names; without counters and without the kernel's own chains. */
export async function rulesOf(node: Host, command: string): Promise<readonly string[]> {
  const tables = (await node.run([command])).split('\n*').slice(1).sort();
  return tables.flatMap((table) =>
    linesOf(`*${table}`)
      .filter((line) => /^(?:\*|:\S+ - |-A)/.test(line))
      .map((line) => line.replace(/ - \[\d+:\d+\]$/, '')),
  );
}

function linesOf(text: string): readonly string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}
