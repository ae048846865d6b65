/** Which tables a packet passes on this machine, so far as that can be asked without reading them. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { attempt, JunctionError } from '../../errors.ts';
import type { Family } from '../../model/ip.ts';
import { type Message, NLM_F_DUMP } from '../../netlink/codec.ts';
import { namesIn, type TablePlace } from '../../netlink/nftables/message.ts';
import {
  decodeRule,
  decodeTable,
  getChain,
  getChains,
  getRules,
  getTables,
} from '../../netlink/nftables/objects.ts';
import { NETLINK_NETFILTER } from '../../netlink/socket.ts';
import { type NetlinkRequest, requestOnce } from '../../netlink/request.ts';
import { readSysctl } from '../../system/sysctl.ts';
import type { Variant } from './variant.ts';

export interface KernelTables {
  /** Tables of iptables that packets come to. */
  readonly names: ReadonlySet<string>;
  /** Tables of nf_tables that other programs have, and how many chains all tables of this family have. */
  readonly others?: readonly NftTable[];
  readonly objects?: number;
  /** What else a packet passes, or why a table is left out. */
  readonly notes: readonly string[];
}

const IPTABLES_TABLES: ReadonlySet<string> = new Set(['raw', 'mangle', 'nat', 'filter', 'security']);

/**
 * To ask legacy for a table makes the kernel create it, and some versions of the nft variant create it too: hence nobody is
 * asked for what is not there.
 */
export function readKernelTables(family: Family, variant: Variant): KernelTables {
  const legacy = legacyTables(family);
  const nft = nftTables(family === 'IPv4' ? 'ip' : 'ip6');
  const isTable = ({ name }: NftTable): boolean => IPTABLES_TABLES.has(name);
  const ours = variant === 'nft' ? nft.filter(isTable) : [];
  const others = [...nft.filter((table) => !ours.includes(table)), ...nftTables('inet')].filter(
    ({ isDormant }) => !isDormant,
  );
  const dormant = ours.filter(({ isDormant }) => isDormant);
  const names =
    variant === 'nft' ? ours.filter(({ isDormant }) => !isDormant).map(({ name }) => name) : legacy;
  return {
    names: new Set(names),
    others,
    objects: nft.reduce((sum, { objects }) => sum + objects, 0),
    notes: [
      ...dormant.map(({ name }) => `table ${name} is dormant: packets do not come to its chains`),
      ...(variant === 'nft' && legacy.length > 0
        ? [`not evaluated: rules of iptables-legacy, in ${legacy.join(', ')}`]
        : []),
    ],
  };
}

export interface NftTable {
  readonly family: 'ip' | 'ip6' | 'inet';
  readonly name: string;
  readonly isDormant: boolean;
  /** How many chains and sets it has. */
  readonly objects: number;
}

/** None where the kernel has no nf_tables. */
function nftTables(family: NftTable['family']): readonly NftTable[] {
  return (attempt(() => dump(getTables(family))) ?? []).map(({ payload }) => {
    const { name, isDormant, objects } = decodeTable(payload);
    return { family, name, isDormant, objects };
  });
}

function legacyTables(family: Family): readonly string[] {
  const file = family === 'IPv4' ? '/proc/net/ip_tables_names' : '/proc/net/ip6_tables_names';
  const text = attempt(() => readFileSync(file, 'utf8')) ?? '';
  return text.split('\n').filter((name) => name !== '');
}

/** Bridges whose packets iptables sees with their port, for the match physdev. */
export function filteredBridges(family: Family): ReadonlySet<string> {
  const setting = `net/bridge/bridge-nf-call-${family === 'IPv4' ? 'iptables' : 'ip6tables'}`;
  if (attempt(() => readSysctl(setting)) !== '1') return new Set();
  const names = attempt(() => readdirSync(DEVICES)) ?? [];
  return new Set(names.filter((name) => existsSync(`${DEVICES}/${name}/bridge`)));
}

const DEVICES = '/sys/class/net';

/* What nf_tables has of iptables, asked of the kernel: programs list everything, 5 s with 10,000 services, to answer as much. */

export interface NftLook {
  hasChain(table: string, chain: string): boolean;
  /** None where there is no such table. */
  chainNames(table: string): ReadonlySet<string>;
  /** Where the rules of this chain lead, in their order: a chain, or `ACCEPT`. */
  jumps(table: string, chain: string): readonly string[];
  /** Rules of iptables in all of its tables. Counting ends once there are more than `most`. */
  countRules(most: number): number;
}

/** In this thread's network namespace. A kernel without nf_tables, or one that refuses, has no tables. */
export function nftLook(family: Family): NftLook {
  const placeOf = (table: string): TablePlace => ({ family: family === 'IPv4' ? 'ip' : 'ip6', table });
  return {
    hasChain: (table, chain) => {
      const reply = requestOnce(NETLINK_NETFILTER, getChain({ ...placeOf(table), chain }));
      return typeof reply === 'object' && reply.kind === 'answered';
    },
    chainNames: (table) => {
      const names = new Set<string>();
      for (const message of dump(getChains(placeOf(table).family))) {
        const { table: its, chain } = namesIn(message);
        if (its === table && chain !== undefined) names.add(chain);
      }
      return names;
    },
    jumps: (table, chain) =>
      dump(getRules(placeOf(table), chain)).flatMap(({ payload }) =>
        decodeRule(payload).expressions.flatMap((each) =>
          each.kind === 'verdict' ? (each.chain ?? each.verdict.toUpperCase()) : [],
        ),
      ),
    countRules: (most) => {
      let count = 0;
      for (const table of IPTABLES_TABLES) if (count <= most) count += countIn(placeOf(table), most - count);
      return count;
    },
  };
}

/** iptables gives every rule a counter. A rule without one is a rule of nft, which iptables would not print. */
function countIn(place: TablePlace, most: number): number {
  let count = 0;
  for (const { payload } of attempt(() => dump(getRules(place))) ?? []) {
    if (decodeRule(payload).expressions.some(({ kind }) => kind === 'counter')) count++;
    if (count > most) break;
  }
  return count;
}

/** Only a runaway program changes a table faster than it can be read. */
const READINGS = 10;

function dump(request: NetlinkRequest): readonly Message[] {
  for (let reading = 1; ; reading++) {
    const reply = requestOnce(NETLINK_NETFILTER, { ...request, flags: request.flags | NLM_F_DUMP });
    if (typeof reply === 'string') throw new JunctionError('NETLINK_FAILED', reply);
    if (reply.kind === 'refused')
      throw new JunctionError('NETLINK_FAILED', `netlink: tables of iptables cannot be read: ${reply.name}`);
    if (!reply.interrupted || reading === READINGS) return reply.messages;
  }
}
