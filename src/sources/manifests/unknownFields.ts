/** Fields that Kubernetes does not know. An API server drops them with a warning, or refuses the object (strict decoding). */
import { escape } from '../../model/project/index.ts';
import { printPath } from '../../model/problem.ts';
import { nearest } from '../../text/suggest.ts';
import type { Holds, Shape } from './schema.ts';

type Path = readonly (string | number)[];

export interface UnknownField {
  readonly path: Path;
  /** `unknown field "spec.ports[0].protcol"; did you mean "protocol"?` */
  readonly message: string;
}

export interface UnknownFields {
  readonly found: readonly UnknownField[];
  /** How many there are besides. */
  readonly more: number;
}

/** One template can make a hundred thousand of them; nobody reads more than this of one object. */
const MOST_FOUND = 50;
/** No field has a longer name by far. */
const MOST_SHOWN = 60;

export function unknownFields(raw: unknown, shape: Shape): UnknownFields {
  const search = new Search(shape);
  search.visit(raw, { shape, isList: false }, []);
  return search;
}

class Search implements UnknownFields {
  readonly found: UnknownField[] = [];
  more = 0;
  readonly #root: Shape;

  constructor(root: Shape) {
    this.#root = root;
  }

  visit(value: unknown, { shape, isList }: Holds, path: Path): void {
    if (typeof value !== 'object' || value === null || Array.isArray(value) !== isList) return;
    if (Array.isArray(value)) {
      for (const [index, item] of value.entries())
        this.visit(item, { shape, isList: false }, [...path, index]);
      return;
    }
    for (const [name, inner] of Object.entries(value)) {
      const held = shape.get(name);
      if (held !== undefined) this.visit(inner, held, [...path, name]);
      else if (!shape.has(name)) this.#add(shape, path, name);
    }
  }

  #add(shape: Shape, parent: Path, name: string): void {
    if (this.found.length >= MOST_FOUND) {
      this.more += 1;
      return;
    }
    const shown = escape(name.length > MOST_SHOWN ? `${name.slice(0, MOST_SHOWN)}…` : name);
    const meant =
      name.length > MOST_SHOWN ? undefined : (nearest(name, shape.keys()) ?? placeOf(name, this.#root));
    const hint = meant === undefined ? '' : `; did you mean "${meant}"?`;
    const message = `unknown field "${printPath([...parent, shown])}"${hint}`;
    this.found.push({ path: [...parent, name], message });
  }
}

/** Wrong indentation puts a field into the wrong map: where it belongs, if there is one place nearer to the top than all others. */
function placeOf(name: string, root: Shape): string | undefined {
  let level: (readonly [string, Shape])[] = [['', root]];
  while (level.length > 0) {
    const places = level.filter(([, shape]) => shape.has(name));
    if (places.length > 0) return places.length === 1 ? `${places[0]?.[0]}${name}` : undefined;
    level = level.flatMap(([prefix, shape]) =>
      [...shape].flatMap(([field, held]): (readonly [string, Shape])[] =>
        held === undefined ? [] : [[`${prefix}${field}${held.isList ? '[]' : ''}.`, held.shape]],
      ),
    );
  }
  return undefined;
}
