/** What became of edits: done, refused and for what, or unexpected, because another program has been there. */
import { JunctionError } from '../../../errors.ts';
import type { Family } from '../../../model/ip.ts';
import type { ServicePortId } from '../../../model/serviceTracker.ts';
import type { ServicePortPlan } from '../../../plan/types.ts';
import { DEVICE, type EditOutcome, type IpvsEdit } from './client.ts';
import {
  compileVirtualServers,
  type Destination,
  type IpvsFragment,
  type ServerKey,
  serverKey,
  type VirtualServerOptions,
} from './compile.ts';
import { entryKey, type SetEntry, setName } from './sets.ts';

export const VERBS: Readonly<Record<IpvsEdit['kind'], 'create' | 'change' | 'delete'>> = {
  createSet: 'create',
  destroySet: 'delete',
  swapSets: 'change',
  addEntry: 'create',
  deleteEntry: 'delete',
  newServer: 'create',
  setServer: 'change',
  deleteServer: 'delete',
  newDestination: 'create',
  setDestination: 'change',
  deleteDestination: 'delete',
  makeDevice: 'create',
  dropDevice: 'delete',
  bind: 'create',
  unbind: 'delete',
};

export class Outcomes {
  /** By `editName`; what belongs to no service port is in `#errors`. */
  readonly refused = new Map<string, Error>();
  readonly #errors: Error[] = [];
  /** Sets, virtual servers and the device that are missing because the kernel refused them. */
  readonly #missing = new Set<string>();
  /** Objects that another program has changed. */
  readonly unexpected = new Set<string>();

  /** Something was refused that belongs to no service port. */
  get hasErrors(): boolean {
    return this.#errors.length > 0;
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
      else if (isUnexpected(edit, outcome.state) && !this.#missing.has(objectOf(edit)))
        this.unexpected.add(objectOf(edit));
    }
    return late;
  }

  throwErrors(): void {
    const [error] = this.#errors;
    if (error) throw error;
  }

  throwIfUnexpected(): void {
    const [object] = this.unexpected;
    if (object === undefined) return;
    throw new JunctionError(
      'IPVS_CHANGED',
      `another program changes what Junction writes (${object}); it will be tried again`,
    );
  }

  #refused(edit: IpvsEdit, name: string): void {
    if ('ip' in edit && name === 'ENODEV') {
      // Where the device could not be made, that is what has to be said.
      if (!this.#missing.has(LINK)) this.unexpected.add(LINK);
      return;
    }
    if (edit.kind === 'createSet' || edit.kind === 'newServer' || edit.kind === 'makeDevice')
      this.#missing.add(objectOf(edit));
    const verb = VERBS[edit.kind];
    const what = editName(edit);
    const error = new JunctionError('IPVS_REFUSED', `${verb} ${what}: ${name}`, hintFor(edit, name));
    const isServicePorts = 'entry' in edit || 'server' in edit || 'ip' in edit;
    if (isServicePorts && verb !== 'delete') this.refused.set(what, error);
    else this.#errors.push(error);
  }
}

/** Another program has been there. Deleting what is not there is no surprise; adding to it is. */
function isUnexpected(edit: IpvsEdit, state: 'exists' | 'absent'): boolean {
  if (edit.kind === 'newServer') return state === 'exists';
  const isDeletion = VERBS[edit.kind] === 'delete' || ('weight' in edit && edit.weight === 0);
  return state === 'absent' && !isDeletion;
}

/** Which service ports ask for each of these, by `editName`. */
export function* ownersOf(
  names: ReadonlySet<string>,
  servicePorts: ReadonlyMap<ServicePortId, ServicePortPlan>,
  options: VirtualServerOptions,
): Generator<void, ReadonlyMap<string, readonly ServicePortId[]>> {
  const owners = new Map<string, ServicePortId[]>();
  if (names.size === 0) return owners;
  for (const [id, port] of servicePorts) {
    for (const name of fragmentNames(compileVirtualServers(port, options), options.family))
      if (names.has(name)) owners.set(name, [...(owners.get(name) ?? []), id]);
    yield;
  }
  return owners;
}

function* fragmentNames({ members, servers }: IpvsFragment, family: Family): Generator<string> {
  for (const { set, entry } of [...members, ...servers.flatMap(({ dropEntry }) => dropEntry ?? [])]) {
    yield entryName(setName(set, family), entry);
    if (entry.type === 'hash:ip') yield addressName(entry.ip);
  }
  for (const server of servers) {
    yield serverName(server);
    for (const destination of server.destinations) yield destinationName(server, destination);
  }
}

const LINK = `link ${DEVICE}`;
const addressName = (ip: string): string => `address ${ip} on ${DEVICE}`;
const entryName = (set: string, entry: SetEntry): string => `entry ${entryKey(entry)} of set ${set}`;
const serverName = (server: ServerKey): string => `virtual server ${serverKey(server)}`;
const destinationName = (server: ServerKey, { key }: Destination): string =>
  `endpoint ${key} of ${serverName(server)}`;

/** `endpoint 10.244.0.1:80 of virtual server TCP 10.96.0.1:80` */
export function editName(edit: IpvsEdit): string {
  if ('destination' in edit) return destinationName(edit.server, edit.destination);
  return 'entry' in edit ? entryName(edit.set, edit.entry) : objectOf(edit);
}

/** `virtual server TCP 10.96.0.1:80`, `set KUBE-CLUSTER-IP`, `address 10.96.0.1 on kube-ipvs0` */
export function objectOf(edit: IpvsEdit): string {
  if ('set' in edit) return `set ${edit.set}`;
  if ('server' in edit) return serverName(edit.server);
  return 'ip' in edit ? addressName(edit.ip) : LINK;
}

function hintFor(edit: IpvsEdit, name: string): { readonly hint?: string } {
  if (edit.kind === 'newServer' && name === 'ENOENT') {
    const { scheduler } = edit.server;
    return { hint: `The kernel has no scheduler ${scheduler}: modprobe ip_vs_${scheduler}` };
  }
  if (edit.kind === 'makeDevice' && name === 'EOPNOTSUPP')
    return { hint: 'The kernel has no dummy devices: modprobe dummy' };
  if (edit.kind === 'createSet' && name === 'IPSET_ERR_FIND_TYPE')
    return { hint: `The kernel has no sets of this type: modprobe ${moduleOf(edit.type)}` };
  if (name === 'IPSET_ERR_HASH_FULL') return { hint: 'The set is full; the next sync makes it larger.' };
  return {};
}

/** `hash:ip,port,net`: `ip_set_hash_ipportnet` */
export function moduleOf(setType: string): string {
  return `ip_set_${setType.replace(':', '_').replaceAll(',', '')}`;
}
