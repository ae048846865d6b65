/** Manifest text → the objects that it defines, each with its line, and what is wrong with them. Never throws. */
import type { EndpointSlice, Node, Service } from '../../model/objects.ts';
import { projectEndpointSlice, projectEndpoints } from '../../model/project/endpointSlice.ts';
import { apiVersionOf, kindOf, KINDS, nameOf, type ObjectKind } from '../../model/project/names.ts';
import { projectNode } from '../../model/project/node.ts';
import { projectService } from '../../model/project/service.ts';
import { isMap, mapProjection, ownField, ownText, printMessage, type Projection } from '../../text/cursor.ts';
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
  /** One, for Endpoints several, none for an object that is ignored. */
  readonly objects: readonly SnapshotObject[];
  /** Why it is ignored. */
  readonly reason?: string;
}

export interface ParsedText {
  readonly definitions: readonly Definition[];
  readonly problems: readonly SourceProblem[];
}

/** Yields between documents, and between objects. */
export function* parseText(content: Content, file: string): Generator<undefined, ParsedText> {
  const definitions: Definition[] = [];
  const problems: SourceProblem[] = [];
  if ('message' in content) problems.push(failure(file, content.message));
  else
    for (const { text, linesAbove } of splitDocuments(content.text)) {
      const lines = new LineIndex(text);
      const placeOf = (offset: number): string => `${file}:${lines.position(offset).line + linesAbove}`;
      for (const part of readPiece(text, placeOf))
        for (const each of 'raw' in part ? objectsIn(part) : [part]) {
          yield;
          if ('raw' in each) readObject(each, file, definitions, problems);
          else problems.push(each);
        }
    }
  return { definitions, problems };
}

function failure(where: string, message: string, expected?: string): SourceProblem {
  return { severity: 'error', where, message, ...(expected !== undefined && { expected }) };
}

/** `---` begins a document wherever it stands, even in a block scalar: a piece that cannot be parsed leaves the others usable. */
function* splitDocuments(text: string): Generator<{ readonly text: string; readonly linesAbove: number }> {
  // A directive belongs to the document after the next `---`.
  const marks = /^%/m.test(text) ? [] : Array.from(text.matchAll(/\n---(?=\s|$)/g), ({ index }) => index + 1);
  const starts = [0, ...marks, text.length];
  let linesAbove = 0;
  for (let index = 0; index + 1 < starts.length; index++) {
    const piece = text.slice(starts[index], starts[index + 1]);
    yield { text: piece, linesAbove };
    linesAbove += piece.split('\n').length - 1;
  }
}

interface RawObject {
  readonly raw: unknown;
  readonly where: string;
}

interface RawDocument extends RawObject {
  /** Where the items of a List are. */
  readonly items: readonly string[];
}

type PlaceOf = (offset: number) => string;

/** The YAML parser takes seconds for each of these, and a dump of a cluster may be cut off. */
const MAX_BROKEN_JSON = 1024 * 1024;

function* readPiece(text: string, placeOf: PlaceOf): Generator<RawDocument | SourceProblem> {
  const isJson = /^\s*[[{]/.test(text);
  const json = isJson ? readJson(text, placeOf) : undefined;
  if (json) yield* json;
  else if (isJson && text.length > MAX_BROKEN_JSON)
    yield failure(placeOf(0), unreadable('it is not JSON, or is cut off'));
  // YAML in flow style begins like JSON, and this parser says where it is wrong.
  else yield* readDocuments(text, placeOf);
}

function* readDocuments(text: string, placeOf: PlaceOf): Generator<RawDocument | SourceProblem> {
  for (const value of readYaml(text)) {
    const where = placeOf(value.offset);
    if ('message' in value)
      yield failure(where, value.code === undefined ? unreadable(value.message) : tidy(value.message));
    else if (value.repeatedKeys[0]) {
      const { name, offset } = value.repeatedKeys[0];
      const message = `key ${quote(name)} is already set in this map`;
      yield failure(placeOf(offset), message, 'each key once, and --- between two objects');
    } else yield { raw: value.raw, where, items: value.offsetsOfItems().map(placeOf) };
  }
}

function unreadable(message: string): string {
  return `this document cannot be read: ${tidy(message)}`;
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
function readJson(text: string, placeOf: PlaceOf): readonly RawDocument[] | undefined {
  const documents: RawDocument[] = [];
  let begin = 0;
  try {
    for (const { start, end, items } of findJsonTexts(text)) {
      const raw = JSON.parse(text.slice(begin, end)) as unknown;
      documents.push({ raw, where: placeOf(start), items: items.map(placeOf) });
      begin = end;
    }
    return text.slice(begin).trim() === '' ? documents : undefined;
  } catch {
    return undefined;
  }
}

interface JsonText {
  readonly start: number;
  readonly end: number;
  /** Offsets of the maps in lists of its outermost map: the items, where it is a List. */
  readonly items: readonly number[];
}

function* findJsonTexts(text: string): Generator<JsonText> {
  let depth = 0;
  let outer = '';
  let start = 0;
  let items: number[] = [];
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (character === '"') {
      for (at += 1; at < text.length && text[at] !== '"'; at++) if (text[at] === '\\') at += 1;
    } else if (character === '{' || character === '[') {
      if (depth === 0) [start, items] = [at, []];
      if (depth === 2 && `${outer}${character}` === '{[{') items.push(at);
      if (depth < 2) outer = outer.slice(0, depth) + character;
      depth += 1;
    } else if (character === '}' || character === ']') {
      depth -= 1;
      if (depth === 0) yield { start, end: at + 1, items };
    }
  }
}

/** The object itself, or the items of a list, which have the kind and the version of the list where they have none. */
function* objectsIn(document: RawDocument): Generator<RawObject | SourceProblem> {
  const { raw, where } = document;
  const item = listed(raw);
  if (!item || !isMap(raw)) {
    if (raw !== null) yield document;
    return;
  }
  const items = raw['items'] ?? [];
  if (!Array.isArray(items)) return yield failure(where, `items is ${quote(items)}`, 'a list');
  const places = document.items.length === items.length ? document.items : [];
  for (const [index, each] of (items as readonly unknown[]).entries()) {
    const place = places[index] ?? where;
    if (listed(each)) yield failure(place, 'this is a list inside a list', 'the objects themselves');
    else yield { raw: isMap(each) ? { ...item, ...each } : each, where: place };
  }
}

/** What a list says of its items; nothing where this is no list of objects that we read. */
function listed(raw: unknown): { readonly kind?: string; readonly apiVersion?: unknown } | undefined {
  const kind = ownText(raw, 'kind');
  if (kind === 'List') return {};
  const item = { kind: kind.replace(/List$/, ''), apiVersion: ownField(raw, 'apiVersion') };
  return item.kind !== kind && kindOf(item) ? item : undefined;
}

function readObject(
  { raw, where }: RawObject,
  file: string,
  definitions: Definition[],
  problems: SourceProblem[],
): void {
  const kindName = ownText(raw, 'kind');
  if (!isMap(raw) || kindName === '') {
    const expected = 'a map with apiVersion, kind and metadata';
    problems.push(failure(where, 'this is not a Kubernetes object', expected));
    return;
  }
  const kind = KINDS.find((each) => kindName === each || kindName === `${each}List`);
  if (!kind) return;
  const name = nameOf(kind, raw);
  const id = name === undefined ? undefined : `${kind} ${name}`;
  const report = (severity: SourceProblem['severity'], message: string, expected: string): void => {
    const named = id === undefined ? { message: `${kind}: ${message}` } : { object: id, message };
    problems.push({ severity, where, ...named, expected });
  };
  const version = raw['apiVersion'] ?? apiVersionOf(kind);
  if (version !== apiVersionOf(kind)) {
    if (isOfKubernetes(version))
      report('error', `apiVersion ${quote(version)} is not served`, apiVersionOf(kind));
    return;
  }
  const read = projectKind(kind, raw);
  if (read.kind === 'invalid')
    for (const problem of read.problems) report('error', printMessage(problem), problem.expected);
  if (read.kind === 'object')
    for (const problem of read.warnings) report('warning', printMessage(problem), problem.expected);
  if (id === undefined || read.kind === 'invalid') return;
  const said = read.kind === 'object' ? { objects: read.value } : { objects: [], reason: read.reason };
  definitions.push({ id, file, where, ...said });
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
