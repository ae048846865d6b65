/**
 * Reads the part of Helm's template language that our chart uses: text, values, pipelines, variables, if, with, range,
 * define.
 * Whatever else Helm knows is an error here, so that a template cannot outgrow its tests unseen.
 */
export type Expression =
  | { readonly kind: 'literal'; readonly value: string | number | boolean }
  /** `.a.b`, `$.a.b` or `$name.a.b`; with arguments it is a method call. */
  | {
      readonly kind: 'path';
      readonly from: string;
      readonly names: readonly string[];
      readonly args: readonly Expression[];
    }
  | { readonly kind: 'call'; readonly name: string; readonly args: readonly Expression[] };

export type Node =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'output'; readonly expression: Expression }
  | { readonly kind: 'if'; readonly condition: Expression; readonly body: Body; readonly otherwise: Body }
  | { readonly kind: 'with'; readonly value: Expression; readonly body: Body; readonly otherwise: Body }
  | {
      readonly kind: 'range';
      readonly variables: readonly string[];
      readonly over: Expression;
      readonly body: Body;
    }
  | { readonly kind: 'define'; readonly name: string; readonly body: Body }
  /** `$name := value`, or with `isNew` false `$name = value`. */
  | { readonly kind: 'set'; readonly name: string; readonly isNew: boolean; readonly value: Expression };

export type Body = readonly Node[];

type Piece = { readonly text: string } | { readonly action: string };

export function parseTemplate(source: string): Body {
  const reader = new BodyReader(split(source));
  const { body, end } = reader.read();
  if (end !== undefined) throw new Error(`template: {{ ${end} }} closes nothing`);
  return body;
}

const ACTION = /\{\{(- )?(\/\*[^]*?\*\/|(?:"[^"]*"|`[^`]*`|[^}"`])*?)( -)?\}\}/;

/** Text and actions; `{{-` and `-}}` take the white space beside them away. */
function split(source: string): readonly Piece[] {
  const pieces: Piece[] = [];
  let text = '';
  let rest = source;
  for (;;) {
    const match = ACTION.exec(rest);
    if (!match) break;
    text += rest.slice(0, match.index);
    rest = rest.slice(match.index + match[0].length);
    if (match[1] !== undefined) text = text.trimEnd();
    pieces.push({ text }, { action: (match[2] ?? '').trim() });
    text = '';
    if (match[3] !== undefined) rest = rest.trimStart();
  }
  if (/\{\{|\}\}/.test(rest)) throw new Error(`template: cannot read ${JSON.stringify(rest.slice(0, 60))}`);
  return [...pieces, { text: text + rest }];
}

class BodyReader {
  readonly #pieces: readonly Piece[];
  #next = 0;

  constructor(pieces: readonly Piece[]) {
    this.#pieces = pieces;
  }

  /** Up to the `end` or `else` that belongs to whoever called, or to the end of the file. */
  read(): { readonly body: Body; readonly end: string | undefined } {
    const body: Node[] = [];
    for (let piece = this.#pieces[this.#next++]; piece; piece = this.#pieces[this.#next++]) {
      if ('text' in piece) {
        if (piece.text !== '') body.push({ kind: 'text', text: piece.text });
      } else if (/^(end|else)\b/.test(piece.action)) {
        return { body, end: piece.action };
      } else if (!piece.action.startsWith('/*')) {
        body.push(this.#node(piece.action));
      }
    }
    return { body, end: undefined };
  }

  #node(action: string): Node {
    const [, variable, sign, value = ''] = /^(\$\w+)\s*(:?=)\s*([^]*)$/.exec(action) ?? [];
    if (variable !== undefined)
      return { kind: 'set', name: variable, isNew: sign === ':=', value: parseExpression(value) };
    const [, keyword = '', rest = ''] = /^(\w+)\s*([^]*)$/.exec(action) ?? [];
    switch (keyword) {
      case 'if':
        return this.#conditional('if', rest);
      case 'with':
        return this.#conditional('with', rest);
      case 'range':
        return this.#range(rest);
      case 'define':
        return { kind: 'define', name: JSON.parse(rest) as string, body: this.#untilEnd() };
      default:
        return { kind: 'output', expression: parseExpression(action) };
    }
  }

  #conditional(kind: 'if' | 'with', text: string): Node {
    const value = parseExpression(text);
    const { body, end } = this.read();
    const otherwise = this.#otherwise(end);
    return kind === 'if' ? { kind, condition: value, body, otherwise } : { kind, value, body, otherwise };
  }

  #otherwise(end: string | undefined): Body {
    if (end === 'end') return [];
    if (end === 'else') return this.#untilEnd();
    const condition = /^else if ([^]*)$/.exec(end ?? '')?.[1];
    if (condition === undefined) throw new Error(`template: ${end ?? 'end of file'} instead of end`);
    return [this.#conditional('if', condition)];
  }

  #range(text: string): Node {
    const [, names, over] = /^(?:(\$\w+(?:,\s*\$\w+)?)\s*:=\s*)?([^]*)$/.exec(text) ?? [];
    const variables = names === undefined ? [] : names.split(/,\s*/);
    return { kind: 'range', variables, over: parseExpression(over ?? ''), body: this.#untilEnd() };
  }

  #untilEnd(): Body {
    const { body, end } = this.read();
    if (end !== 'end') throw new Error(`template: ${end ?? 'end of file'} instead of end`);
    return body;
  }
}

const TOKEN = /\s*("(?:[^"\\]|\\.)*"|`[^`]*`|-?\d+|\$?(?:\.?\w+)+|\$\.?|\.|[()|])/y;

function parseExpression(text: string): Expression {
  const tokens = tokensOf(text);
  const { expression, rest } = pipeline(tokens);
  if (rest.length > 0) throw new Error(`template: ${rest.join(' ')} is left over in {{ ${text} }}`);
  return expression;
}

function tokensOf(text: string): readonly string[] {
  const tokens: string[] = [];
  const trimmed = text.trimEnd();
  const token = new RegExp(TOKEN);
  while (token.lastIndex < trimmed.length) {
    const at = token.lastIndex;
    const match = token.exec(trimmed);
    if (!match) throw new Error(`template: cannot read ${JSON.stringify(trimmed.slice(at))}`);
    tokens.push(match[1] ?? '');
  }
  return tokens;
}

interface Parsed {
  readonly expression: Expression;
  readonly rest: readonly string[];
}

/** `a | f x` is `f x a`. */
function pipeline(tokens: readonly string[]): Parsed {
  let { expression, rest } = command(tokens);
  while (rest[0] === '|') {
    const next = command(rest.slice(1));
    if (next.expression.kind !== 'call') throw new Error('template: only a function can stand after |');
    expression = { ...next.expression, args: [...next.expression.args, expression] };
    rest = next.rest;
  }
  return { expression, rest };
}

function command(tokens: readonly string[]): Parsed {
  const head = operand(tokens);
  const args: Expression[] = [];
  let rest = head.rest;
  while (rest.length > 0 && rest[0] !== '|' && rest[0] !== ')') {
    const next = operand(rest);
    args.push(next.expression);
    rest = next.rest;
  }
  if (args.length === 0) return { expression: head.expression, rest };
  if (head.expression.kind === 'literal') throw new Error('template: a literal takes no arguments');
  return { expression: { ...head.expression, args }, rest };
}

function operand([token, ...rest]: readonly string[]): Parsed {
  if (token === undefined) throw new Error('template: something is missing');
  if (token === '(') {
    const inner = pipeline(rest);
    if (inner.rest[0] !== ')') throw new Error('template: ) is missing');
    return { expression: inner.expression, rest: inner.rest.slice(1) };
  }
  return { expression: word(token), rest };
}

function word(token: string): Expression {
  if (token.startsWith('"')) return { kind: 'literal', value: JSON.parse(token) as string };
  if (token.startsWith('`')) return { kind: 'literal', value: token.slice(1, -1) };
  if (/^-?\d+$/.test(token)) return { kind: 'literal', value: Number(token) };
  if (token === 'true' || token === 'false') return { kind: 'literal', value: token === 'true' };
  if (token.startsWith('.') || token.startsWith('$')) {
    const [from = '', ...names] = token.split('.');
    return { kind: 'path', from, names: names.filter((name) => name !== ''), args: [] };
  }
  return { kind: 'call', name: token, args: [] };
}
