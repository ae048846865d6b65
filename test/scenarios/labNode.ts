/** Junction on the lab's node1: the real proxy and the real iptables programs, in that node's network. */
import type { LayoutName } from '../../src/modes/iptables/rules/fragment.ts';
import type { ReadingClient } from '../../src/modes/iptables/chains.ts';
import type { IptablesClient } from '../../src/modes/iptables/client.ts';
import type { Variant } from '../../src/modes/iptables/variant.ts';
import { run } from '../../src/system/processes.ts';
import { prefixed } from '../../lab/prefixed.ts';
import type { Host } from '../../lab/host.ts';
import { FAMILIES, type Family } from '../../src/model/ip.ts';
import type { Plan } from '../../src/plan/types.ts';
import { type MemoryTables, parseSave } from '../modes/iptables/rules/tables.ts';
import type { IptablesReader } from '../../src/modes/iptables/inspect.ts';
import {
  ALL_TABLES,
  type GivenIptables,
  iptablesMode,
  iptablesReader,
  openIptables,
} from '../contract/modes.ts';
import { node1Addresses, type Scenario } from './scenario.ts';
import { ScenarioProxies } from './scenarioProxies.ts';

export interface LabNodeOptions {
  readonly layout: LayoutName;
  readonly variant: Variant;
  /** So that other people's iptables does not wait for this one. */
  readonly lockPath: string;
}

interface ReaderOptions {
  readonly legacyTables?: readonly string[];
  /** Unset: both ways to read them, each in one family. */
  readonly byChain?: boolean;
}

function givenOf(client: IptablesClient, layout: LayoutName): GivenIptables {
  return { client, layout, nodeIps: () => node1Addresses(client.family) };
}

export class LabNode {
  readonly layout: LayoutName;
  readonly #clients: readonly IptablesClient[];
  readonly #proxies: ScenarioProxies;
  #applied = 0;

  private constructor(layout: LayoutName, clients: readonly IptablesClient[]) {
    this.layout = layout;
    this.#clients = clients;
    this.#proxies = new ScenarioProxies(
      clients.map((client) => ({
        family: client.family,
        start: () => iptablesMode(givenOf(client, layout)),
      })),
    );
  }

  static async start(host: Host, { layout, variant, lockPath }: LabNodeOptions): Promise<LabNode> {
    const runner = prefixed(run, ['nsenter', `--net=/proc/${host.pid}/ns/net`]);
    const clients = FAMILIES.map((family) => openIptables(family, runner, { variant, lockPath }));
    return new LabNode(layout, await Promise.all(clients));
  }

  plan(family: Family): Plan {
    return this.#proxies.plan(family);
  }

  /** What is in node1's kernel. */
  async tables(family: Family): Promise<MemoryTables> {
    const client = this.#client(family);
    const saved: string[] = [];
    for (const table of ['filter', 'nat'])
      await client.readTable(table, async (text) => void saved.push(text));
    return parseSave(saved.join(''));
  }

  /**
   * Reads node1's kernel for questions, until rules change: whole tables, or each chain by a program of its own. To ask
   * legacy for another table would create it.
   */
  reader(
    family: Family,
    { legacyTables = ['filter', 'nat'], byChain = family === 'IPv4' }: ReaderOptions = {},
  ): IptablesReader {
    const client = this.#client(family);
    const names = client.variant === 'nft' ? ALL_TABLES.names : new Set(legacyTables);
    return iptablesReader(
      { ...givenOf(client, this.layout), client: byChain ? client : readOnce(client) },
      () => ({ names, notes: [] }),
      () => this.#applied,
    );
  }

  #client(family: Family): IptablesClient {
    const client = this.#clients.find((other) => other.family === family);
    if (!client) throw new Error(`no iptables for ${family}`);
    return client;
  }

  apply(scenario: Scenario): Promise<void> {
    this.#applied++;
    return this.#proxies.apply(scenario);
  }
}

/** Reads each table whole, once. */
function readOnce(client: IptablesClient): ReadingClient {
  const tables = new Map<string, Promise<string>>();
  const read = async (table: string): Promise<string> => {
    let text = '';
    await client.readTable(table, async (part) => void (text += part));
    return text;
  };
  return {
    family: client.family,
    variant: 'legacy',
    listRules: (...asked) => client.listRules(...asked),
    readTable: async (table, take) => {
      const text = tables.get(table) ?? read(table);
      tables.set(table, text);
      await take(await text);
    },
  };
}
