/** Junction on node1 of a lab, with the kernel that runs there: steps go to its process, packets and other programs come from here. */
import type { Session } from '../../lab/host.ts';
import type { Lab } from '../../lab/lab.ts';
import type { GuestNode } from '../guest/guestNode.ts';
import type { ContractMethod } from '../guest/node/protocol.ts';
import type { PacketSender } from '../scenarios/labPackets.ts';
import { type Fate, printRow, type Row } from '../scenarios/packets.ts';
import type { Deed, DrivenNode, Outcome } from './node.ts';

export type RealMode = 'iptables-nft' | 'iptables-legacy' | 'ipvs' | 'nftables' | 'nftables-unprotected';

interface RealNodeParts {
  readonly mode: RealMode;
  readonly node: GuestNode;
  readonly lab: Lab;
  readonly sender: PacketSender;
}

export class RealNode implements DrivenNode {
  readonly isProtected: boolean;
  readonly settleMs = 20_000;
  readonly #parts: RealNodeParts;
  readonly #sessions = new Map<string, Session>();
  #hasForeign = false;

  constructor(parts: RealNodeParts) {
    this.#parts = parts;
    this.isProtected = parts.mode === 'nftables';
  }

  async #call<T>(method: ContractMethod, argument?: unknown): Promise<T> {
    return (await this.#parts.node.contract(method, argument)) as T;
  }

  serve(lines: readonly string[]): Promise<Outcome> {
    return this.#call('serve', lines);
  }

  setZone(zone: string): Promise<Outcome> {
    return this.#call('setZone', zone);
  }

  setAddresses(addresses: readonly string[]): Promise<Outcome> {
    return this.#call('setAddresses', addresses);
  }

  retry(): Promise<Outcome> {
    return this.#call('retry');
  }

  restart(): Promise<Outcome> {
    return this.#call('restart');
  }

  rewrite(): Promise<Outcome> {
    return this.#call('rewrite');
  }

  refuse(text: string | undefined): Promise<void> {
    return this.#call('refuse', text);
  }

  loseNextAnswer(): Promise<void> {
    return this.#call('loseNextAnswer');
  }

  stopAfter(writes: number): Promise<void> {
    return this.#call('stopAfter', writes);
  }

  watch(): Promise<void> {
    throw new Error('a watch needs a kernel in memory: mark the case with [memory]');
  }

  async packets(rows: readonly Row[]): Promise<readonly (readonly [expected: string, seen: string])[]> {
    const fates = await this.#call<readonly Fate[]>('fatesOf', rows);
    const pairs = rows.flatMap((row, index) => {
      const fate = fates[index];
      return fate ? [[row, fate] as const] : [];
    });
    const seen = await this.#parts.sender.send(pairs);
    return pairs.map(([row, fate], index) => [printRow(row, fate), seen[index] ?? 'nothing']);
  }

  differences(): Promise<readonly string[]> {
    return this.#call('differences');
  }

  async openConnections(rows: readonly Row[]): Promise<void> {
    for (const { host, packet, text } of rows) {
      const session = await this.#parts.lab.host(host).openSession(packet.destination, packet.port);
      this.#sessions.set(text, session);
    }
  }

  async brokenConnections(): Promise<readonly string[]> {
    const answers = await Promise.all(
      [...this.#sessions].map(async ([text, session]) => ({ text, outcome: await session.send() })),
    );
    return answers.flatMap(({ text, outcome }) => (outcome.outcome === 'answer' ? [] : [text]));
  }

  async endConnections(): Promise<void> {
    for (const session of this.#sessions.values()) await session.close();
    this.#sessions.clear();
  }

  async perform(deed: Deed): Promise<boolean> {
    const { mode, lab } = this.#parts;
    const argument = 'clusterIP' in deed ? deed.clusterIP : '';
    const isOwn = deed.kind === 'addOwnRules';
    const script = ['sh', '-ec', SCRIPTS[mode][deed.kind], 'sh', argument] as const;
    if (this.isProtected && !isOwn) await lab.host('node1').exec(script);
    else await lab.host('node1').run(script);
    if (isOwn) this.#hasForeign = true;
    if (deed.kind === 'flush') this.#hasForeign = false;
    return !this.isProtected;
  }

  async missingForeign(): Promise<readonly string[]> {
    if (!this.#hasForeign) return [];
    const { mode, lab } = this.#parts;
    const { exitCode, stderr } = await lab.host('node1').exec(['sh', '-c', FIND_FOREIGN[mode]]);
    return exitCode === 0 ? [] : [`rules of another program: ${stderr}`];
  }
}

const FIND_TABLE = `table=$(nft list tables ip | awk '/ junction-[ab]$/{print $3}')`;

const NFT = {
  flush: 'nft flush ruleset',
  deleteHooks: `${FIND_TABLE}; nft list table ip $table | awk '/chain /{c=$2} /hook /{print c}' | while read -r chain; do
    nft flush chain ip $table "$chain"; nft delete chain ip $table "$chain"; done`,
  deleteService: `${FIND_TABLE}; nft -nn list table ip $table | awk '/(map|set) .*{$/{s=$2} index($0, ip){print s}' ip="$1 " | sort -u |
    while read -r set; do nft flush set ip $table "$set" 2>/dev/null || nft flush map ip $table "$set"; done`,
  addOwnRules: 'nft add table inet mine; nft add chain inet mine rules',
};

const FOREIGN = ['-p tcp --dport 22 -j ACCEPT', '-s 172.17.0.0/16 ! -o docker0 -j MASQUERADE'];

function iptablesScripts(variant: string) {
  const tables = `for table in nat filter; do`;
  return {
    flush: `${tables} iptables-${variant} -t $table -F; iptables-${variant} -t $table -X; done`,
    deleteHooks: `for chain in PREROUTING OUTPUT POSTROUTING; do iptables-${variant} -t nat -F $chain; done
      for chain in INPUT OUTPUT FORWARD; do iptables-${variant} -F $chain; done`,
    deleteService: `${tables} iptables-${variant}-save -t $table | grep -- "^-A.* $1/32" | sed s/^-A/-D/ |
      (echo "*$table"; cat; echo COMMIT) | iptables-${variant}-restore --noflush; done`,
    addOwnRules: `iptables-${variant} -A INPUT ${FOREIGN[0]}; iptables-${variant} -t nat -A POSTROUTING ${FOREIGN[1]}`,
  };
}

const IPVS = iptablesScripts('legacy');

const SCRIPTS: Readonly<Record<RealMode, Readonly<Record<Deed['kind'], string>>>> = {
  nftables: NFT,
  'nftables-unprotected': NFT,
  'iptables-nft': iptablesScripts('nft'),
  'iptables-legacy': iptablesScripts('legacy'),
  ipvs: {
    ...IPVS,
    flush: `ipvsadm -C; ${IPVS.flush}; for set in $(ipset list -n); do ipset flush $set; done; ip link del kube-ipvs0`,
    deleteService: 'ipvsadm -D -t "$1:80"; ip address del "$1/32" dev kube-ipvs0',
  },
};

function findForeign(variant: string): string {
  return `iptables-${variant} -C INPUT ${FOREIGN[0]} && iptables-${variant} -t nat -C POSTROUTING ${FOREIGN[1]}`;
}

const FIND_FOREIGN: Readonly<Record<RealMode, string>> = {
  nftables: 'nft list chain inet mine rules',
  'nftables-unprotected': 'nft list chain inet mine rules',
  'iptables-nft': findForeign('nft'),
  'iptables-legacy': findForeign('legacy'),
  ipvs: findForeign('legacy'),
};
