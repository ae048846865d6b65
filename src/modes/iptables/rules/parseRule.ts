/**
 * A rule's arguments, as words, into a `Rule`. What Junction never writes becomes `other`, word for word.
 *
 * Both dialects are read: what Junction prints (`-m tcp -p tcp -d X --dport N`) and what `iptables-save` prints of it
 * (`-d X/32 -p tcp … -m tcp --dport N`), in short options alone. The protocol keeps the place of its `-m`, as it does in
 * the kernel.
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

/** Options with a value that are no match module's or target's. */
const OPTIONS: ReadonlySet<string> = new Set('-s -d -i -p -m -j -g'.split(' '));

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
    if (option === undefined) throw new Error('a negation of nothing');
    if (!OPTIONS.has(option)) {
      if (loaded === undefined && named !== undefined && option.startsWith('--')) {
        loaded = named;
        matches.push({ kind: 'protocol', protocol: named });
      }
      at = endOfOption(words, at);
      matches.push(plainOption(words.slice(from, at)));
      continue;
    }
    const value = words[at++];
    if (value === undefined) throw new Error(`${option} needs an argument`);
    switch (option) {
      case '-s':
      case '-d':
        matches.push(addressMatch(option, value, not));
        break;
      case '-i':
        matches.push({ kind: 'inInterface', name: value, not });
        break;
      case '-p':
        named = not ? undefined : PROTOCOLS.get(value);
        if (named === undefined) matches.push({ kind: 'other', args: words.slice(from, at) });
        else namedAt = matches.length;
        break;
      case '-m':
        if (value === 'tcp' || value === 'udp' || value === 'sctp') {
          loaded = value;
          matches.push({ kind: 'protocol', protocol: value });
        } else {
          const options = at;
          at = value === 'comment' ? Math.min(at + 2, words.length) : endOfOptions(words, at);
          const match = moduleMatch(value, words.slice(options, at));
          matches.push(match ?? { kind: 'other', args: words.slice(from, at) });
        }
        break;
      default:
        if (target !== undefined) throw new Error('more than one target');
        at = endOfOptions(words, at);
        target = interpretTarget(words.slice(from, at));
    }
  }
  if (loaded !== undefined && loaded !== named) throw new Error(`-m ${loaded} without -p ${loaded}`);
  if (named !== undefined && loaded === undefined) {
    matches.splice(namedAt, 0, { kind: 'protocol', protocol: named, bare: true });
  }
  return { matches, target };
}

function addressMatch(option: '-s' | '-d', text: string, not: boolean): Match {
  const cidr = text.includes('/') ? parseCidr(text) : parseIp(text);
  if (cidr !== undefined) return { kind: option === '-s' ? 'source' : 'destination', cidr, not };
  return { kind: 'other', args: not ? ['!', option, text] : [option, text] };
}

/** `--dport 80` */
function plainOption(args: readonly string[]): Match {
  const [option, value, ...rest] = args;
  return option === '--dport' && rest.length === 0 && value !== undefined && /^\d{1,5}$/.test(value)
    ? { kind: 'destinationPort', port: Number(value) }
    : { kind: 'other', args };
}

/** Options that never belong to the module or target before them. */
const BOUNDARIES: ReadonlySet<string | undefined> = new Set([...OPTIONS, '-o', '-f', '--dport', '--sport']);

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
function moduleMatch(module: string, options: readonly string[]): Match | undefined {
  const not = options[0] === '!';
  const [option, value = '', ...rest] = not ? options.slice(1) : options;
  switch (module) {
    case 'comment':
      if (option !== '--comment' || options.length < 2) throw new Error('-m comment needs --comment');
      return isPlainComment(value) ? { kind: 'comment', text: value } : undefined;
    case 'statistic':
      return statistic(options);
    case 'recent':
      return recent(options);
    case 'ipvs':
      return virtualServer(options);
    case 'set':
      return option === '--match-set' && !not ? matchSet(value, rest) : undefined;
  }
  if (rest.length > 0) return undefined;
  switch (`${module} ${option}`) {
    case 'mark --mark': {
      const mark = parseMark(value);
      return mark && { kind: 'mark', ...mark, not };
    }
    case 'conntrack --ctstate': {
      const states = value.split(',');
      return states.every(isConntrackState) ? { kind: 'conntrackState', states, not } : undefined;
    }
    case 'addrtype --src-type':
      return value === 'LOCAL' ? { kind: 'addressType', side: 'src', type: value, not } : undefined;
    case 'addrtype --dst-type':
      return value === 'LOCAL' ? { kind: 'addressType', side: 'dst', type: value, not } : undefined;
    case 'physdev --physdev-is-in':
      return value === '' ? { kind: 'physdevIsIn', not } : undefined;
    case 'nfacct --nfacct-name':
      return value === '' || not ? undefined : { kind: 'nfacct', name: value };
    default:
      return undefined;
  }
}

/** `0x4000`, `0x4000/0xffff`, `16`. */
function parseMark(text: string): { readonly value: number; readonly mask: number } | undefined {
  const [value, mask = 0xffff_ffff, ...rest] = text.split('/').map(parseNumber);
  return value === undefined || Number.isNaN(value + mask) || rest.length > 0 ? undefined : { value, mask };
}

/** NaN where it is none of 32 bits. */
function parseNumber(text: string): number {
  if (!/^(?:0[xX][0-9a-fA-F]{1,8}|[1-9][0-9]{0,9}|0)$/.test(text)) return Number.NaN;
  const value = Number(text);
  return value <= 0xffff_ffff ? value : Number.NaN;
}

function statistic([mode, random, option, probability = '', ...rest]: readonly string[]): Match | undefined {
  const isRandom =
    mode === '--mode' && random === 'random' && option === '--probability' && rest.length === 0;
  return isRandom && /^[01]\.?[0-9]*$/.test(probability) ? { kind: 'statistic', probability } : undefined;
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

/** Options and their values; '' where there is none. */
function valuesOf(options: readonly string[]): ReadonlyMap<string, string> {
  const values = new Map<string, string>();
  let last = '';
  for (const word of options)
    if (word.startsWith('--') || word === '!') values.set((last = word), '');
    else values.set(last, word);
  return values;
}

const RECENT: ReadonlySet<string> = new Set(
  '--name --set --rcheck --seconds --reap --rsource --mask'.split(' '),
);
/** A save adds `--rsource` and the mask of a single address, which are the defaults. */
const HOST_MASKS: ReadonlySet<string | undefined> = new Set([
  undefined,
  '255.255.255.255',
  'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff',
]);

function recent(options: readonly string[]): Match | undefined {
  const values = valuesOf(options);
  const name = values.get('--name');
  const seconds = values.get('--seconds');
  const reap = values.has('--reap');
  const isKnown = [...values.keys()].every((option) => RECENT.has(option));
  if (!isKnown || name === undefined || !HOST_MASKS.has(values.get('--mask'))) return undefined;
  if (values.has('--set')) return seconds === undefined && !reap ? { kind: 'recentSet', name } : undefined;
  if (!values.has('--rcheck') || !/^\d{1,15}$/.test(seconds ?? '')) return undefined;
  return { kind: 'recentCheck', name, seconds: Number(seconds), reap };
}

function matchSet(name: string, [sides = '', ...more]: readonly string[]): Match | undefined {
  const each = sides.split(',');
  return each.every(isSide) && more.length === 0 ? { kind: 'set', name, sides: each } : undefined;
}

function isSide(text: string): text is 'src' | 'dst' {
  return text === 'src' || text === 'dst';
}

function virtualServer(options: readonly string[]): Match | undefined {
  const values = valuesOf(options);
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

/** Whether `-j` names a target extension, not a chain. */
export function isExtension(name: string): boolean {
  return EXTENSIONS.has(name);
}

const TARGETS: ReadonlyMap<string, Target> = new Map([
  ['ACCEPT', { kind: 'accept' }],
  ['DROP', { kind: 'drop' }],
  ['RETURN', { kind: 'return' }],
  ['REJECT', { kind: 'reject' }],
  ['REJECT --reject-with icmp-port-unreachable', { kind: 'reject' }],
  ['REJECT --reject-with icmp6-port-unreachable', { kind: 'reject' }],
  ['MASQUERADE', { kind: 'masquerade', randomFully: false }],
  ['MASQUERADE --random-fully', { kind: 'masquerade', randomFully: true }],
]);

/** `words` begins with `-j` or `-g`. */
function interpretTarget(words: readonly string[]): Target {
  const [jump, name = '', option, value, ...rest] = words;
  const other: Target = { kind: 'other', args: words };
  if (jump !== '-j' || rest.length > 0) return other;
  const fixed = TARGETS.get(option === undefined ? name : words.slice(1).join(' '));
  if (fixed) return fixed;
  if (name === 'DNAT' && option === '--to-destination' && value !== undefined)
    return { kind: 'dnat', to: value };
  if (name === 'MARK') return markTarget(option, value) ?? other;
  return option === undefined && !EXTENSIONS.has(name) ? { kind: 'jump', chain: name } : other;
}

function markTarget(option: string | undefined, text = ''): Target | undefined {
  const parsed = parseMark(text);
  if (!parsed) return undefined;
  const { value, mask } = parsed;
  if (option === '--or-mark' && !text.includes('/')) return { kind: 'mark', operation: 'or', value };
  if (option === '--xor-mark' && !text.includes('/')) return { kind: 'mark', operation: 'xor', value };
  if (option !== '--set-xmark' || !text.includes('/')) return undefined;
  if (mask === 0) return { kind: 'mark', operation: 'xor', value };
  return mask === value ? { kind: 'mark', operation: 'set', value } : undefined;
}
