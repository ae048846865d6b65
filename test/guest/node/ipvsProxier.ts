/** The real IPVS proxy and its reader, in the network that this process is in. */
import { readFileSync } from 'node:fs';
import type { ReadingClient } from '../../../src/modes/iptables/chains.ts';
import type { IptablesClient } from '../../../src/modes/iptables/client.ts';
import { TablesReader } from '../../../src/modes/iptables/tablesReader.ts';
import { channelsOf, NetlinkIpvsClient } from '../../../src/modes/ipvs/client.ts';
import { IpvsReader } from '../../../src/modes/ipvs/inspect.ts';
import { applyIpvsSysctls } from '../../../src/modes/ipvs/settings.ts';
import { NetlinkSockets } from '../../../src/netlink/sockets.ts';
import { createLog } from '../../../src/log/log.ts';
import { FAMILIES, type Family, hostPort, type Ip, ipOfBytes } from '../../../src/model/ip.ts';
import { armable, Faults, faultyIpvs } from '../../contract/faults.ts';
import { IPVS_SETTINGS, ipvsMode, openIptables, withoutLoopback } from '../../contract/modes.ts';
import { run } from '../../../src/system/processes.ts';
import type { FamilyWriter } from '../../scenarios/scenarioProxies.ts';
import { node1Addresses } from '../../scenarios/scenario.ts';

export async function openIpvs(): Promise<readonly FamilyWriter[]> {
  const channels = channelsOf(new NetlinkSockets());
  applyIpvsSysctls({ strictARP: false }, createLog({ verbosity: 0, format: 'text' }));
  return Promise.all(
    FAMILIES.map(async (family): Promise<FamilyWriter> => {
      const lockPath = '/run/junction-xtables.lock';
      const { runner, arm } = armable(run);
      const iptables = await openIptables(family, runner, { variant: 'legacy', lockPath });
      const client = new NetlinkIpvsClient(family, channels);
      const saves = new Saves(iptables);
      const nodeIps = (): readonly Ip[] => withoutLoopback(node1Addresses(family));
      return {
        family,
        start: (faults = new Faults()) =>
          ipvsMode({ iptables: arm(iptables, faults), client: faultyIpvs(client, faults) }, nodeIps),
        kernel: new IpvsReader({
          family,
          tables: new TablesReader({ client: saves }),
          client,
          settings: { ...IPVS_SETTINGS, randomFully: iptables.features.randomFully },
          nodeIps,
        }),
        beforeQuestions: () => saves.clear(),
        counters: async () => connectionsOf(family),
      };
    }),
  );
}

/** A program takes long to start in the guest: one save of a table serves many questions. */
class Saves implements ReadingClient {
  readonly family: Family;
  readonly variant = 'legacy';
  readonly #client: IptablesClient;
  readonly #texts = new Map<string, Promise<string>>();

  constructor(client: IptablesClient) {
    this.family = client.family;
    this.#client = client;
  }

  clear(): void {
    this.#texts.clear();
  }

  listRules(...args: Parameters<IptablesClient['listRules']>): Promise<string | undefined> {
    return this.#client.listRules(...args);
  }

  async readTable(table: string, take: (text: string) => Promise<void>): Promise<void> {
    const text = this.#texts.get(table) ?? this.#read(table);
    this.#texts.set(table, text);
    await take(await text);
  }

  async #read(table: string): Promise<string> {
    const pieces: string[] = [];
    await this.#client.readTable(table, async (piece) => void pieces.push(piece));
    return pieces.join('');
  }
}

/** `TCP 10.96.0.1:80 -> 10.244.1.11:8080 for 10.244.1.12:40000`: what IPVS keeps of each connection. */
function connectionsOf(family: Family): ReadonlyMap<string, number> {
  const lines = readFileSync('/proc/net/ip_vs_conn', 'utf8').split('\n').slice(1);
  return new Map(lines.flatMap((line) => connectionIn(line, family) ?? []).map((text) => [text, 1]));
}

/** `TCP 0AF4010C 9C40 0A600001 0050 0AF4010B 1F90 ESTABLISHED 899`; IPv6 addresses are in brackets. */
function connectionIn(line: string, family: Family): string | undefined {
  const [protocol = '', client = '', clientPort, server = '', serverPort, endpoint = '', port] =
    line.split(/ +/);
  const at = (address: string, hex = ''): string => hostPort(addressIn(address), Number.parseInt(hex, 16));
  // Port 0 is that of a persistence entry.
  if (line === '' || clientPort === '0000' || client.startsWith('[') !== (family === 'IPv6'))
    return undefined;
  return `${protocol} ${at(server, serverPort)} -> ${at(endpoint, port)} for ${at(client, clientPort)}`;
}

function addressIn(text: string): Ip {
  const ip = ipOfBytes(Buffer.from(text.replaceAll(/[^0-9A-Fa-f]/g, ''), 'hex'));
  if (ip === undefined) throw new Error(`not an address: ${text}`);
  return ip;
}
