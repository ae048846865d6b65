/** What became of edits: done, not to be done because the kernel is not as it was left, or refused and for what. */
import { JunctionError } from '../../../errors.ts';
import type { Family } from '../../../model/ip.ts';
import { type IpvsFragment, type Member, type ServerKey, serverKey } from './compile.ts';
import { DEVICE, type EditOutcome, type IpvsEdit } from './client.ts';
import { entryKey, setName } from './sets.ts';
import type { DesiredChanges } from './desiredState.ts';

/** Enough for a log line: `ipvsadm --clear` takes ten thousand. */
const MOST_NAMED = 100;

export class Refusals {
  /** By what was refused; the errors of what belongs to no service are apart. */
  readonly #ofServices = new Map<string, Error>();
  readonly #others: Error[] = [];
  /** Keys of `#ofServices` that some service port has asked for. */
  readonly #claimed = new Set<string>();
  /** Sets, virtual servers and the device that are not there because they were refused. */
  readonly #unmade = new Set<string>();
  #drift: string | undefined;
  readonly #drifted = new Set<string>();

  get isEmpty(): boolean {
    return this.#ofServices.size === 0 && this.#others.length === 0;
  }

  /** Objects that were not as they were left. */
  get drifted(): readonly string[] {
    return [...this.#drifted];
  }

  /** Something was refused that is no single service's. */
  get isOurs(): boolean {
    return this.#others.length > 0;
  }

  /** Returns what is still to be done because something was there already. */
  add(edits: readonly IpvsEdit[], outcomes: readonly EditOutcome[]): readonly IpvsEdit[] {
    const late: IpvsEdit[] = [];
    for (const [index, outcome] of outcomes.entries()) {
      const edit = edits[index];
      if (!edit || outcome.state === 'done') continue;
      if (outcome.state === 'refused') this.#refused(edit, outcome.name);
      else if (outcome.state === 'exists' && edit.kind === 'newDestination')
        late.push({ ...edit, kind: 'setDestination' });
      else if (isDrift(edit, outcome.state) && !this.#unmade.has(holderOf(edit)))
        this.#drifts(edit, `${describe(edit)}: ${outcome.state}`);
    }
    return late;
  }

  throwIfDrift(): void {
    if (this.#drift === undefined) return;
    throw new JunctionError(
      'IPVS_CHANGED',
      `another program changes what Junction writes (${this.#drift}); it will be tried again`,
    );
  }

  /** The first error of something that this service port asked for. */
  concerning(fragment: IpvsFragment, family: Family): Error | undefined {
    let first: Error | undefined;
    for (const key of fragmentNames(fragment, family)) {
      const error = this.#ofServices.get(key);
      if (!error) continue;
      this.#claimed.add(key);
      first ??= error;
    }
    return first;
  }

  throwIfOurs(): void {
    const [error] = this.#others;
    if (error) throw error;
  }

  /** What no service asked for, or none asks for any more, must not be refused either. */
  throwIfNobodys(): void {
    this.throwIfOurs();
    for (const [key, error] of this.#ofServices) if (!this.#claimed.has(key)) throw error;
  }

  #drifts(edit: IpvsEdit, how: string): void {
    this.#drift ??= how;
    if (this.#drifted.size < MOST_NAMED) this.#drifted.add(objectOf(edit));
  }

  #refused(edit: IpvsEdit, name: string): void {
    if ((edit.kind === 'bind' || edit.kind === 'unbind') && name === 'ENODEV') {
      // Where it could not be made, that is what has to be said.
      if (!this.#unmade.has(holderOf(edit)))
        this.#drifts({ kind: 'makeDevice' }, `the device ${DEVICE} is gone`);
      return;
    }
    if (edit.kind === 'createSet' || edit.kind === 'newServer' || edit.kind === 'makeDevice')
      this.#unmade.add(holderOf(edit));
    const error = new JunctionError('IPVS_REFUSED', `${describe(edit)}: ${name}`, hintFor(edit, name));
    const key = keyOf(edit);
    if (key === undefined) this.#others.push(error);
    else this.#ofServices.set(key, error);
  }
}

interface EditInfo {
  readonly verb: string;
  /** The outcome of a kernel that is not as it was left. Deleting what is not there is no surprise; adding to it is. */
  readonly drift?: 'exists' | 'absent';
  /** It belongs to a single service. */
  readonly isServices?: true;
}

const EDITS: Readonly<Record<IpvsEdit['kind'], EditInfo>> = {
  createSet: { verb: 'create' },
  destroySet: { verb: 'destroy' },
  swapSets: { verb: 'enlarge', drift: 'absent' },
  addEntry: { verb: 'add', drift: 'absent', isServices: true },
  deleteEntry: { verb: 'delete' },
  newServer: { verb: 'write', drift: 'exists', isServices: true },
  setServer: { verb: 'write', drift: 'absent', isServices: true },
  deleteServer: { verb: 'delete' },
  newDestination: { verb: 'write', drift: 'absent', isServices: true },
  setDestination: { verb: 'write', drift: 'absent', isServices: true },
  deleteDestination: { verb: 'delete' },
  makeDevice: { verb: 'create' },
  dropDevice: { verb: 'delete' },
  bind: { verb: 'add', isServices: true },
  unbind: { verb: 'remove' },
};

function isDrift(edit: IpvsEdit, state: 'exists' | 'absent'): boolean {
  const isDeletion = edit.kind === 'setDestination' && edit.weight === 0;
  return EDITS[edit.kind].drift === state && !isDeletion;
}

/** The set, virtual server or device that the edit makes or changes. */
function holderOf(edit: IpvsEdit): string {
  if ('set' in edit) return edit.set;
  return 'server' in edit ? serverKey(edit.server) : 'device';
}

/** `undefined` for what belongs to no single service. */
function keyOf(edit: IpvsEdit): string | undefined {
  if (!EDITS[edit.kind].isServices) return undefined;
  return editName(edit);
}

/** What an edit is about: an entry, a virtual server or a real server of one, an address. */
export function editName(edit: IpvsEdit): string {
  return 'destination' in edit ? destinationName(edit.server, edit.destination.key) : editKey(edit);
}

/** Of everything that a service port asks for. */
export function* fragmentNames({ members, servers }: IpvsFragment, family: Family): Generator<string> {
  yield* memberKeys(members, family);
  for (const server of servers) {
    yield serverKey(server);
    if (server.silence) yield* memberKeys([server.silence], family);
    for (const { key } of server.destinations) yield destinationName(server, key);
  }
}

/** Of its entry, and of its address on the device. */
function* memberKeys(members: readonly Member[], family: Family): Generator<string> {
  for (const { set, entry } of members) {
    yield entryName(setName(set, family), entryKey(entry));
    if (entry.type === 'hash:ip') yield entry.ip;
  }
}

function entryName(set: string, key: string): string {
  return `${set} ${key}`;
}

function destinationName(server: ServerKey, key: string): string {
  return `${serverKey(server)} ${key}`;
}

function describe(edit: IpvsEdit): string {
  const { verb } = EDITS[edit.kind];
  const to = verb === 'add' ? 'to' : 'from';
  if ('entry' in edit) return `${verb} ${entryKey(edit.entry)} ${to} the set ${edit.set}`;
  if ('set' in edit)
    return `${verb} the set ${edit.set}${edit.kind === 'createSet' ? ` (${edit.type})` : ''}`;
  if ('server' in edit) {
    const server = `the virtual server ${serverKey(edit.server)}`;
    if ('destination' in edit) return `${verb} the endpoint ${edit.destination.key} of ${server}`;
    return `${verb} ${server}${edit.kind === 'deleteServer' ? '' : ` with scheduler ${edit.server.scheduler}`}`;
  }
  return `${verb} ${'ip' in edit ? `${edit.ip} ${to} ` : ''}the device ${DEVICE}`;
}

function hintFor(edit: IpvsEdit, name: string): { readonly hint?: string } {
  if (edit.kind === 'newServer' && name === 'ENOENT')
    return {
      hint: `The kernel has no scheduler ${edit.server.scheduler}: modprobe ip_vs_${edit.server.scheduler}`,
    };
  if (edit.kind === 'makeDevice' && name === 'EOPNOTSUPP')
    return { hint: 'The kernel has no dummy devices: modprobe dummy' };
  if (edit.kind === 'createSet' && name === 'IPSET_ERR_FIND_TYPE')
    return {
      hint: `The kernel has no sets of this type: modprobe ip_set_${edit.type.replaceAll(/[:,]/g, (sign) => (sign === ':' ? '_' : ''))}`,
    };
  if (name === 'IPSET_ERR_HASH_FULL') return { hint: 'The set is full; the next sync makes it larger.' };
  return {};
}

/** `virtual server TCP 10.96.0.1:80`, `set KUBE-CLUSTER-IP`, `address 10.96.0.1 on kube-ipvs0` */
function objectOf(edit: IpvsEdit): string {
  if ('set' in edit) return `set ${edit.set}`;
  if ('server' in edit) return `virtual server ${serverKey(edit.server)}`;
  return 'ip' in edit ? `address ${edit.ip} on ${DEVICE}` : `link ${DEVICE}`;
}

/** What edits change that none of these changes asked for: another program must have been there. */
export function changedByOthers(
  edits: Iterable<IpvsEdit>,
  changes: readonly DesiredChanges[],
  family: Family,
): ReadonlySet<string> {
  const own = new Set(changes.flatMap((each) => [...changedKeys(each, family)]));
  const objects = new Set<string>();
  for (const edit of edits) {
    if (objects.size === MOST_NAMED) break;
    if (!own.has(editKey(edit))) objects.add(objectOf(edit));
  }
  return objects;
}

function* changedKeys({ added, removed, servers }: DesiredChanges, family: Family): Generator<string> {
  yield* memberKeys(added, family);
  yield* memberKeys(removed, family);
  for (const { previous, current } of servers) {
    const server = current ?? previous;
    if (server) yield serverKey(server);
  }
}

function editKey(edit: IpvsEdit): string {
  if ('entry' in edit) return entryName(edit.set, entryKey(edit.entry));
  if ('server' in edit) return serverKey(edit.server);
  return 'ip' in edit ? edit.ip : objectOf(edit);
}
