/** What one piece of a manifest file says. Positions are within the piece, so the reading can be kept. */
import type { EndpointSlice, Node, Service } from '../../model/objects.ts';
import { projectEndpointSlice, projectEndpoints } from '../../model/project/endpointSlice.ts';
import { kindOf, nameOf, type ObjectKind } from '../../model/project/names.ts';
import { projectNode } from '../../model/project/node.ts';
import { projectService } from '../../model/project/service.ts';
import { LineIndex, type Position } from '../../text/lines.ts';
import type { TextPath } from '../../text/yaml.ts';
import type { SourceProblem } from '../source.ts';
import { type ParsedDocument, parseManifest } from './parse.ts';
import { kindProblem, type ObjectShape, objectShape, unknownFields, versionOf } from './schema.ts';
import {
  isMap,
  mapProjection,
  ownField,
  ownText,
  printMessage,
  type Problem,
  type Projection,
} from '../../text/cursor.ts';
import { quote } from '../../text/printable.ts';

export type SnapshotObject =
  | { readonly kind: 'Service'; readonly value: Service }
  | { readonly kind: 'EndpointSlice'; readonly value: EndpointSlice }
  | { readonly kind: 'Node'; readonly value: Node };

/** One object that the text defines. */
export interface Definition {
  /** `Service shop/web`: a kind and a name as they were written. */
  readonly id: string;
  readonly position: Position;
  /** bad: it is there, but what it says cannot be used. */
  readonly state: 'good' | 'bad' | 'ignored';
  /** Why it is ignored. */
  readonly reason?: string;
  /** One, or for Endpoints several, or none when the object is not for us. */
  readonly objects: readonly SnapshotObject[];
}

interface ChunkFinding extends Omit<SourceProblem, 'where'> {
  readonly position: Position;
  /** It is about a field or a kind that Kubernetes does not know. */
  readonly unknown?: boolean;
}

export interface ReadingOptions {
  /** Fields and kinds that Kubernetes does not know are errors, as with `kubectl --validate=strict`. */
  readonly strict?: boolean;
}

export interface ChunkReading {
  readonly definitions: readonly Definition[];
  readonly findings: readonly ChunkFinding[];
  /** Something is there that cannot be read so far as to know which object it is. */
  readonly obscure: boolean;
}

/** Where each object of the text stands, by its id: a document, or an item of a list. */
export function findObject(text: string, id: string): ((path: TextPath) => Position) | undefined {
  const lines = new LineIndex(text);
  for (const document of parseManifest(text).documents) {
    const { raw } = document;
    const listed = listedKind(raw);
    const items = isMap(raw) && listed && Array.isArray(raw['items']) ? (raw['items'] as unknown[]) : [];
    const objects = listed === undefined ? [{ object: raw, path: [] }] : items.map(itemAt);
    for (const { object, path } of objects) {
      const own =
        isMap(object) && listed !== undefined && listed.kind !== '' ? { ...listed, ...object } : object;
      const kind = isMap(own) ? kindOf(own) : undefined;
      if (kind !== undefined && isMap(own) && idOf(kind, own) === id)
        return (inner) => lines.position(document.offsetOf([...path, ...inner]));
    }
  }
  return undefined;
}

function itemAt(object: unknown, index: number): { readonly object: unknown; readonly path: TextPath } {
  return { object, path: ['items', index] };
}

export function readChunk(text: string, options: ReadingOptions = {}): ChunkReading {
  const reader = new ChunkReader(text, options);
  const { documents, faults } = parseManifest(text);
  for (const { offset, ...fault } of faults) reader.find(fault, offset);
  for (const document of documents) if (document.raw !== null) reader.readDocument(document);
  return reader;
}

/** One object of the text. */
interface Found {
  readonly document: ParsedDocument;
  readonly path: TextPath;
  readonly raw: Raw;
  /** `Service shop/web`, as far as that can be read. */
  readonly id?: string | undefined;
}

type Raw = Readonly<Record<string, unknown>>;

class ChunkReader implements ChunkReading {
  readonly definitions: Definition[] = [];
  readonly findings: ChunkFinding[] = [];
  obscure = false;
  readonly #lines: LineIndex;
  readonly #strict: boolean;

  constructor(text: string, { strict = false }: ReadingOptions) {
    this.#lines = new LineIndex(text);
    this.#strict = strict;
  }

  find(finding: Omit<ChunkFinding, 'position'>, offset: number): void {
    this.findings.push({ ...finding, position: this.#lines.position(offset) });
    if (finding.severity === 'error' && finding.object === undefined) this.obscure = true;
  }

  readDocument(document: ParsedDocument): void {
    const { raw } = document;
    const listed = listedKind(raw);
    if (listed === undefined || !isMap(raw)) {
      this.#readObject(document, raw, []);
      return;
    }
    const list = { document, raw, path: [] };
    this.#checkFields(list, objectShape('List'));
    const { kind, apiVersion, items = [] } = raw;
    if (kind === 'List' && (apiVersion ?? 'v1') !== 'v1') this.#checkKind(list, kind);
    if (items === null) return;
    if (!Array.isArray(items)) {
      const message = `items is ${quote(items)}`;
      this.find({ severity: 'error', message, expected: 'a list' }, document.offsetOf(['items']));
      return;
    }
    for (const [index, item] of items.entries()) {
      const hasKind = listed.kind === '' || !isMap(item) || Object.hasOwn(item, 'kind');
      this.#readObject(document, hasKind ? item : { ...listed, ...item }, ['items', index]);
    }
  }

  #readObject(document: ParsedDocument, raw: unknown, path: TextPath): void {
    const kindName = ownText(raw, 'kind');
    if (!isMap(raw) || kindName === '' || listedKind(raw) !== undefined) {
      const [message, expected] =
        kindName === ''
          ? ['this is not a Kubernetes object', 'a map with apiVersion, kind and metadata']
          : ['this is a list inside a list', 'the objects themselves'];
      this.find({ severity: 'error', message, expected }, document.offsetOf(path));
      return;
    }
    const kind = kindOf(raw);
    const found = { document, raw, path };
    if (kind !== undefined) this.#readKnown({ ...found, id: idOf(kind, raw) }, kind);
    else if (!this.#refuseOldSlice(found)) this.#checkKind(found, kindName);
  }

  #checkKind(found: Found, kind: string): void {
    const problem = kindProblem(kind, found.raw['apiVersion']);
    if (problem !== undefined) this.#findUnknown(found, problem.message, [problem.field]);
  }

  /** Returns whether there are unknown fields. */
  #checkFields(found: Found, shape: ObjectShape): boolean {
    const unknown = unknownFields(found.raw, shape);
    const prefix = found.id === undefined ? `${String(found.raw['kind'])}: ` : '';
    for (const { path, message } of unknown.found) this.#findUnknown(found, prefix + message, path, 'key');
    if (unknown.more > 0) this.#findUnknown(found, `${prefix}${unknown.more} more unknown fields`, []);
    return unknown.found.length > 0;
  }

  #findUnknown({ document, path, id }: Found, message: string, inner: TextPath, part?: 'key'): void {
    const severity = this.#strict ? 'error' : 'warning';
    const offset = document.offsetOf([...path, ...inner], part);
    this.find({ severity, message, unknown: true, ...(id !== undefined && { object: id }) }, offset);
  }

  #findProblem({ document, path, id }: Found, severity: ChunkFinding['severity'], problem: Problem): void {
    const object = id !== undefined && { object: id };
    const offset = document.offsetOf([...path, ...problem.path]);
    this.find({ severity, message: problem.message, expected: problem.expected, ...object }, offset);
  }

  #readKnown(found: Found, kind: ObjectKind): void {
    const projection = projectKind(kind, found.raw);
    const [severity, problems] =
      projection.kind === 'invalid'
        ? (['error', projection.problems] as const)
        : (['warning', projection.kind === 'object' ? projection.warnings : []] as const);
    const prefix = found.id === undefined ? `${kind}: ` : '';
    for (const problem of problems)
      this.#findProblem(found, severity, { ...problem, message: prefix + printMessage(problem) });
    const isStrange = this.#checkShape(found, kind);
    this.#define(found, isStrange && this.#strict ? undefined : projection);
  }

  #checkShape(found: Found, kind: ObjectKind): boolean {
    const hasUnknown = this.#checkFields(found, objectShape(kind));
    // Hand-written manifests often leave it out, and the kind says enough; kubectl refuses them.
    if (!this.#strict || found.raw['apiVersion'] !== undefined) return hasUnknown;
    this.#findUnknown(found, `apiVersion is not set; did you mean "${versionOf(kind)}"?`, []);
    return true;
  }

  #define({ document, path, id }: Found, projection?: Projection<readonly SnapshotObject[]>): void {
    if (id === undefined) return;
    const definition = { id, position: this.#lines.position(document.offsetOf(path)), objects: [] };
    if (projection?.kind === 'object')
      this.definitions.push({ ...definition, state: 'good', objects: projection.value });
    else if (projection?.kind === 'ignored')
      this.definitions.push({ ...definition, state: 'ignored', reason: projection.reason });
    else this.definitions.push({ ...definition, state: 'bad' });
  }

  /** The beta has other fields; to read it as if it were v1 would lose the node names without a word. */
  #refuseOldSlice({ document, path, raw }: Found): boolean {
    const version = ownText(raw, 'apiVersion');
    const expected = 'discovery.k8s.io/v1';
    if (!version.startsWith('discovery.k8s.io/')) return false;
    if (kindOf({ ...raw, apiVersion: expected }) !== 'EndpointSlice') return false;
    const found = { document, path, raw, id: idOf('EndpointSlice', raw) };
    const message = `apiVersion ${quote(version)} is not served any more`;
    this.#findProblem(found, 'error', { path: ['apiVersion'], message, expected });
    this.#define(found);
    return true;
  }
}

function idOf(kind: ObjectKind, raw: Raw): string | undefined {
  const name = nameOf(kind, raw);
  return name === undefined ? undefined : `${kind} ${name}`;
}

/** The kind and version that the items of a list have unless they say otherwise; '' for a mixed List. */
function listedKind(raw: unknown): { readonly kind: string; readonly apiVersion: unknown } | undefined {
  const kind = ownText(raw, 'kind');
  if (kind === 'List') return { kind: '', apiVersion: undefined };
  const item = kind.endsWith('List') ? kind.slice(0, -'List'.length) : '';
  const apiVersion = ownField(raw, 'apiVersion');
  return kindOf({ kind: item, apiVersion }) && { kind: item, apiVersion };
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
    default:
      return mapProjection(projectNode(raw), (value) => [{ kind, value }]);
  }
}
