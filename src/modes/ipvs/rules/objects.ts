/** Names of what is in the kernel, for people and to tell our own changes from those of other programs. */
import { type Family, hostPort } from '../../../model/ip.ts';
import { type ServerKey, serverKey } from './fragment.ts';
import type { Edit } from './kernelDoor.ts';
import type { LedgerChanges } from './ledger.ts';
import { entryKey, type SetEntry, setName } from './sets.ts';

/** `TCP 10.96.0.1:80` */
export function printServer({ protocol, ip, port }: ServerKey): string {
  return `${protocol} ${hostPort(ip, port)}`;
}

/** `virtual server TCP 10.96.0.1:80`, `set KUBE-CLUSTER-IP`, `address 10.96.0.1 on kube-ipvs0` */
export function objectOf(edit: Edit): string {
  if ('set' in edit) return `set ${edit.set}`;
  if ('server' in edit) return `virtual server ${printServer(edit.server)}`;
  return 'ip' in edit ? `address ${edit.ip} on kube-ipvs0` : 'link kube-ipvs0';
}

/** What edits change that none of these changes asked for: another program must have been there. */
export function* changedByOthers(
  edits: Iterable<Edit>,
  changes: LedgerChanges,
  family: Family,
): Generator<string> {
  const own = new Set(keysOf(changes, family));
  const named = new Set<string>();
  for (const edit of edits) {
    const object = objectOf(edit);
    if (named.has(object) || own.has(keyOf(edit))) continue;
    named.add(object);
    yield object;
  }
}

function* keysOf(
  { added, removed, bound, unbound, servers }: LedgerChanges,
  family: Family,
): Generator<string> {
  for (const { set, entry } of [...added, ...removed]) yield entryName(setName(set, family), entry);
  yield* bound;
  yield* unbound;
  for (const { previous, current } of servers) {
    const server = current ?? previous;
    if (server) yield serverKey(server);
  }
}

function keyOf(edit: Edit): string {
  if ('entry' in edit) return entryName(edit.set, edit.entry);
  if ('server' in edit) return serverKey(edit.server);
  return 'ip' in edit ? edit.ip : objectOf(edit);
}

function entryName(set: string, entry: SetEntry): string {
  return `${set} ${entryKey(entry)}`;
}
