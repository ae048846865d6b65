/** Manifest text → the objects that it defines, each with its line, and what is wrong with them. Never throws. */
import type { EndpointSlice, Node, Service } from '../../model/objects.ts';
import { projectEndpointSlice, projectEndpoints } from '../../model/project/endpointSlice.ts';
import { apiVersionOf, kindOf, KINDS, nameOf, type ObjectKind } from '../../model/project/names.ts';
import { projectNode } from '../../model/project/node.ts';
import { projectService } from '../../model/project/service.ts';
import {
  isMap,
  mapProjection,
  ownField,
  ownText,
  printMessage,
  type Problem,
  type Projection,
} from '../../text/cursor.ts';
import { LineIndex } from '../../text/lines.ts';
import { escape, quote } from '../../text/printable.ts';
import { readYaml } from '../../text/yaml.ts';
import type { SourceProblem } from '../source.ts';
import type { Content } from './files.ts';

export type SnapshotObject =
  | { readonly kind: 'Service'; readonly value: Service }
  | { readonly kind: 'EndpointSlice'; readonly value: EndpointSlice }
  | { readonly kind: 'Node'; readonly value: Node };

/** An object of the text. */
export interface Definition {
  /** `Service shop/web` */
  readonly id: string;
  readonly file: string;
  /** `file:line` */
  readonly where: string;
  /** One, for Endpoints several, none for an object that is ignored; nothing where it cannot be used. */
  readonly objects?: readonly SnapshotObject[];
  /** Why it is ignored. */
  readonly reason?: string;
}

export interface ParsedText {
  readonly definitions: readonly Definition[];
  readonly problems: readonly SourceProblem[];
}

/** What a text holds, and where. */
interface RawObject {
  readonly raw: unknown;
  readonly offset: number;
}

interface RawDocument extends RawObject {
  /** Where the items of a List are. */
  readonly items: readonly number[];
}

interface Broken {
  readonly offset: number;
  readonly fault: Pick<SourceProblem, 'message' | 'expected'>;
}

/** Yields between documents, and between objects. */
export function* parseText(content: Content, file: string): Generator<undefined, ParsedText> {
  const definitions: Definition[] = [];
  const problems: SourceProblem[] = [];
  if ('message' in content) problems.push({ severity: 'error', where: file, message: content.message });
  else
    for (const { text, linesAbove } of splitDocuments(content.text)) {
      const lines = new LineIndex(text);
      for (const part of readPiece(text).flatMap(objectsIn)) {
        yield;
        const where = `${file}:${lines.position(part.offset).line + linesAbove}`;
        if ('raw' in part) readObject(part.raw, { file, where }, definitions, problems);
        else problems.push({ severity: 'error', where, ...part.fault });
      }
    }
  return { definitions, problems };
}

/** `---` begins a document wherever it stands, even in a block scalar: a piece that cannot be parsed leaves the others usable. */
function splitDocuments(text: string): readonly { readonly text: string; readonly linesAbove: number }[] {
  let linesAbove = 0;
  // A directive belongs to the document after the next `---`.
  return (/^%/m.test(text) ? [text] : text.split(/(?<=\n)(?=---(?:\s|$))/)).map((piece) => {
    const document = { text: piece, linesAbove };
    linesAbove += piece.split('\n').length - 1;
    return document;
  });
}

/** The YAML parser takes seconds for each of these, and a dump of a cluster may be cut off. */
const MAX_BROKEN_JSON = 1024 * 1024;

function readPiece(text: string): readonly (RawDocument | Broken)[] {
  const isJson = /^\s*[[{]/.test(text);
  const json = isJson ? readJson(text) : undefined;
  if (json) return json;
  if (isJson && text.length > MAX_BROKEN_JSON) return [unreadable(0, 'it is not JSON, or is cut off')];
  // YAML in flow style begins like JSON, and this parser says where it is wrong.
  return readYaml(text).map((value) => {
    if ('message' in value) {
      const { offset, code, message } = value;
      return code === undefined ? unreadable(offset, message) : { offset, fault: { message: tidy(message) } };
    }
    const [repeated] = value.repeatedKeys;
    if (!repeated) return { raw: value.raw, offset: value.offset, items: value.offsetsOfItems() };
    const message = `key ${quote(repeated.name)} is already set in this map`;
    const expected = 'each key once, and --- between two objects';
    return { offset: repeated.offset, fault: { message, expected } };
  });
}

function unreadable(offset: number, message: string): Broken {
  return { offset, fault: { message: `this document cannot be read: ${tidy(message)}` } };
}

/** The parser's messages quote the text. */
function tidy(message: string): string {
  const line = message.length > 200 ? `${message.slice(0, 200)}…` : message;
  return escape(line).replaceAll('\\"', '"');
}

/**
 * One JSON text, or several one after the other, as `jq '.items[]'` prints them; nothing where it is no JSON. A dump of a
 * cluster has many megabytes, for which the YAML parser takes minutes.
 */
function readJson(text: string): readonly RawDocument[] | undefined {
  const documents: RawDocument[] = [];
  let begin = 0;
  try {
    for (const { end, ...places } of findJsonTexts(text)) {
      documents.push({ raw: JSON.parse(text.slice(begin, end)) as unknown, ...places });
      begin = end;
    }
    return text.slice(begin).trim() === '' ? documents : undefined;
  } catch {
    return undefined;
  }
}

/** `items`: the maps in lists of the outermost map; only its `items` has as many as a List has objects. */
function* findJsonTexts(text: string): Generator<Omit<RawDocument, 'raw'> & { readonly end: number }> {
  let depth = 0;
  let outer = '';
  let offset = 0;
  let items: number[] = [];
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (character === '"') {
      for (at += 1; at < text.length && text[at] !== '"'; at++) if (text[at] === '\\') at += 1;
    } else if (character === '{' || character === '[') {
      if (depth === 0) [offset, items] = [at, []];
      if (depth === 2 && `${outer}${character}` === '{[{') items.push(at);
      if (depth < 2) outer = outer.slice(0, depth) + character;
      depth += 1;
    } else if (character === '}' || character === ']') {
      depth -= 1;
      if (depth === 0) yield { offset, end: at + 1, items };
    }
  }
}

/** The object itself, or the items of a list, which have the kind and the version of the list where they have none. */
function objectsIn(document: RawDocument | Broken): readonly (RawObject | Broken)[] {
  if (!('raw' in document)) return [document];
  const { raw, offset, items: places } = document;
  const item = listed(raw);
  if (!item) return raw === null ? [] : [document];
  const items = ownField(raw, 'items') ?? [];
  if (!Array.isArray(items))
    return [{ offset, fault: { message: `items is ${quote(items)}`, expected: 'a list' } }];
  return (items as readonly unknown[]).map((each, index) => {
    const place = (places.length === items.length ? places[index] : undefined) ?? offset;
    if (!listed(each)) return { raw: isMap(each) ? { ...item, ...each } : each, offset: place };
    return {
      offset: place,
      fault: { message: 'this is a list inside a list', expected: 'the objects themselves' },
    };
  });
}

/** What a list says of its items; nothing where this is no list of objects that we read. */
function listed(raw: unknown): { readonly kind?: string; readonly apiVersion?: unknown } | undefined {
  const kind = ownText(raw, 'kind');
  if (kind === 'List') return {};
  const item = { kind: kind.replace(/List$/, ''), apiVersion: ownField(raw, 'apiVersion') };
  return item.kind !== kind && kindOf(item) ? item : undefined;
}

function readObject(
  raw: unknown,
  place: Pick<Definition, 'file' | 'where'>,
  definitions: Definition[],
  problems: SourceProblem[],
): void {
  const { where } = place;
  const kindName = ownText(raw, 'kind');
  if (!isMap(raw) || kindName === '') {
    const expected = 'a map with apiVersion, kind and metadata';
    problems.push({ severity: 'error', where, message: 'this is not a Kubernetes object', expected });
    return;
  }
  const kind = KINDS.find((each) => kindName === each || kindName === `${each}List`);
  if (!kind) return;
  const version = raw['apiVersion'] ?? apiVersionOf(kind);
  const isServed = version === apiVersionOf(kind);
  if (!isServed && !isOfKubernetes(version)) return;
  const read = isServed ? projectKind(kind, raw) : notServed(version, kind);
  const name = nameOf(kind, raw);
  const id = name === undefined ? undefined : `${kind} ${name}`;
  const report = (severity: SourceProblem['severity'], found: readonly Problem[]): void => {
    for (const problem of found) {
      const message = printMessage(problem);
      const named = id === undefined ? { message: `${kind}: ${message}` } : { object: id, message };
      problems.push({ severity, where, ...named, expected: problem.expected });
    }
  };
  if (read.kind === 'invalid') report('error', read.problems);
  if (read.kind === 'object') report('warning', read.warnings);
  if (id === undefined) return;
  if (read.kind === 'object') definitions.push({ id, ...place, objects: read.value });
  else if (read.kind === 'ignored') definitions.push({ id, ...place, objects: [], reason: read.reason });
  else definitions.push({ id, ...place });
}

function notServed(version: unknown, kind: ObjectKind): Projection<never> {
  const message = `apiVersion ${quote(version)} is not served`;
  return { kind: 'invalid', problems: [{ path: [], message, expected: apiVersionOf(kind) }] };
}

/** Knative has a Service, Longhorn a Node: another group's kinds are its own. */
function isOfKubernetes(apiVersion: unknown): boolean {
  const [group = ''] =
    typeof apiVersion === 'string' && apiVersion.includes('/') ? apiVersion.split('/') : [];
  return !group.includes('.') || group === 'discovery.k8s.io';
}

/** What an object of a kind says, as slim objects: of Endpoints, one for each subset and family. */
export function projectKind(kind: ObjectKind, raw: unknown): Projection<readonly SnapshotObject[]> {
  switch (kind) {
    case 'Service':
      return mapProjection(projectService(raw), (value) => [{ kind, value }]);
    case 'EndpointSlice':
      return mapProjection(projectEndpointSlice(raw), (value) => [{ kind, value }]);
    case 'Endpoints':
      return mapProjection(projectEndpoints(raw), (slices) =>
        slices.map((value) => ({ kind: 'EndpointSlice', value })),
      );
    case 'Node':
      return mapProjection(projectNode(raw), (value) => [{ kind, value }]);
  }
}
