/**
 * Reads the types of answers from the source: interfaces, unions, lists and records, with their comments. Just enough of
 * TypeScript for types that JSON can carry; anything else is an error, so that nobody documents less than there is.
 */
export type TypeNode =
  | { readonly kind: 'name'; readonly name: string; readonly args: readonly TypeNode[] }
  | { readonly kind: 'literal'; readonly value: string | number | boolean }
  | { readonly kind: 'list'; readonly item: TypeNode }
  | { readonly kind: 'object'; readonly members: readonly Member[] }
  | { readonly kind: 'union' | 'both'; readonly of: readonly TypeNode[] }
  | { readonly kind: 'member'; readonly of: TypeNode; readonly name: string };

export interface Member {
  readonly name: string;
  readonly isOptional: boolean;
  readonly type: TypeNode;
  readonly comment: string;
}

export interface Declaration {
  readonly name: string;
  readonly comment: string;
  readonly parents: readonly TypeNode[];
  readonly type: TypeNode;
}

const TOKEN = /\/\*\*([\s\S]*?)\*\/|\/\/[^\n]*|'((?:[^'\\]|\\.)*)'|(\w+)|([{}()[\]<>|&;:?,=])|\s+|([\s\S])/g;

interface Token {
  readonly kind: 'comment' | 'string' | 'word' | 'sign' | 'other';
  readonly text: string;
}

/** The type of a source file that has this name. */
export function readDeclaration(source: string, name: string): Declaration | undefined {
  const start = new RegExp(
    `(?:/\\*\\*((?:(?!\\*/)[\\s\\S])*)\\*/\\s*)?^(?:export )?(interface|type) ${name}\\b`,
    'm',
  ).exec(source);
  if (!start) return undefined;
  const [whole, comment = '', kind] = start;
  const reader = new TypeReader(source.slice(start.index + whole.length));
  const parents = kind === 'interface' ? reader.parents() : [];
  if (kind === 'type') reader.expect('=');
  return { name, comment: tidy(comment), parents, type: reader.type() };
}

function tidy(comment: string): string {
  return comment.replaceAll(/\s*\n\s*\*?\s*/g, ' ').trim();
}

class TypeReader {
  readonly #tokens: Iterator<RegExpExecArray>;
  #next: Token | undefined;
  #comment = '';

  constructor(text: string) {
    this.#tokens = text.matchAll(TOKEN)[Symbol.iterator]();
    this.#advance();
  }

  parents(): readonly TypeNode[] {
    if (!this.#skip('extends')) return [];
    const parents: TypeNode[] = [];
    do parents.push(this.#postfix());
    while (this.#skip(','));
    return parents;
  }

  type(): TypeNode {
    this.#skip('|');
    const of = [this.#both()];
    while (this.#skip('|')) of.push(this.#both());
    return of.length === 1 ? (of[0] as TypeNode) : { kind: 'union', of };
  }

  expect(text: string): void {
    if (!this.#skip(text)) throw new Error(`expected ${text}, and there is ${this.#next?.text ?? 'nothing'}`);
  }

  #both(): TypeNode {
    const of = [this.#postfix()];
    while (this.#skip('&')) of.push(this.#postfix());
    return of.length === 1 ? (of[0] as TypeNode) : { kind: 'both', of };
  }

  #postfix(): TypeNode {
    if (this.#skip('readonly')) return this.#postfix();
    let node = this.#primary();
    while (this.#skip('[')) {
      const name = this.#next?.kind === 'string' ? this.#take() : undefined;
      this.expect(']');
      node = name === undefined ? { kind: 'list', item: node } : { kind: 'member', of: node, name };
    }
    return node;
  }

  #primary(): TypeNode {
    if (this.#skip('(')) {
      const inner = this.type();
      this.expect(')');
      return inner;
    }
    if (this.#next?.text === '{') return { kind: 'object', members: this.#members() };
    const kind = this.#next?.kind;
    const text = this.#take();
    if (kind === 'string') return { kind: 'literal', value: text };
    if (kind !== 'word') throw new Error(`no type begins with ${text}`);
    if (/^\d+$/.test(text)) return { kind: 'literal', value: Number(text) };
    if (text === 'true' || text === 'false') return { kind: 'literal', value: text === 'true' };
    const args: TypeNode[] = [];
    if (this.#skip('<')) {
      do args.push(this.type());
      while (this.#skip(','));
      this.expect('>');
    }
    return { kind: 'name', name: text, args };
  }

  #members(): readonly Member[] {
    this.expect('{');
    const members: Member[] = [];
    while (this.#next?.text !== '}') {
      const comment = this.#comment;
      this.#skip('readonly');
      const name = this.#take();
      const isOptional = this.#skip('?');
      this.expect(':');
      const type = this.type();
      this.#skip(';');
      members.push({ name, isOptional, type, comment: tidy(comment) });
    }
    this.expect('}');
    return members;
  }

  #skip(text: string): boolean {
    if (this.#next?.text !== text || this.#next.kind === 'string') return false;
    this.#advance();
    return true;
  }

  #take(): string {
    const { text = '' } = this.#next ?? {};
    this.#advance();
    return text;
  }

  /** The comment before a token is kept until the token after it. */
  #advance(): void {
    this.#comment = '';
    for (;;) {
      const { value, done } = this.#tokens.next();
      if (done === true) {
        this.#next = undefined;
        return;
      }
      const [whole, comment, string, word, sign, other] = value;
      if (comment !== undefined) this.#comment = comment;
      else if (string !== undefined) this.#next = { kind: 'string', text: string };
      else if (word !== undefined) this.#next = { kind: 'word', text: word };
      else if (sign !== undefined) this.#next = { kind: 'sign', text: sign };
      else if (other !== undefined) this.#next = { kind: 'other', text: other };
      if (comment === undefined && whole.trim() !== '' && !whole.startsWith('//')) return;
    }
  }
}
