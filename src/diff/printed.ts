/** The texts that the modes print, compared object by object: where a rule stands in the text does not matter. */
import type { ObjectKey } from '../model/objects.ts';
import type { Plan } from '../plan/types.ts';
import type { RuleDiff } from './types.ts';

/** Of each object (`chain nat KUBE-SVC-…`, `map any-2`) its lines: rules, elements. */
export type PrintedObjects = ReadonlyMap<string, readonly string[]>;

/** Reads what `junction plan` prints: for iptables-restore, ipset, ipvsadm and ip, or for nft. */
export function printedObjects(text: string): PrintedObjects {
  const reader = new PrintedReader();
  for (const line of text.split('\n')) reader.take(line);
  return reader.objects;
}

class PrintedReader {
  readonly objects = new Map<string, string[]>();
  #table = '';
  /** Of nft: the chain, set or map that is open. */
  #block: string | undefined;

  take(line: string): void {
    const text = line.trim();
    const [first = '', second = '', third = ''] = text.split(' ');
    if (/^(?:set|map|chain)$/.test(first) && text.endsWith('{')) this.#open(`${first} ${second}`);
    else if (text === '}') this.#block = undefined;
    else if (this.#block !== undefined) this.#inBlock(this.#block, text);
    else if (first === '#') this.#jump(text);
    else if (text.startsWith('*')) this.#table = text.slice(1);
    else if (text.startsWith(':')) this.#open(`chain ${this.#table} ${first.slice(1)}`, false);
    else if (/^-A -[tuf-]/.test(text)) this.#add(`virtual server ${second} ${third}`, text);
    else if (text.startsWith('-a ')) this.#add(`virtual server ${second} ${third}`, text);
    else if (first === '-A') this.#add(`chain ${this.#table} ${second}`, ruleOf(text, 2));
    else if (first === 'add' && second !== 'table')
      this.#add(`set ${second}`, text.slice(`add ${second} `.length));
    else if (first === 'address') this.#add('addresses of kube-ipvs0', text.split(' ')[2] ?? '');
  }

  /** What a restore cannot say is a comment: `#   -t nat -I OUTPUT …`. */
  #jump(text: string): void {
    const [, table, chain, rule = ''] = /^# +-t (\S+) -[AIN] (\S+) ?(.*)$/.exec(text) ?? [];
    if (table === undefined || chain === undefined) return;
    if (rule === '') this.#open(`chain ${table} ${chain}`, false);
    else this.#add(`chain ${table} ${chain}`, rule);
  }

  #open(object: string, isBlock = true): void {
    if (isBlock) this.#block = object;
    if (!this.objects.has(object)) this.objects.set(object, []);
  }

  #inBlock(block: string, text: string): void {
    const elements = /^elements = \{ (.*)$/.exec(text)?.[1] ?? text;
    if (!block.startsWith('chain') && /^(?:type|typeof|size|flags|counter|comment)\b/.test(text)) return;
    this.#add(block, elements.replace(/,$| \}$/, ''));
  }

  #add(object: string, line: string): void {
    if (line === '') return;
    const lines = this.objects.get(object);
    if (lines) lines.push(line);
    else this.objects.set(object, [line]);
  }
}

function ruleOf(text: string, words: number): string {
  return text.split(' ').slice(words).join(' ');
}

/** An object whose lines are in another order has one difference more. */
export function printedDifferences(from: PrintedObjects, to: PrintedObjects): readonly RuleDiff[] {
  const differences: RuleDiff[] = [];
  for (const object of new Set([...from.keys(), ...to.keys()])) {
    const before = from.get(object);
    const after = to.get(object);
    const removed = without(before ?? [], after ?? []);
    const added = without(after ?? [], before ?? []);
    for (const text of removed) differences.push({ sign: '-', object, text });
    for (const text of added) differences.push({ sign: '+', object, text });
    if (removed.length > 0 || added.length > 0) continue;
    if (before === undefined || after === undefined)
      differences.push({ sign: before ? '-' : '+', object, text: '' });
    else if (object.startsWith('chain') && before.some((line, index) => line !== after[index]))
      differences.push({ sign: '~', object, text: 'the same rules in another order' });
  }
  return differences;
}

/** With each line as often as it is there. */
function without(lines: readonly string[], others: readonly string[]): readonly string[] {
  const counts = new Map<string, number>();
  for (const line of others) counts.set(line, (counts.get(line) ?? 0) + 1);
  return lines.filter((line) => {
    const count = counts.get(line) ?? 0;
    if (count > 0) counts.set(line, count - 1);
    return count === 0;
  });
}

const SERVICE_NAME = /[a-z0-9-]+\/[a-z0-9.-]+(?::[a-z0-9-]+)?/g;
const CHAIN = /\bKUBE-(?:SVC|SVL|EXT|FW|SEP|XLB)-[A-Z2-7]{16}\b/g;
const SERVER_PROTOCOLS: Readonly<Record<string, string>> = {
  '-t': 'tcp',
  '-u': 'udp',
  '--sctp-service': 'sctp',
};
const ADDRESS = /[0-9a-f.:[\]]{3,}/g;

/** Whose a line is: by the service port that its comment names, by its chain, or by the address that it serves. */
export class ServiceOfLine {
  readonly #byName = new Map<string, ObjectKey>();
  readonly #byChain = new Map<string, ObjectKey>();
  readonly #byAddress = new Map<string, ObjectKey>();
  /** `tcp 30080` */
  readonly #byNodePort = new Map<string, ObjectKey>();

  constructor(plans: readonly Plan[], printed: readonly PrintedObjects[]) {
    for (const plan of plans)
      for (const { name, service, protocol, frontends } of plan.servicePorts.values()) {
        this.#byName.set(name, service);
        for (const { address, port } of frontends)
          if (address !== undefined) this.#byAddress.set(address, service);
          else this.#byNodePort.set(`${protocol.toLowerCase()} ${port}`, service);
      }
    for (const objects of printed)
      for (const [object, lines] of objects) for (const line of lines) this.#learnChains(object, line);
  }

  /** `undefined`: it is for several services, or for all. */
  of({ object, text }: Pick<RuleDiff, 'object' | 'text'>): ObjectKey | undefined {
    return (
      this.#named(text) ??
      this.#ofChain(object) ??
      this.#ofChain(text) ??
      this.#ofAddress(object) ??
      this.#ofAddress(text) ??
      this.#ofNodePort(object, text)
    );
  }

  #learnChains(object: string, line: string): void {
    const service = this.#named(line);
    if (service === undefined) return;
    for (const [chain] of [...object.matchAll(CHAIN), ...line.matchAll(CHAIN)])
      if (!this.#byChain.has(chain)) this.#byChain.set(chain, service);
  }

  #named(text: string): ObjectKey | undefined {
    for (const [name] of text.matchAll(SERVICE_NAME)) {
      const service = this.#byName.get(name);
      if (service !== undefined) return service;
    }
    return undefined;
  }

  #ofChain(text: string): ObjectKey | undefined {
    const chain = /^chain \S+ (\S+)$/.exec(text)?.[1];
    return chain === undefined ? undefined : this.#byChain.get(chain);
  }

  /** A virtual server at an address of the node, or an entry of KUBE-NODE-PORT-TCP. */
  #ofNodePort(object: string, text: string): ObjectKey | undefined {
    const [, option = '', server] = /^virtual server (-\S+) \S*:(\d+)$/.exec(object) ?? [];
    const [, set = ''] = /^set KUBE-NODE-PORT-(?:LOCAL-)?(TCP|UDP)$/.exec(object) ?? [];
    const protocol = SERVER_PROTOCOLS[option] ?? set.toLowerCase();
    return this.#byNodePort.get(`${protocol} ${server ?? text}`);
  }

  #ofAddress(text: string): ObjectKey | undefined {
    for (const [address] of text.matchAll(ADDRESS)) {
      const host = address.startsWith('[') ? address.slice(1, address.indexOf(']')) : address;
      const service = this.#byAddress.get(host) ?? this.#byAddress.get(host.replace(/:\d+$/, ''));
      if (service !== undefined) return service;
    }
    return undefined;
  }
}
