/** Pool sizes and time-outs of affinity that a table has, by the names of its sets and chains. */
import { type Protocol, PROTOCOLS } from '../../../model/objects.ts';
import type { TablePart } from './compile.ts';
import { SCOPE_LIST, type View } from './names.ts';

const POOL = /^(ports-)?(any|outside)-(\d{1,9})$/;
const STICKY = /^sticky-([a-z]+)-(\d{1,9})$/;
const [ADDRESS, NODE_PORT] = SCOPE_LIST;

/** One that nobody uses any more stays for a while: its sets, chains and rules are no difference. */
export function partsIn(sets: Iterable<string>, chains: Iterable<string>): readonly TablePart[] {
  const parts: TablePart[] = [];
  for (const name of sets) {
    const [, prefix, view, size] = POOL.exec(name) ?? [];
    const scope = prefix === undefined ? ADDRESS : NODE_PORT;
    if (scope && view !== undefined) parts.push({ scope, view: view as View, size: Number(size) });
  }
  for (const name of chains) {
    const [, word, seconds] = STICKY.exec(name) ?? [];
    const protocol = PROTOCOLS.find((each: Protocol) => each.toLowerCase() === word);
    if (protocol) parts.push({ protocol, seconds: Number(seconds) });
  }
  return parts;
}
