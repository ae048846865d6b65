/** docs/reference/api.schema.json: the shapes of all answers, from the types of the source. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DOCTOR_GROUPS } from '../../src/explain/doctorReport.ts';
import { NODE_STATES } from '../../src/explain/nodes.ts';
import { MODE_NAMES } from '../../src/model/mode.ts';
import { type Declaration, type Member, readDeclaration, type TypeNode } from './typeReader.ts';

/** A part of a schema, in the words of JSON Schema 2020-12. */
export type Schema = Readonly<Record<string, unknown>>;

/** What a route or command answers with. */
export const ANSWERS = [
  'PacketExplanation',
  'ServiceExplanation',
  'ServiceRow',
  'EndpointRow',
  'ServiceObjects',
  'Status',
  'NodeStatus',
  'ChangeRecord',
  'WatchEvent',
  'SnapshotLine',
  'DoctorReport',
  'DiffReport',
] as const;

const FILES = [
  'src/explain/types.ts',
  'src/explain/status.ts',
  'src/explain/nodes.ts',
  'src/explain/snapshot.ts',
  'src/explain/doctorReport.ts',
  'src/diff/types.ts',
  'src/plan/types.ts',
  'src/plan/view.ts',
  'src/model/objects.ts',
  'src/model/ip.ts',
];

const TEXT = { type: 'string' };
/** Names whose types are not for JSON, and what they are there. */
const KNOWN: Readonly<Record<string, Schema>> = {
  string: TEXT,
  number: { type: 'number' },
  boolean: { type: 'boolean' },
  unknown: {},
  Ip: { ...TEXT, description: 'A canonical address: 10.0.0.1 or fd00::1.' },
  Cidr: { ...TEXT, description: 'A canonical, masked CIDR: 10.0.0.0/8.' },
  ObjectKey: { ...TEXT, description: 'NAMESPACE/NAME.' },
  ServicePortId: { ...TEXT, description: 'One port of one Service: shop/web:http/TCP.' },
  ModeName: { enum: [...MODE_NAMES] },
  NodeState: { enum: [...NODE_STATES] },
  DoctorGroupName: { enum: [...DOCTOR_GROUPS] },
  KubernetesObject: {
    type: 'object',
    properties: { apiVersion: TEXT, kind: TEXT, metadata: { type: 'object' } },
    required: ['apiVersion', 'kind', 'metadata'],
    additionalProperties: {},
    description: 'A Service, an EndpointSlice or a Node in the shape of Kubernetes.',
  },
};

const ERROR: Schema = {
  type: 'object',
  description: 'The body of every answer with a status of 400 or more.',
  properties: {
    error: {
      type: 'object',
      properties: {
        code: { ...TEXT, description: 'Stable, for programs.' },
        message: { ...TEXT, description: 'What is wrong, and with what.' },
        hint: { ...TEXT, description: 'What to do.' },
        parameter: { ...TEXT, description: 'Which parameter is the reason: `from`, `to`, `at`.' },
      },
      required: ['code', 'message'],
    },
  },
  required: ['error'],
};

export function apiSchema(root: string): Schema {
  const sources = FILES.map((path) => readFileSync(join(root, path), 'utf8'));
  const reader = new SchemaReader((name) => {
    for (const source of sources) {
      const declaration = readDeclaration(source, name);
      if (declaration) return declaration;
    }
    return undefined;
  });
  for (const name of ANSWERS) reader.define(name);
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Answers of Junction',
    description:
      'What the local API answers, and what commands print with --output json. Fields are added, never renamed, so readers must take objects with more fields than these.',
    $defs: { ...reader.definitions(), Error: ERROR },
  };
}

class SchemaReader {
  readonly #find: (name: string) => Declaration | undefined;
  readonly #defined = new Map<string, Schema>();

  constructor(find: (name: string) => Declaration | undefined) {
    this.#find = find;
  }

  definitions(): Readonly<Record<string, Schema>> {
    return Object.fromEntries([...this.#defined].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  define(name: string): void {
    if (this.#defined.has(name)) return;
    const known = KNOWN[name];
    this.#defined.set(name, known ?? {});
    if (known) return;
    const { comment, type } = this.#declared(name);
    const schema = this.#schemaOf(
      type.kind === 'object' ? { kind: 'object', members: this.#membersOf(name) } : type,
    );
    this.#defined.set(name, { ...(comment !== '' && { description: comment }), ...schema });
  }

  #declared(name: string): Declaration {
    const declaration = this.#find(name);
    if (!declaration) throw new Error(`no type ${name} in ${FILES.join(', ')}`);
    return declaration;
  }

  /** With those of what it extends; its own come last and win. */
  #membersOf(name: string): readonly Member[] {
    const { parents, type } = this.#declared(name);
    return this.#joined([...parents, type]);
  }

  #joined(nodes: readonly TypeNode[]): readonly Member[] {
    const members = new Map<string, Member>();
    for (const node of nodes)
      for (const member of this.#objectMembers(node)) members.set(member.name, member);
    return [...members.values()];
  }

  #objectMembers(node: TypeNode): readonly Member[] {
    if (node.kind === 'object') return node.members;
    if (node.kind === 'both') return this.#joined(node.of);
    if (node.kind === 'name' && node.name === 'Omit') {
      const [of, names] = node.args;
      const left = names === undefined ? [] : literalsOf(names);
      return of === undefined ? [] : this.#objectMembers(of).filter(({ name }) => !left.includes(name));
    }
    if (node.kind === 'name') return this.#membersOf(node.name);
    throw new Error(`${node.kind} has no members`);
  }

  #schemaOf(node: TypeNode): Schema {
    switch (node.kind) {
      case 'literal':
        return { const: node.value };
      case 'list':
        return { type: 'array', items: this.#schemaOf(node.item) };
      case 'object':
        return this.#objectSchema(node.members);
      case 'both':
        return this.#objectSchema(this.#joined(node.of));
      case 'member': {
        const member = this.#objectMembers(node.of).find(({ name }) => name === node.name);
        if (!member) throw new Error(`no member ${node.name}`);
        return this.#schemaOf(member.type);
      }
      case 'union':
        return node.of.every(({ kind }) => kind === 'literal')
          ? { enum: literalsOf(node) }
          : { anyOf: node.of.map((each) => this.#schemaOf(each)) };
      case 'name':
        return this.#named(node.name, node.args);
    }
  }

  #named(name: string, args: readonly TypeNode[]): Schema {
    const [first, second] = args;
    if (name === 'Readonly' && first) return this.#schemaOf(first);
    if (name === 'Record' && first && second) {
      if (first.kind === 'name' && first.name === 'string')
        return { type: 'object', additionalProperties: this.#schemaOf(second) };
      const members = literalsOf(first.kind === 'name' ? this.#declared(first.name).type : first).map(
        (key) => ({
          name: String(key),
          isOptional: false,
          type: second,
          comment: '',
        }),
      );
      return this.#objectSchema(members);
    }
    if (args.length > 0) throw new Error(`${name}<…> is not for JSON`);
    const known = KNOWN[name];
    if (known && known['description'] === undefined) return known;
    this.define(name);
    return { $ref: `#/$defs/${name}` };
  }

  #objectSchema(members: readonly Member[]): Schema {
    const properties = members.map(({ name, type, comment }) => {
      const schema = this.#schemaOf(type);
      return [name, comment === '' ? schema : { ...schema, description: comment }] as const;
    });
    const required = members.filter(({ isOptional }) => !isOptional).map(({ name }) => name);
    return {
      type: 'object',
      properties: Object.fromEntries(properties),
      ...(required.length > 0 && { required }),
    };
  }
}

function literalsOf(node: TypeNode): readonly (string | number | boolean)[] {
  if (node.kind === 'literal') return [node.value];
  if (node.kind === 'union') return node.of.flatMap(literalsOf);
  throw new Error(`${node.kind} is no list of values`);
}
