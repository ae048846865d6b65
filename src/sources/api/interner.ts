/** One copy of each value that many objects repeat. */
import { flat } from '../../model/flat.ts';
import type { ServicePortSpec, SlicePort } from '../../model/objects.ts';
import type { EndpointState } from '../../model/packedSlice.ts';

const MOST_VALUES = 50_000;
/** Longer ones are rarely repeated. */
const LONGEST = 300;

/**
 * Of namespaces, node names, zones, lists of ports and hints, and what all endpoints of a node have in common.
 *
 * Bounded: a cluster that makes up new names all the time gives up sharing, not memory.
 */
export class Interner {
  readonly #texts = new Map<string, string>();
  /** Lists of one name. */
  readonly #singles = new Map<string, readonly string[]>();
  readonly #lists = new Map<string, readonly unknown[]>();
  readonly #states = new Map<string, EndpointState>();

  text(value: string): string {
    return this.#share(this.#texts, value, value);
  }

  /** Any texts. */
  names(names: readonly string[]): readonly string[] {
    const [first] = names;
    if (first === undefined) return names;
    return names.length === 1
      ? this.#share(this.#singles, first, names)
      : this.#list(`names ${JSON.stringify(names)}`, names);
  }

  slicePorts(ports: readonly SlicePort[]): readonly SlicePort[] {
    const ids = ports.map(({ name, protocol, port }) => `${name} ${protocol} ${port}`);
    return this.#list(`slice ${ids.join()}`, ports);
  }

  servicePorts(ports: readonly ServicePortSpec[]): readonly ServicePortSpec[] {
    const ids = ports.map(({ name, protocol, port, nodePort }) => `${name} ${protocol} ${port} ${nodePort}`);
    return this.#list(`service ${ids.join()}`, ports);
  }

  state(state: EndpointState): EndpointState {
    const { nodeName = '', ready, serving, terminating, zoneHints, nodeHints, zone = '' } = state;
    const hints = zoneHints.length + nodeHints.length > 0 ? JSON.stringify([zoneHints, nodeHints]) : '';
    // Neither the name of a node nor that of a zone has a blank.
    return this.#share(
      this.#states,
      `${nodeName} ${ready} ${serving} ${terminating} ${zone} ${hints}`,
      state,
    );
  }

  /** Two lists with one `id` have the same content. */
  #list<T>(id: string, value: readonly T[]): readonly T[] {
    return this.#share(this.#lists, id, value) as readonly T[];
  }

  /** Starting over forgets what went out of use; what is in use comes back with the next objects. */
  #share<T>(values: Map<string, T>, id: string, value: T): T {
    if (id.length > LONGEST) return value;
    const known = values.get(id);
    if (known !== undefined) return known;
    if (values.size >= MOST_VALUES) values.clear();
    values.set(flat(id), value);
    return value;
  }
}
