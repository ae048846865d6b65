/**
 * Renders the part of Helm's and kubectl's template language that our templates use. Anything else is an error, so that a
 * template cannot outgrow its tests unseen; and so is, unlike in Helm, a value that does not exist.
 */
import { FUNCTIONS, isTrue, print, type TemplateFunction } from './functions.ts';

type Value = (dot: unknown, scope: Scope) => unknown;
type Body = (dot: unknown, scope: Scope) => string;

/** The variables of a block and of those around it. */
class Scope {
  readonly #own = new Map<string, unknown>();
  readonly #outer: Scope | undefined;

  constructor(outer?: Scope) {
    this.#outer = outer;
  }

  declare(name: string, value: unknown): this {
    this.#own.set(name, value);
    return this;
  }

  get(name: string): unknown {
    return this.#holder(name).#own.get(name);
  }

  assign(name: string, value: unknown): void {
    this.#holder(name).declare(name, value);
  }

  #holder(name: string): Scope {
    if (this.#own.has(name)) return this;
    if (!this.#outer) throw new Error(`template: there is no ${name}`);
    return this.#outer.#holder(name);
  }
}

export class Renderer {
  readonly templates = new Map<string, Body>();
  readonly allowsMissing: boolean;

  /** By the names that `include` takes. `allowsMissing`: what does not exist is nil, as for kubectl. */
  constructor(sources: ReadonlyMap<string, string>, { allowsMissing = false } = {}) {
    this.allowsMissing = allowsMissing;
    for (const [name, source] of sources) this.templates.set(name, new Reader(source, this).whole());
  }

  render(name: string, data: unknown): string {
    const body = this.templates.get(name);
    if (!body) throw new Error(`template: there is no ${name}`);
    return body(data, new Scope().declare('$', data));
  }
}

const ACTION = /\{\{(- )?(\/\*[^]*?\*\/|(?:"[^"]*"|`[^`]*`|[^}"`])*?)( -)?\}\}/;

/** Text and actions in turn; `{{-` and `-}}` remove the white space beside them. */
function split(source: string): readonly string[] {
  const pieces: string[] = [];
  let rest = source;
  for (let match = ACTION.exec(rest); match; match = ACTION.exec(rest)) {
    const [whole, trimsBefore, action = '', trimsAfter] = match;
    const text = rest.slice(0, match.index);
    pieces.push(trimsBefore === undefined ? text : text.trimEnd(), action.trim());
    rest = rest.slice(match.index + whole.length);
    if (trimsAfter !== undefined) rest = rest.trimStart();
  }
  if (/\{\{|\}\}/.test(rest)) throw new Error(`template: cannot read ${rest.slice(0, 60)}`);
  return [...pieces, rest];
}

const TOKEN = /\s*("(?:[^"\\]|\\.)*"|`[^`]*`|-?\d+|\$?(?:\.?\w+)+|\$\.?|\.|[()|])/y;

class Reader {
  readonly #pieces: readonly string[];
  readonly #renderer: Renderer;
  #next = 0;
  #tokens: string[] = [];

  constructor(source: string, renderer: Renderer) {
    this.#pieces = split(source);
    this.#renderer = renderer;
  }

  whole(): Body {
    return this.#until(undefined);
  }

  #until(expected: string | undefined): Body {
    const { body, end } = this.#body();
    if (end !== expected) throw new Error(`template: ${end ?? 'end of file'} instead of ${expected}`);
    return body;
  }

  /** Up to the `end` or `else` that belongs to the caller, or to the end of the file. */
  #body(): { readonly body: Body; readonly end: string | undefined } {
    const parts: Body[] = [];
    let end: string | undefined;
    while (this.#next < this.#pieces.length && end === undefined) {
      const isText = this.#next % 2 === 0;
      const piece = this.#pieces[this.#next++] ?? '';
      if (isText) parts.push(() => piece);
      else if (/^(end|else)\b/.test(piece)) end = piece;
      else if (!piece.startsWith('/*')) parts.push(this.#action(piece));
    }
    const body: Body = (dot, outer) => {
      const scope = new Scope(outer);
      return parts.map((part) => part(dot, scope)).join('');
    };
    return { body, end };
  }

  #action(action: string): Body {
    const [, name, sign, assigned = ''] = /^(\$\w+)\s*(:?=)\s*([^]*)$/.exec(action) ?? [];
    if (name !== undefined) return this.#assignment(name, sign === ':=', assigned);
    const [, keyword, rest = ''] = /^(if|with|range|define)\s+([^]*)$/.exec(action) ?? [];
    if (keyword === 'range') return this.#range(rest);
    if (keyword === 'if' || keyword === 'with') return this.#choice(keyword, rest);
    if (keyword === 'define') {
      this.#renderer.templates.set(JSON.parse(rest) as string, this.#until('end'));
      return () => '';
    }
    const value = this.#expression(action);
    return (dot, scope) => print(value(dot, scope));
  }

  #assignment(name: string, isNew: boolean, text: string): Body {
    const value = this.#expression(text);
    return (dot, scope) => {
      if (isNew) scope.declare(name, value(dot, scope));
      else scope.assign(name, value(dot, scope));
      return '';
    };
  }

  #choice(keyword: 'if' | 'with', text: string): Body {
    const condition = this.#expression(text);
    const { body, end } = this.#body();
    const otherwise = this.#otherwise(end);
    return (dot, scope) => {
      const value = condition(dot, scope);
      return isTrue(value) ? body(keyword === 'if' ? dot : value, scope) : otherwise(dot, scope);
    };
  }

  #otherwise(end: string | undefined): Body {
    if (end === 'end') return () => '';
    if (end === 'else') return this.#until('end');
    const condition = /^else if ([^]*)$/.exec(end ?? '')?.[1];
    if (condition === undefined) throw new Error(`template: ${end ?? 'end of file'} instead of end`);
    return this.#choice('if', condition);
  }

  #range(text: string): Body {
    const [, first, second, list = ''] = /^(?:(\$\w+), (\$\w+) := )?([^]*)$/.exec(text) ?? [];
    const over = this.#expression(list);
    const body = this.#until('end');
    return (dot, outer) =>
      entriesOf(over(dot, outer))
        .map(([key, value]) => {
          const scope = new Scope(outer);
          if (first !== undefined && second !== undefined) scope.declare(first, key).declare(second, value);
          return body(value, scope);
        })
        .join('');
  }

  #expression(text: string): Value {
    this.#tokens = tokensOf(text);
    const value = this.#pipeline();
    if (this.#tokens.length > 0)
      throw new Error(`template: ${this.#tokens.join(' ')} is left over in ${text}`);
    return value;
  }

  /** `a | f x` is `f x a`. */
  #pipeline(): Value {
    let value = this.#command([]);
    while (this.#tokens[0] === '|') {
      this.#tokens.shift();
      value = this.#command([value]);
    }
    return value;
  }

  #command(piped: readonly Value[]): Value {
    const head = this.#tokens.shift() ?? '';
    const args: Value[] = [];
    while (this.#tokens.length > 0 && !/^[|)]$/.test(this.#tokens[0] ?? '')) {
      args.push(this.#operand(this.#tokens.shift() ?? ''));
    }
    return this.#operand(head, [...args, ...piped]);
  }

  #operand(token: string, args: readonly Value[] = []): Value {
    if (/^[a-zA-Z]\w*$/.test(token) && token !== 'true' && token !== 'false') return this.#call(token, args);
    const value = this.#word(token);
    if (args.length === 0) return value;
    return (dot, scope) => {
      const method = value(dot, scope);
      if (typeof method !== 'function') throw new Error(`template: ${token} is no method`);
      return method(...args.map((arg) => arg(dot, scope))) as unknown;
    };
  }

  #call(name: string, args: readonly Value[]): Value {
    const include: TemplateFunction = (template, data) => this.#renderer.render(String(template), data);
    const called = name === 'include' ? include : FUNCTIONS[name];
    if (!called) throw new Error(`template: ${name} is a function that these tests do not know`);
    return (dot, scope) => called(...args.map((arg) => arg(dot, scope)));
  }

  #word(token: string): Value {
    if (token === '(') {
      const inner = this.#pipeline();
      if (this.#tokens.shift() !== ')') throw new Error('template: ) is missing');
      return inner;
    }
    if (/^[.$]/.test(token)) {
      const [from = '', ...names] = token.split('.');
      return (dot, scope) =>
        names
          .filter((name) => name !== '')
          .reduce((value, name) => this.#inside(value, name), from === '' ? dot : scope.get(from));
    }
    const literal: unknown = token.startsWith('`') ? token.slice(1, -1) : JSON.parse(token);
    return () => literal;
  }

  #inside(from: unknown, name: string): unknown {
    if (typeof from === 'object' && from !== null && Object.hasOwn(from, name))
      return (from as Readonly<Record<string, unknown>>)[name];
    if (this.#renderer.allowsMissing) return undefined;
    throw new Error(`template: there is no ${name}`);
  }
}

function tokensOf(text: string): string[] {
  const tokens: string[] = [];
  const token = new RegExp(TOKEN);
  while (token.lastIndex < text.trimEnd().length) {
    const at = token.lastIndex;
    const match = token.exec(text);
    if (!match) throw new Error(`template: cannot read ${text.slice(at)}`);
    tokens.push(match[1] ?? '');
  }
  return tokens;
}

/** Go goes through a map by the order of its keys, and not at all through what is nil. */
function entriesOf(value: unknown): readonly (readonly [unknown, unknown])[] {
  if (Array.isArray(value)) return [...value.entries()];
  return Object.entries(value ?? {}).sort(([left], [right]) => (left < right ? -1 : 1));
}
