/** The options of the match modules that Junction knows. Any other use of them is left to the caller to keep. */
import { parseIp } from '../../../model/ip.ts';
import type { ConntrackState, Match } from './rule.ts';

export function interpretMatch(module: string, options: readonly string[]): Match | undefined {
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
export function parseMark(text: string): { readonly value: number; readonly mask: number } | undefined {
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

function isConntrackState(text: string): text is ConntrackState {
  switch (text) {
    case 'NEW':
    case 'ESTABLISHED':
    case 'RELATED':
    case 'INVALID':
    case 'DNAT':
    case 'SNAT':
    case 'UNTRACKED':
      return true;
    default:
      return false;
  }
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

/** A save prints the protocol as its number. */
const VIRTUAL_PROTOCOLS: ReadonlyMap<string, 'tcp' | 'udp' | 'sctp'> = new Map([
  ['tcp', 'tcp'],
  ['6', 'tcp'],
  ['udp', 'udp'],
  ['17', 'udp'],
  ['sctp', 'sctp'],
  ['132', 'sctp'],
]);

function virtualServer(options: readonly string[]): Match | undefined {
  const values = new Map<string, string>();
  for (let at = 0; at < options.length; at += 2) values.set(options[at] ?? '', options[at + 1] ?? '');
  const protocol = VIRTUAL_PROTOCOLS.get(values.get('--vproto') ?? '');
  const address = parseIp((values.get('--vaddr') ?? '').replace(/\/(?:32|128)$/, ''));
  const port = values.get('--vport') ?? '';
  if (protocol === undefined || address === undefined || !/^\d{1,5}$/.test(port) || values.size !== 3)
    return undefined;
  return { kind: 'virtualServer', protocol, address, port: Number(port) };
}
