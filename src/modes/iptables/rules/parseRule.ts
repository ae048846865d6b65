/**
 * A rule's arguments, as words, into a `Rule`. What Junction never writes becomes `other`, word for word.
 *
 * Both dialects are read: what Junction prints (`-m tcp -p tcp -d X --dport N`) and what `iptables-save` prints of it
 * (`-d X/32 -p tcp … -m tcp --dport N`). The protocol keeps the place of its `-m`, as it does in the kernel.
 */
import { parseCidr, parseIp } from '../../../model/ip.ts';
import { interpretMatch } from './parseMatch.ts';
import { interpretTarget } from './parseTarget.ts';
import { isPlainComment } from './print.ts';
import type { Match, Rule, Target } from './rule.ts';

type Protocol = 'tcp' | 'udp' | 'sctp';

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
function isBoundary(word: string | undefined): boolean {
  switch (word) {
    case '-m':
    case '-j':
    case '-g':
    case '-s':
    case '-d':
    case '-p':
    case '-i':
    case '-o':
    case '-f':
    case '--match':
    case '--jump':
    case '--goto':
    case '--dport':
    case '--sport':
    case '--destination-port':
    case '--source-port':
      return true;
    default:
      return false;
  }
}

function endOfOptions(words: readonly string[], from: number): number {
  let at = from;
  while (at < words.length && !isBoundary(words[at]) && !(words[at] === '!' && isBoundary(words[at + 1])))
    at++;
  return at;
}

function endOfOption(words: readonly string[], from: number): number {
  let at = from;
  while (at < words.length && words[at] !== '!' && words[at]?.startsWith('-') === false) at++;
  return at;
}
