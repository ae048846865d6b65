/** Fills in a parsed template. Strict where Helm is lax: a value that does not exist is an error, not an empty text. */
import { FUNCTIONS, isTrue, print } from './functions.ts';
import type { Body, Expression, Node } from './parse.ts';
import { Scope } from './scope.ts';

interface RendererOptions {
  /** A value that does not exist is nil, and so is all inside it: as kubectl has it. */
  readonly allowsMissing?: boolean;
}

export class Renderer {
  readonly #templates: Map<string, Body>;
  readonly #allowsMissing: boolean;

  /** By the name that `include` takes: a file's path, or what `define` says. */
  constructor(files: ReadonlyMap<string, Body>, { allowsMissing = false }: RendererOptions = {}) {
    this.#templates = new Map(files);
    this.#allowsMissing = allowsMissing;
    for (const node of [...files.values()].flat()) {
      if (node.kind === 'define') this.#templates.set(node.name, node.body);
    }
  }

  render(name: string, data: unknown): string {
    const body = this.#templates.get(name);
    if (!body) throw new Error(`template: there is no ${name}`);
    return this.#body(body, data, new Scope().with('$', data));
  }

  /** What is declared in here ends with it. */
  #body(body: Body, dot: unknown, outer: Scope): string {
    const scope = new Scope(outer);
    return body.map((node) => this.#node(node, dot, scope)).join('');
  }

  #node(node: Node, dot: unknown, scope: Scope): string {
    switch (node.kind) {
      case 'text':
        return node.text;
      case 'define':
        return '';
      case 'output':
        return print(this.#value(node.expression, dot, scope));
      case 'set': {
        const value = this.#value(node.value, dot, scope);
        if (node.isNew) scope.with(node.name, value);
        else scope.assign(node.name, value);
        return '';
      }
      case 'if': {
        const holds = isTrue(this.#value(node.condition, dot, scope));
        return this.#body(holds ? node.body : node.otherwise, dot, scope);
      }
      case 'with': {
        const value = this.#value(node.value, dot, scope);
        return isTrue(value) ? this.#body(node.body, value, scope) : this.#body(node.otherwise, dot, scope);
      }
      case 'range': {
        const over = this.#value(node.over, dot, scope);
        return entriesOf(over)
          .map(([key, value]) => this.#body(node.body, value, bind(node.variables, key, value, scope)))
          .join('');
      }
    }
  }

  #value(expression: Expression, dot: unknown, scope: Scope): unknown {
    switch (expression.kind) {
      case 'literal':
        return expression.value;
      case 'path': {
        const start = expression.from === '' ? dot : scope.get(expression.from);
        const found = expression.names.reduce((from, name) => this.#own(from, name), start);
        if (expression.args.length === 0) return found;
        if (typeof found !== 'function')
          throw new Error(`template: ${expression.names.join('.')} is no method`);
        return found(...expression.args.map((arg) => this.#value(arg, dot, scope))) as unknown;
      }
      case 'call': {
        const args = expression.args.map((arg) => this.#value(arg, dot, scope));
        if (expression.name === 'include') return this.render(String(args[0]), args[1]);
        const called = FUNCTIONS[expression.name];
        if (!called)
          throw new Error(`template: ${expression.name} is a function that these tests do not know`);
        return called(...args);
      }
    }
  }

  #own(from: unknown, name: string): unknown {
    if (typeof from === 'object' && from !== null && Object.hasOwn(from, name))
      return (from as Readonly<Record<string, unknown>>)[name];
    if (this.#allowsMissing) return undefined;
    throw new Error(`template: there is no ${name}`);
  }
}

/** Go goes through a map by the order of its keys, and not at all through what is nil. */
function entriesOf(value: unknown): readonly (readonly [unknown, unknown])[] {
  if (value === null || value === undefined) return [];
  if (Array.isArray(value)) return [...value.entries()];
  if (typeof value !== 'object') throw new Error('template: range needs a list or a map');
  return Object.entries(value).sort(([left], [right]) => (left < right ? -1 : 1));
}

function bind(names: readonly string[], key: unknown, value: unknown, outer: Scope): Scope {
  const scope = new Scope(outer);
  const [first, second] = names;
  if (first === undefined) return scope;
  return second === undefined ? scope.with(first, value) : scope.with(first, key).with(second, value);
}
