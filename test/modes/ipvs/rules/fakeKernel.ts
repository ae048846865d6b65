/**
 * Sets, virtual servers and the device in memory, as strict as the kernel: what it would refuse is refused, by the
 * same name.
 */
import { hostPort, type Ip } from '../../../../src/model/ip.ts';
import { type Destination, type ServerKey, serverKey } from '../../../../src/modes/ipvs/rules/compile.ts';
import type {
  KernelDestination,
  IpvsEdit,
  EditOutcome,
  IpvsClient,
  KernelDevice,
  KernelIpset,
  ServerAttributes,
} from '../../../../src/modes/ipvs/rules/client.ts';
import type { Family } from '../../../../src/model/ip.ts';
import { entryKey, type SetEntry } from '../../../../src/modes/ipvs/rules/sets.ts';
import { prefixOf } from '../../../../src/model/ip.ts';
import type { FakeIptables } from '../../../scenarios/fakeIptables.ts';

export interface FakeSet {
  type: string;
  capacity: number;
  readonly entries: Map<string, SetEntry>;
}

interface FakeDestination {
  readonly destination: Destination;
  weight: number;
  connections: number;
}

interface FakeServer {
  attributes: ServerAttributes;
  readonly destinations: Map<string, FakeDestination>;
}

interface FakeDevice {
  /** Of the link; ours is a `dummy`. */
  readonly type: string;
  readonly addresses: Set<Ip>;
  isBroken: boolean;
}

const DONE: EditOutcome = { state: 'done' };
const EXISTS: EditOutcome = { state: 'exists' };
const ABSENT: EditOutcome = { state: 'absent' };
const refused = (name: string): EditOutcome => ({ state: 'refused', name });

/** Of the kernel's `IPSET_MAXNAMELEN`, less the closing zero byte. */
const NAME_LENGTH = 31;
const BITMAP_CAPACITY = 65_536;

export class FakeIpvsKernel implements IpvsClient {
  readonly family: Family;
  readonly sets = new Map<string, FakeSet>();
  readonly servers = new Map<string, FakeServer>();
  device: FakeDevice | undefined;
  schedulers: ReadonlySet<string> = new Set(['rr', 'wrr', 'sh', 'mh']);
  /** Whose rules refer to the sets. */
  readonly #iptables: FakeIptables;

  constructor(family: Family, iptables: FakeIptables) {
    this.family = family;
    this.#iptables = iptables;
    iptables.hasSet = (name) => this.sets.has(name);
  }

  async readSet(name: string): Promise<KernelIpset | undefined> {
    const set = this.sets.get(name);
    return set && { type: set.type, capacity: set.capacity, entries: new Map(set.entries) };
  }

  async readDevice(): Promise<KernelDevice> {
    return this.#deviceState();
  }

  async readServers(): Promise<readonly ServerAttributes[]> {
    return [...this.servers.values()].map(({ attributes }) => attributes);
  }

  async readDestinations(servers: readonly ServerKey[]): Promise<readonly (readonly KernelDestination[])[]> {
    return servers.map((server) => {
      const known = this.servers.get(serverKey(server))?.destinations.values() ?? [];
      return [...known].map(({ destination: { ip, port, key }, weight, connections }) => ({
        ip,
        port,
        key,
        weight,
        activeConnections: connections,
        inactiveConnections: 0,
      }));
    });
  }

  async apply(edits: readonly IpvsEdit[]): Promise<readonly EditOutcome[]> {
    return edits.map((edit) => this.#perform(edit));
  }

  #deviceState(): KernelDevice {
    if (!this.device) return { state: 'absent' };
    const { type, addresses, isBroken } = this.device;
    if (type !== 'dummy') return { state: 'foreign', type };
    return { state: 'present', addresses: [...addresses], broken: isBroken };
  }

  #perform(edit: IpvsEdit): EditOutcome {
    switch (edit.kind) {
      case 'createSet':
      case 'destroySet':
      case 'swapSets':
        return this.#changeSet(edit);
      case 'addEntry':
      case 'deleteEntry':
        return this.#changeEntry(edit);
      case 'newServer':
      case 'setServer':
      case 'deleteServer':
        return this.#changeServer(edit);
      case 'newDestination':
      case 'setDestination':
      case 'deleteDestination':
        return this.#changeDestination(edit);
      default:
        return this.#changeDevice(edit);
    }
  }

  #changeSet(edit: Extract<IpvsEdit, { kind: 'createSet' | 'destroySet' | 'swapSets' }>): EditOutcome {
    const known = this.sets.get(edit.set);
    if (edit.kind === 'createSet') {
      if (edit.set.length > NAME_LENGTH) return refused('IPSET_ERR_PROTOCOL');
      const capacity = edit.type === 'bitmap:port' ? BITMAP_CAPACITY : edit.capacity;
      if (known) return known.type === edit.type && known.capacity === capacity ? DONE : refused('EEXIST');
      this.sets.set(edit.set, { type: edit.type, capacity, entries: new Map() });
      return DONE;
    }
    if (!known) return ABSENT;
    if (edit.kind === 'destroySet') {
      if (this.#iptables.usesSet(edit.set)) return refused('IPSET_ERR_BUSY');
      this.sets.delete(edit.set);
      return DONE;
    }
    const other = this.sets.get(edit.other);
    if (!other) return refused('IPSET_ERR_EXIST_SETNAME2');
    if (other.type !== known.type) return refused('IPSET_ERR_TYPE_MISMATCH');
    this.sets.set(edit.set, other);
    this.sets.set(edit.other, known);
    return DONE;
  }

  #changeEntry({ kind, set, entry }: Extract<IpvsEdit, { kind: 'addEntry' | 'deleteEntry' }>): EditOutcome {
    const known = this.sets.get(set);
    if (!known) return ABSENT;
    if (known.type !== entry.type) return refused('IPSET_ERR_PROTOCOL');
    const key = entryKey(entry);
    if (kind === 'deleteEntry') return known.entries.delete(key) ? DONE : ABSENT;
    if (known.entries.has(key)) return EXISTS;
    if (entry.type === 'hash:ip,port,net' && prefixOf(entry.net) === 0)
      return refused('IPSET_ERR_INVALID_CIDR');
    if (known.entries.size >= known.capacity) return refused('IPSET_ERR_HASH_FULL');
    known.entries.set(key, entry);
    return DONE;
  }

  #changeServer(edit: Extract<IpvsEdit, { kind: 'newServer' | 'setServer' | 'deleteServer' }>): EditOutcome {
    const key = serverKey(edit.server);
    const known = this.servers.get(key);
    if (edit.kind === 'deleteServer') return this.servers.delete(key) ? DONE : ABSENT;
    if (edit.kind === 'newServer' && known) return EXISTS;
    if (edit.kind === 'setServer' && !known) return ABSENT;
    if (!this.schedulers.has(edit.server.scheduler)) return refused('ENOENT');
    if (known) known.attributes = edit.server;
    else this.servers.set(key, { attributes: edit.server, destinations: new Map() });
    return DONE;
  }

  #changeDestination(
    edit: Extract<IpvsEdit, { kind: 'newDestination' | 'setDestination' | 'deleteDestination' }>,
  ): EditOutcome {
    const server = this.servers.get(serverKey(edit.server));
    if (!server) return ABSENT;
    const { key } = edit.destination;
    const known = server.destinations.get(key);
    if (edit.kind === 'deleteDestination') return server.destinations.delete(key) ? DONE : ABSENT;
    if (edit.kind === 'newDestination') {
      if (known) return EXISTS;
      const { ip, port } = edit.destination;
      const destination = { ip, port, key: hostPort(ip, port) };
      server.destinations.set(key, { destination, weight: edit.weight, connections: 0 });
      return DONE;
    }
    if (!known) return ABSENT;
    known.weight = edit.weight;
    return DONE;
  }

  #changeDevice(
    edit: Extract<IpvsEdit, { kind: 'makeDevice' | 'dropDevice' | 'bind' | 'unbind' }>,
  ): EditOutcome {
    if (edit.kind === 'makeDevice') {
      if (this.device) return EXISTS;
      this.device = { type: 'dummy', addresses: new Set(), isBroken: false };
      return DONE;
    }
    if (!('ip' in edit)) {
      const outcome = this.device ? DONE : ABSENT;
      this.device = undefined;
      return outcome;
    }
    if (!this.device) return refused('ENODEV');
    const { addresses } = this.device;
    if (edit.kind === 'unbind') return addresses.delete(edit.ip) ? DONE : ABSENT;
    if (addresses.has(edit.ip)) return EXISTS;
    addresses.add(edit.ip);
    return DONE;
  }
}
