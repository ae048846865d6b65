/** The modes that every kernel has, and what each has written. */
import type { Host } from '../../../lab/host.ts';
import { ourTables } from './nftTable.ts';
import { ourRules } from './rules.ts';

export const MODES = [
  { mode: 'iptables', written: (node: Host): Promise<string> => ourRules(node) },
  { mode: 'nftables', written: ourTables },
] as const;
