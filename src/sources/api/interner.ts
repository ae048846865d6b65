/** One copy of each value that many objects repeat. */
import type { ServicePortSpec, SlicePort } from '../../model/objects.ts';
import type { EndpointState } from '../../model/packedSlice.ts';

const MOST_VALUES = 50_000;
/** Longer ones are rarely repeated. */
const LONGEST = 300;
/** Values with one key that are compared, before the first of them is replaced. */
const MOST_ALIKE = 16;
/** Above every port. */
const PORTS = 65_536;

/**
 * Of namespaces, node names, zones, lists of ports and hints, and what all endpoints of a node have in common.
 *
 * Looked for by a part of the value, and compared: a text of all parts, made to look for it, cost more than the rest of the
 * decoding. Bounded: a cluster that makes up new names all the time gives up sharing, not memory.
 */
export class Interner {
  readonly #texts = new Map<string, string>();
  /** Lists of one name. */
  readonly #singles = new Map<string, readonly string[]>();
  /** Longer ones. */
  readonly #names = new Map<string, readonly string[]>();
  readonly #slicePorts = new Alike<number, readonly SlicePort[]>();
  readonly #servicePorts = new Alike<number, readonly ServicePortSpec[]>();
  /** By node. */
  readonly #states = new Alike<string, EndpointState>();

  text(value: string): string {
    if (value.length > LONGEST) return value;
    const known = this.#texts.get(value);
    return known ?? keep(this.#texts, value, value);
  }

  /** A list of any one text. */
  single(name: string): readonly string[] {
    if (name.length > LONGEST) return [name];
    const known = this.#singles.get(name);
    return known ?? keep(this.#singles, name, [name]);
  }

  /** Any texts. */
  names(names: readonly string[]): readonly string[] {
    const [first] = names;
    if (first === undefined) return names;
    if (names.length === 1) return this.single(first);
    const id = JSON.stringify(names);
    if (id.length > LONGEST) return names;
    return this.#names.get(id) ?? keep(this.#names, id, names);
  }

  slicePorts(ports: readonly SlicePort[]): readonly SlicePort[] {
    const [first] = ports;
    return first ? this.#slicePorts.share(first.port, ports, sameSlicePorts) : ports;
  }

  servicePorts(ports: readonly ServicePortSpec[]): readonly ServicePortSpec[] {
    const [first] = ports;
    return first
      ? this.#servicePorts.share(first.nodePort * PORTS + first.port, ports, sameServicePorts)
      : ports;
  }

  state(state: EndpointState): EndpointState {
    return this.#states.share(state.nodeName ?? '', state, sameState);
  }
}

/** Starting over forgets what went out of use; what is in use comes back with the next objects. */
function keep<Key, Value>(values: Map<Key, Value>, key: Key, value: Value): Value {
  if (values.size >= MOST_VALUES) values.clear();
  values.set(key, value);
  return value;
}

/** Values of which some have the same key. */
class Alike<Key, Value> {
  readonly #values = new Map<Key, Value[]>();

  share(key: Key, value: Value, isSame: (one: Value, other: Value) => boolean): Value {
    const alike = this.#values.get(key);
    if (alike === undefined) {
      keep(this.#values, key, [value]);
      return value;
    }
    for (const known of alike) if (isSame(known, value)) return known;
    if (alike.length >= MOST_ALIKE) alike.shift();
    alike.push(value);
    return value;
  }
}

function sameSlicePorts(one: readonly SlicePort[], other: readonly SlicePort[]): boolean {
  if (one.length !== other.length) return false;
  for (let index = 0; index < one.length; index++) if (!samePort(one[index], other[index])) return false;
  return true;
}

function sameServicePorts(one: readonly ServicePortSpec[], other: readonly ServicePortSpec[]): boolean {
  if (!sameSlicePorts(one, other)) return false;
  for (let index = 0; index < one.length; index++)
    if (one[index]?.nodePort !== other[index]?.nodePort) return false;
  return true;
}

function samePort(one: SlicePort | undefined, other: SlicePort | undefined): boolean {
  return one?.port === other?.port && one?.name === other?.name && one?.protocol === other?.protocol;
}

function sameState(one: EndpointState, other: EndpointState): boolean {
  return (
    one.nodeName === other.nodeName &&
    one.zone === other.zone &&
    one.ready === other.ready &&
    one.serving === other.serving &&
    one.terminating === other.terminating &&
    sameNames(one.zoneHints, other.zoneHints) &&
    sameNames(one.nodeHints, other.nodeHints)
  );
}

function sameNames(one: readonly string[], other: readonly string[]): boolean {
  if (one === other) return true;
  return one.length === other.length && one.every((name, index) => name === other[index]);
}
