/**
 * A rule's arguments, as words, into a `Rule`. What Junction never writes becomes `other`, word for word.
 *
 * Both dialects are read: what Junction prints (`-m tcp -p tcp -d X --dport N`) and what `iptables-save` prints of it
 * (`-d X/32 -p tcp … -m tcp --dport N`). The protocol keeps the place of its `-m`, as it does in the kernel.
 */
import { parseCidr, parseIp } from '../../../model/ip.ts';
import { isPlainComment } from './print.ts';
import type { ConntrackState, Match, Rule, Target } from './rule.ts';

type Protocol = 'tcp' | 'udp' | 'sctp';

/** Some saves print a protocol as its number. */
const PROTOCOLS: ReadonlyMap<string, Protocol> = new Map([
  ['tcp', 'tcp'],
  ['6', 'tcp'],
  ['udp', 'udp'],
  ['17', 'udp'],
  ['sctp', 'sctp'],
  ['132', 'sctp'],
]);

/** Throws a plain `Error` with the reason when the words cannot be a rule. */
export function parseRule(words: readonly string[], start = 0): Rule {
  const matches: Match[] = [];
  let target: Target | undefined;
  /** Named by `-p`. */
  let named: Protocol | undefined;
  let namedAt = 0;
  /** Brought by `-m`, or by an option of the protocol's module, which loads it. */
  let loaded: Protocol | undefined;
  let at = start;
  while (at < words.length) {
    const from = at;
    const not = words[at] === '!';
    if (not) at++;
    const option = words[at++];
    const value = words[at];
    switch (option) {
      case '-s':
      case '--source':
      case '--src':
        matches.push(addressMatch('source', required(option, value), not));
        at++;
        break;
      case '-d':
      case '--destination':
      case '--dst':
        matches.push(addressMatch('destination', required(option, value), not));
        at++;
        break;
      case '-i':
      case '--in-interface':
        matches.push({ kind: 'inInterface', name: required(option, value), not });
        at++;
        break;
      case '-p':
      case '--protocol':
      case '--proto': {
        const protocol = PROTOCOLS.get(required(option, value));
        at++;
        if (protocol === undefined || not) {
          matches.push({ kind: 'other', args: words.slice(from, at) });
        } else {
          named = protocol;
          namedAt = matches.length;
        }
        break;
      }
      case '-m':
      case '--match': {
        const module = required(option, value);
        at++;
        if (module === 'tcp' || module === 'udp' || module === 'sctp') {
          loaded = module;
          matches.push({ kind: 'protocol', protocol: module });
          break;
        }
        const end = module === 'comment' ? Math.min(at + 2, words.length) : endOfOptions(words, at);
        matches.push(moduleMatch(module, words, from, at, end));
        at = end;
        break;
      }
      case '-j':
      case '--jump':
      case '-g':
      case '--goto': {
        if (target !== undefined) throw new Error('more than one target');
        required(option, value);
        const end = endOfOptions(words, at + 1);
        target = interpretTarget(words.slice(from, end));
        at = end;
        break;
      }
      case undefined:
        throw new Error('a negation of nothing');
      default: {
        if (loaded === undefined && named !== undefined && option.startsWith('--')) {
          loaded = named;
          matches.push({ kind: 'protocol', protocol: named });
        }
        const end = endOfOption(words, at);
        matches.push(plainOption(words, from, end, not));
        at = end;
      }
    }
  }
  if (loaded !== undefined && loaded !== named) throw new Error(`-m ${loaded} without -p ${loaded}`);
  if (named !== undefined && loaded === undefined) {
    matches.splice(namedAt, 0, { kind: 'protocol', protocol: named, bare: true });
  }
  return { matches, target };
}

function required(option: string, value: string | undefined): string {
  if (value === undefined) throw new Error(`${option} needs an argument`);
  return value;
}

function addressMatch(kind: 'source' | 'destination', text: string, not: boolean): Match {
  const cidr = text.includes('/') ? parseCidr(text) : parseIp(text);
  if (cidr !== undefined) return { kind, cidr, not };
  const option = kind === 'source' ? '-s' : '-d';
  return { kind: 'other', args: not ? ['!', option, text] : [option, text] };
}

function moduleMatch(
  module: string,
  words: readonly string[],
  from: number,
  options: number,
  end: number,
): Match {
  if (module === 'comment') {
    const text = words[options + 1];
    if (words[options] !== '--comment' || text === undefined) throw new Error('-m comment needs --comment');
    if (isPlainComment(text)) return { kind: 'comment', text };
    return { kind: 'other', args: words.slice(from, end) };
  }
  return interpretMatch(module, words.slice(options, end)) ?? { kind: 'other', args: words.slice(from, end) };
}

function plainOption(words: readonly string[], from: number, end: number, not: boolean): Match {
  const option = words[from];
  const value = words[from + 1];
  if ((option === '--dport' || option === '--destination-port') && !not && value !== undefined) {
    if (end === from + 2 && /^\d{1,5}$/.test(value)) return { kind: 'destinationPort', port: Number(value) };
  }
  return { kind: 'other', args: words.slice(from, end) };
}

/** Options that never belong to the module or target before them. */
const BOUNDARIES: ReadonlySet<string | undefined> = new Set(
  '-m -j -g -s -d -p -i -o -f --match --jump --goto --dport --sport --destination-port --source-port'.split(
    ' ',
  ),
);

function endOfOptions(words: readonly string[], from: number): number {
  let at = from;
  while (
    at < words.length &&
    !BOUNDARIES.has(words[at]) &&
    !(words[at] === '!' && BOUNDARIES.has(words[at + 1]))
  )
    at++;
  return at;
}

function endOfOption(words: readonly string[], from: number): number {
  let at = from;
  while (at < words.length && words[at] !== '!' && words[at]?.startsWith('-') === false) at++;
  return at;
}

/** What a known match module's options say; `undefined` for any other use, which is kept word for word. */
function interpretMatch(module: string, options: readonly string[]): Match | undefined {
  const not = options[0] === '!';
  const [option, value, ...rest] = not ? options.slice(1) : options;
  switch (module) {
    case 'statistic':
      return statistic(options);
    case 'recent':
      return recent(options);
    case 'mark':
      return option === '--mark' && value !== undefined && rest.length === 0 ? mark(value, not) : undefined;
    case 'conntrack':
      return option === '--ctstate' && value !== undefined && rest.length === 0
        ? conntrackState(value, not)
        : undefined;
    case 'addrtype':
      if (value !== 'LOCAL' || rest.length > 0) return undefined;
      if (option === '--src-type') return { kind: 'addressType', side: 'src', type: 'LOCAL', not };
      if (option === '--dst-type') return { kind: 'addressType', side: 'dst', type: 'LOCAL', not };
      return undefined;
    case 'physdev':
      return option === '--physdev-is-in' && value === undefined ? { kind: 'physdevIsIn', not } : undefined;
    case 'nfacct':
      return option === '--nfacct-name' && value !== undefined && rest.length === 0 && !not
        ? { kind: 'nfacct', name: value }
        : undefined;
    case 'set':
      return option === '--match-set' && !not ? matchSet(value, rest) : undefined;
    case 'ipvs':
      return virtualServer(options);
    default:
      return undefined;
  }
}

/** `0x4000`, `0x4000/0xffff`, `16`. */
function parseMark(text: string): { readonly value: number; readonly mask: number } | undefined {
  const slash = text.indexOf('/');
  const value = parseNumber(slash < 0 ? text : text.slice(0, slash));
  const mask = slash < 0 ? 0xffff_ffff : parseNumber(text.slice(slash + 1));
  return value === undefined || mask === undefined ? undefined : { value, mask };
}

function parseNumber(text: string): number | undefined {
  if (!/^(?:0[xX][0-9a-fA-F]{1,8}|[1-9][0-9]{0,9}|0)$/.test(text)) return undefined;
  const value = Number(text);
  return value <= 0xffff_ffff ? value : undefined;
}

function mark(text: string, not: boolean): Match | undefined {
  const parsed = parseMark(text);
  return parsed && { kind: 'mark', value: parsed.value, mask: parsed.mask, not };
}

function statistic(options: readonly string[]): Match | undefined {
  const [mode, random, option, probability, ...rest] = options;
  if (mode !== '--mode' || random !== 'random' || option !== '--probability' || rest.length > 0)
    return undefined;
  if (probability === undefined || !/^[01]\.?[0-9]*$/.test(probability)) return undefined;
  return { kind: 'statistic', probability };
}

function conntrackState(text: string, not: boolean): Match | undefined {
  const states = text.split(',');
  return states.every(isConntrackState) ? { kind: 'conntrackState', states, not } : undefined;
}

const STATES: ReadonlySet<string> = new Set<ConntrackState>([
  'NEW',
  'ESTABLISHED',
  'RELATED',
  'INVALID',
  'DNAT',
  'SNAT',
  'UNTRACKED',
]);

function isConntrackState(text: string): text is ConntrackState {
  return STATES.has(text);
}

/** A save adds `--rsource` and the mask of a single address, which are the defaults. */
function recent(options: readonly string[]): Match | undefined {
  let name: string | undefined;
  let seconds: number | undefined;
  let action: 'set' | 'check' | undefined;
  let reap = false;
  for (let at = 0; at < options.length; at++) {
    switch (options[at]) {
      case '--name':
        name = options[++at];
        break;
      case '--set':
        action = 'set';
        break;
      case '--rcheck':
        action = 'check';
        break;
      case '--seconds':
        seconds = Number(options[++at]);
        break;
      case '--reap':
        reap = true;
        break;
      case '--rsource':
        break;
      case '--mask':
        if (!isHostMask(options[++at])) return undefined;
        break;
      default:
        return undefined;
    }
  }
  if (name === undefined) return undefined;
  if (action === 'set') return seconds === undefined && !reap ? { kind: 'recentSet', name } : undefined;
  if (action !== 'check' || seconds === undefined || !Number.isSafeInteger(seconds)) return undefined;
  return { kind: 'recentCheck', name, seconds, reap };
}

function isHostMask(mask: string | undefined): boolean {
  return mask === '255.255.255.255' || mask === 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff';
}

function matchSet(name: string | undefined, rest: readonly string[]): Match | undefined {
  const [sides, ...more] = rest;
  if (name === undefined || sides === undefined || more.length > 0) return undefined;
  const each = sides.split(',');
  return each.every(isSide) ? { kind: 'set', name, sides: each } : undefined;
}

function isSide(text: string): text is 'src' | 'dst' {
  return text === 'src' || text === 'dst';
}

function virtualServer(options: readonly string[]): Match | undefined {
  const values = new Map<string, string>();
  for (let at = 0; at < options.length; at += 2) values.set(options[at] ?? '', options[at + 1] ?? '');
  const protocol = PROTOCOLS.get(values.get('--vproto') ?? '');
  const address = parseIp((values.get('--vaddr') ?? '').replace(/\/(?:32|128)$/, ''));
  const port = values.get('--vport') ?? '';
  if (protocol === undefined || address === undefined || !/^\d{1,5}$/.test(port) || values.size !== 3)
    return undefined;
  return { kind: 'virtualServer', protocol, address, port: Number(port) };
}

/** Target extensions of iptables and ip6tables: any other name is a chain's. */
const EXTENSIONS: ReadonlySet<string> = new Set(
  (
    'AUDIT CHECKSUM CLASSIFY CLUSTERIP CONNMARK CONNSECMARK CT DNAT DNPT DSCP ECN HL HMARK IDLETIMER LED LOG MARK ' +
    'MASQUERADE NETMAP NFLOG NFQUEUE NOTRACK QUEUE RATEEST REDIRECT REJECT SECMARK SET SNAT SNPT SYNPROXY TCPMSS ' +
    'TCPOPTSTRIP TEE TOS TPROXY TRACE TTL ULOG'
  ).split(' '),
);

/** `words` begins with `-j` or `-g`. */
function interpretTarget(words: readonly string[]): Target {
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
