/** Fills in a parsed template. Strict where Helm is lax: a value that does not exist is an error, not an empty text. */
import { FUNCTIONS, isTrue, print } from './functions.ts';
import type { Body, Expression, Node } from './parse.ts';

type Variables = Readonly<Record<string, unknown>>;

export class Renderer {
  readonly #templates: Map<string, Body>;

  /** By the name that `include` takes: a file's path, or what `define` says. */
  constructor(files: ReadonlyMap<string, Body>) {
    this.#templates = new Map(files);
    for (const node of [...files.values()].flat()) {
      if (node.kind === 'define') this.#templates.set(node.name, node.body);
    }
  }

  render(name: string, data: unknown): string {
    const body = this.#templates.get(name);
    if (!body) throw new Error(`template: there is no ${name}`);
    return this.#body(body, data, { $: data });
  }

  #body(body: Body, dot: unknown, variables: Variables): string {
    return body.map((node) => this.#node(node, dot, variables)).join('');
  }

  #node(node: Node, dot: unknown, variables: Variables): string {
    switch (node.kind) {
      case 'text':
        return node.text;
      case 'define':
        return '';
      case 'output':
        return print(this.#value(node.expression, dot, variables));
      case 'if': {
        const holds = isTrue(this.#value(node.condition, dot, variables));
        return this.#body(holds ? node.body : node.otherwise, dot, variables);
      }
      case 'with': {
        const value = this.#value(node.value, dot, variables);
        return isTrue(value)
          ? this.#body(node.body, value, variables)
          : this.#body(node.otherwise, dot, variables);
      }
      case 'range':
        return entriesOf(this.#value(node.over, dot, variables))
          .map(([key, value]) => this.#body(node.body, value, bind(node.variables, key, value, variables)))
          .join('');
    }
  }

  #value(expression: Expression, dot: unknown, variables: Variables): unknown {
    switch (expression.kind) {
      case 'literal':
        return expression.value;
      case 'path': {
        const start = expression.from === '' ? dot : own(variables, expression.from);
        const found = expression.names.reduce(own, start);
        if (expression.args.length === 0) return found;
        if (typeof found !== 'function')
          throw new Error(`template: ${expression.names.join('.')} is no method`);
        return found(...expression.args.map((arg) => this.#value(arg, dot, variables))) as unknown;
      }
      case 'call': {
        const args = expression.args.map((arg) => this.#value(arg, dot, variables));
        if (expression.name === 'include') return this.render(String(args[0]), args[1]);
        const called = FUNCTIONS[expression.name];
        if (!called)
          throw new Error(`template: ${expression.name} is a function that these tests do not know`);
        return called(...args);
      }
    }
  }
}

function own(from: unknown, name: string): unknown {
  if (typeof from !== 'object' || from === null || !Object.hasOwn(from, name)) {
    throw new Error(`template: there is no ${name}`);
  }
  return (from as Variables)[name];
}

/** Go goes through a map by the order of its keys. */
function entriesOf(value: unknown): readonly (readonly [unknown, unknown])[] {
  if (Array.isArray(value)) return [...value.entries()];
  if (typeof value !== 'object' || value === null) throw new Error('template: range needs a list or a map');
  return Object.entries(value).sort(([left], [right]) => (left < right ? -1 : 1));
}

function bind(names: readonly string[], key: unknown, value: unknown, outer: Variables): Variables {
  const [first, second] = names;
  if (first === undefined) return outer;
  return second === undefined ? { ...outer, [first]: value } : { ...outer, [first]: key, [second]: value };
}
