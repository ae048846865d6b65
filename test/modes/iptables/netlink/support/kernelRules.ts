/** Rules as `iptables-nft-restore` writes them, read raw from the kernel. Runs inside a namespace. */
import { spawnSync } from 'node:child_process';
import type { Family } from '../../../../../src/model/ip.ts';
import { AttributeTable, withDefault } from '../../../../../src/netlink/attributes.ts';
import { bytes } from '../../../../../src/netlink/kinds.ts';
import { NFGENMSG_BYTES } from '../../../../../src/netlink/generic.ts';
import { getRules } from '../../../../../src/netlink/nftables/objects.ts';
import { NETLINK_NETFILTER } from '../../../../../src/netlink/socket.ts';
import { SyncSocket } from '../../../../netlink/support/syncSocket.ts';
import { dumpMessages } from '../../../../netlink/support/readers.ts';

const NFT_FAMILY = { IPv4: 'ip', IPv6: 'ip6' } as const;
export const PROGRAM = { IPv4: 'iptables-nft', IPv6: 'ip6tables-nft' } as const;

export function runInside(argv: readonly [string, ...string[]], input = ''): string {
  const [command, ...args] = argv;
  const { status, stdout, stderr } = spawnSync(command, args, { input, encoding: 'utf8' });
  if (status !== 0) throw new Error(`${argv.join(' ')}: ${stderr}`);
  return stdout;
}

export function restore(family: Family, input: string): void {
  runInside([`${PROGRAM[family]}-restore`, '--noflush', '--counters'], input);
}

const RAW_RULE = new AttributeTable('a rule', {
  expressions: withDefault(4, bytes, new Uint8Array()),
});

interface RawRule {
  readonly payload: Uint8Array;
  /** The bytes of NFTA_RULE_EXPRESSIONS. */
  readonly expressions: Uint8Array;
}

export function rawRules(family: Family, table: string): readonly RawRule[] {
  const socket = SyncSocket.open(NETLINK_NETFILTER);
  try {
    const request = getRules({ family: NFT_FAMILY[family], table });
    return dumpMessages(socket, table, request).map(({ payload }) => ({
      ...RAW_RULE.read(payload, NFGENMSG_BYTES),
      payload,
    }));
  } finally {
    socket.close();
  }
}

export function hex(value: Uint8Array): string {
  return Buffer.from(value.buffer, value.byteOffset, value.length).toString('hex');
}
