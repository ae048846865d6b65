/** Which tables a packet passes on this machine, so far as that can be asked without reading them. */
import { readFileSync } from 'node:fs';
import { attempt } from '../../errors.ts';
import type { Family } from '../../model/ip.ts';
import { NLM_F_DUMP } from '../../netlink/codec.ts';
import { decodeTable, getTables } from '../../netlink/nftables/objects.ts';
import { NETLINK_NETFILTER } from '../../netlink/socket.ts';
import { requestOnce } from '../../netlink/request.ts';
import type { Variant } from './variant.ts';

export interface KernelTables {
  /** Tables of iptables that packets come to. */
  readonly names: ReadonlySet<string>;
  /** Those of the nft variant with few chains: one process lists all of them as quickly as one chain. */
  readonly small?: ReadonlySet<string>;
  /** Tables of nf_tables that other programs have, and how many chains all tables of this family have. */
  readonly others?: readonly NftTable[];
  readonly objects?: number;
  /** What else a packet passes, or why a table is left out. */
  readonly notes: readonly string[];
}

export const IPTABLES_TABLES: ReadonlySet<string> = new Set(['raw', 'mangle', 'nat', 'filter', 'security']);

const FEW_OBJECTS = 200;

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
  const small = ours.filter(({ objects }) => objects < FEW_OBJECTS);
  return {
    names: new Set(names),
    small: new Set(small.map(({ name }) => name)),
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
  const request = getTables(family);
  const reply = requestOnce(NETLINK_NETFILTER, { ...request, flags: request.flags | NLM_F_DUMP });
  if (typeof reply === 'string' || reply.kind !== 'answered') return [];
  return reply.messages
    .map(({ payload }) => decodeTable(payload))
    .map(({ name, isDormant, objects }) => ({ family, name, isDormant, objects }));
}

function legacyTables(family: Family): readonly string[] {
  const file = family === 'IPv4' ? '/proc/net/ip_tables_names' : '/proc/net/ip6_tables_names';
  const text = attempt(() => readFileSync(file, 'utf8')) ?? '';
  return text.split('\n').filter((name) => name !== '');
}
