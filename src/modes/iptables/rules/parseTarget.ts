/** What follows `-j` or `-g`. */
import { parseMark } from './parseMatch.ts';
import type { Target } from './rule.ts';

/** Target extensions of iptables and ip6tables: any other name is a chain's. */
const EXTENSIONS: ReadonlySet<string> = new Set(
  (
    'AUDIT CHECKSUM CLASSIFY CLUSTERIP CONNMARK CONNSECMARK CT DNAT DNPT DSCP ECN HL HMARK IDLETIMER LED LOG MARK ' +
    'MASQUERADE NETMAP NFLOG NFQUEUE NOTRACK QUEUE RATEEST REDIRECT REJECT SECMARK SET SNAT SNPT SYNPROXY TCPMSS ' +
    'TCPOPTSTRIP TEE TOS TPROXY TRACE TTL ULOG'
  ).split(' '),
);

/** `words` begins with `-j` or `-g`. */
export function interpretTarget(words: readonly string[]): Target {
  const [jump, name = '', option, value, ...rest] = words;
  const other: Target = { kind: 'other', args: words };
  if (jump !== '-j' && jump !== '--jump') return other;
  if (rest.length > 0) return other;
  switch (name) {
    case 'ACCEPT':
      return option === undefined ? { kind: 'accept' } : other;
    case 'DROP':
      return option === undefined ? { kind: 'drop' } : other;
    case 'RETURN':
      return option === undefined ? { kind: 'return' } : other;
    case 'REJECT':
      return option === undefined || isDefaultReject(option, value) ? { kind: 'reject' } : other;
    case 'MARK':
      return markTarget(option, value) ?? other;
    case 'DNAT':
      return option === '--to-destination' && value !== undefined ? { kind: 'dnat', to: value } : other;
    case 'MASQUERADE':
      if (option === undefined) return { kind: 'masquerade', randomFully: false };
      return option === '--random-fully' && value === undefined
        ? { kind: 'masquerade', randomFully: true }
        : other;
    default:
      return option === undefined && !EXTENSIONS.has(name) ? { kind: 'jump', chain: name } : other;
  }
}

function isDefaultReject(option: string, value: string | undefined): boolean {
  return (
    option === '--reject-with' && (value === 'icmp-port-unreachable' || value === 'icmp6-port-unreachable')
  );
}

function markTarget(option: string | undefined, text: string | undefined): Target | undefined {
  if (text === undefined) return undefined;
  const parsed = parseMark(text);
  if (!parsed) return undefined;
  const { value, mask } = parsed;
  if (option === '--or-mark' && !text.includes('/')) return { kind: 'mark', operation: 'or', value };
  if (option === '--xor-mark' && !text.includes('/')) return { kind: 'mark', operation: 'xor', value };
  if (option !== '--set-xmark' || !text.includes('/')) return undefined;
  if (mask === 0) return { kind: 'mark', operation: 'xor', value };
  return mask === value ? { kind: 'mark', operation: 'set', value } : undefined;
}
