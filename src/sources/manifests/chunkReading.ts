/** What one piece of a manifest file says. Positions are within the piece, so the reading can be kept. */
import { projectEndpointSlice, projectEndpoints } from '../../model/project/endpointSlice.ts';
import { kindOf, nameOf, type ObjectKind } from '../../model/project/names.ts';
import { projectNode } from '../../model/project/node.ts';
import { projectService } from '../../model/project/service.ts';
import { LineIndex, type Position } from '../../text/lines.ts';
import type { TextPath } from '../../text/yaml.ts';
import type { SourceProblem } from '../source.ts';
import { type ParsedDocument, parseManifest } from './parse.ts';
import { kindProblem, type ObjectShape, objectShape, unknownFields, versionOf } from './schema.ts';
import type { SnapshotObject } from './snapshot.ts';
import { printMessage, type Problem, type Projection } from '../../text/cursor.ts';
import { quote } from '../../text/printable.ts';

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

export interface Finding extends Omit<SourceProblem, 'where'> {
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
  readonly findings: readonly Finding[];
  /** Something is there that cannot be read so far as to know which object it is. */
  readonly obscure: boolean;
  /** Deployments and the like. */
  readonly otherKinds: number;
}

export function readChunk(text: string, options: ReadingOptions = {}): ChunkReading {
  const reader = new ChunkReader(text, options);
  const { documents, faults } = parseManifest(text);
  for (const { offset, ...fault } of faults) reader.find(fault, offset);
  for (const document of documents) if (document.raw !== null) reader.readDocument(document);
  return reader;
}

class ChunkReader implements ChunkReading {
  readonly definitions: Definition[] = [];
  readonly findings: Finding[] = [];
  obscure = false;
  otherKinds = 0;
  readonly #lines: LineIndex;
  readonly #strict: boolean;

  constructor(text: string, { strict = false }: ReadingOptions) {
    this.#lines = new LineIndex(text);
    this.#strict = strict;
  }

  find(finding: Omit<Finding, 'position'>, offset: number): void {
    this.findings.push({ ...finding, position: this.#lines.position(offset) });
    if (finding.severity === 'error' && finding.object === undefined) this.obscure = true;
  }

  readDocument(document: ParsedDocument): void {
    const { raw } = document;
    const listed = listedKind(raw);
    if (listed === undefined) {
      this.#readObject(document, raw, []);
      return;
    }
    this.#checkFields(document, raw, [], objectShape('List'), undefined);
    const { kind, apiVersion, items = [] } = raw as { readonly [name: string]: unknown };
    if (kind === 'List' && (apiVersion ?? 'v1') !== 'v1') this.#checkKind(document, kind, apiVersion, []);
    if (items === null) return;
    if (!Array.isArray(items)) {
      const message = `items is ${quote(items)}`;
      this.find({ severity: 'error', message, expected: 'a list' }, document.offsetOf(['items']));
      return;
    }
    for (const [index, item] of items.entries()) {
      this.#readObject(document, withDefaultKind(item, listed), ['items', index]);
    }
  }

  #readObject(document: ParsedDocument, raw: unknown, path: TextPath): void {
    const kindName =
      typeof raw === 'object' && raw !== null ? (raw as { readonly kind?: unknown }).kind : undefined;
    if (typeof kindName !== 'string' || kindName === '') {
      const expected = 'a map with apiVersion, kind and metadata';
      this.find(
        { severity: 'error', message: 'this is not a Kubernetes object', expected },
        document.offsetOf(path),
      );
      return;
    }
    if (listedKind(raw) !== undefined) {
      const message = 'this is a list inside a list';
      this.find({ severity: 'error', message, expected: 'the objects themselves' }, document.offsetOf(path));
      return;
    }
    const kind = kindOf(raw);
    if (kind !== undefined) this.#readKnown(document, raw, path, kind);
    else if (!this.#refuseOldSlice(document, raw, path)) {
      const { apiVersion } = raw as { readonly apiVersion?: unknown };
      if (!this.#checkKind(document, kindName, apiVersion, path)) this.otherKinds += 1;
    }
  }

  /** Returns whether there is something wrong with it. */
  #checkKind(document: ParsedDocument, kind: string, apiVersion: unknown, path: TextPath): boolean {
    const problem = kindProblem(kind, apiVersion);
    if (problem === undefined) return false;
    this.#findUnknown(problem.message, document.offsetOf([...path, problem.field]), undefined);
    return true;
  }

  /** Returns whether there is any. */
  #checkFields(
    document: ParsedDocument,
    raw: unknown,
    path: TextPath,
    shape: ObjectShape,
    object: string | undefined,
  ): boolean {
    const { found, more } = unknownFields(raw, shape);
    const { kind } = raw as { readonly kind: string };
    const prefix = object === undefined ? `${kind}: ` : '';
    for (const { path: inner, message } of found)
      this.#findUnknown(prefix + message, document.offsetOf([...path, ...inner], 'key'), object);
    if (more > 0) this.#findUnknown(`${prefix}${more} more unknown fields`, document.offsetOf(path), object);
    return found.length > 0;
  }

  #findUnknown(message: string, offset: number, object: string | undefined): void {
    const severity = this.#strict ? 'error' : 'warning';
    this.find({ severity, message, unknown: true, ...(object !== undefined && { object }) }, offset);
  }

  #readKnown(document: ParsedDocument, raw: unknown, path: TextPath, kind: ObjectKind): void {
    const name = nameOf(kind, raw);
    const projection = projectKind(kind, raw);
    const object = name === undefined ? undefined : `${kind} ${name}`;
    const note = (severity: Finding['severity'], problem: Problem): void => {
      const { expected } = problem;
      const message = object === undefined ? `${kind}: ${printMessage(problem)}` : printMessage(problem);
      const offset = document.offsetOf([...path, ...problem.path]);
      this.find({ severity, message, expected, ...(object !== undefined && { object }) }, offset);
    };
    if (projection.kind === 'invalid') for (const problem of projection.problems) note('error', problem);
    if (projection.kind === 'object') for (const problem of projection.warnings) note('warning', problem);
    const isStrange = this.#checkShape(document, raw, path, kind, object);
    if (object === undefined) return;
    const position = this.#lines.position(document.offsetOf(path));
    if (isStrange && this.#strict) this.definitions.push({ id: object, position, state: 'bad', objects: [] });
    else this.#define(object, position, projection);
  }

  #checkShape(
    document: ParsedDocument,
    raw: unknown,
    path: TextPath,
    kind: ObjectKind,
    object: string | undefined,
  ): boolean {
    const hasUnknown = this.#checkFields(document, raw, path, objectShape(kind), object);
    // Hand-written manifests often leave it out, and the kind says enough; kubectl refuses them.
    if (!this.#strict || (raw as { readonly apiVersion?: unknown }).apiVersion !== undefined)
      return hasUnknown;
    const message = `apiVersion is not set; did you mean "${versionOf(kind)}"?`;
    this.#findUnknown(message, document.offsetOf(path), object);
    return true;
  }

  #define(id: string, position: Position, projection: Projection<readonly SnapshotObject[]>): void {
    if (projection.kind === 'object') {
      this.definitions.push({ id, position, state: 'good', objects: projection.value });
    } else if (projection.kind === 'ignored') {
      this.definitions.push({ id, position, state: 'ignored', reason: projection.reason, objects: [] });
    } else {
      this.definitions.push({ id, position, state: 'bad', objects: [] });
    }
  }

  /** The beta has other fields; to read it as if it were v1 would lose the node names without a word. */
  #refuseOldSlice(document: ParsedDocument, raw: unknown, path: TextPath): boolean {
    const { apiVersion } = raw as { readonly apiVersion?: unknown };
    if (typeof apiVersion !== 'string' || !apiVersion.startsWith('discovery.k8s.io/')) return false;
    if (kindOf({ ...(raw as object), apiVersion: 'discovery.k8s.io/v1' }) !== 'EndpointSlice') return false;
    const message = `apiVersion ${quote(apiVersion)} is not served any more`;
    const name = nameOf('EndpointSlice', raw);
    const object = name === undefined ? {} : { object: `EndpointSlice ${name}` };
    const offset = document.offsetOf([...path, 'apiVersion']);
    this.find({ severity: 'error', message, expected: 'discovery.k8s.io/v1', ...object }, offset);
    const position = this.#lines.position(document.offsetOf(path));
    if (object.object !== undefined)
      this.definitions.push({ id: object.object, position, state: 'bad', objects: [] });
    return true;
  }
}

/** The kind and version that the items of a list have unless they say otherwise; '' for a mixed List. */
function listedKind(raw: unknown): { readonly kind: string; readonly apiVersion: unknown } | undefined {
  if (typeof raw !== 'object' || raw === null) return undefined;
  const { kind, apiVersion } = raw as { readonly kind?: unknown; readonly apiVersion?: unknown };
  if (kind === 'List') return { kind: '', apiVersion: undefined };
  const item = typeof kind === 'string' && kind.endsWith('List') ? kind.slice(0, -'List'.length) : '';
  return kindOf({ kind: item, apiVersion }) && { kind: item, apiVersion };
}

function withDefaultKind(
  item: unknown,
  { kind, apiVersion }: { kind: string; apiVersion: unknown },
): unknown {
  if (kind === '' || typeof item !== 'object' || item === null || Object.hasOwn(item, 'kind')) return item;
  return { kind, apiVersion, ...item };
}

function projectKind(kind: ObjectKind, raw: unknown): Projection<readonly SnapshotObject[]> {
  switch (kind) {
    case 'Service':
      return mapValue(projectService(raw), (value) => [{ kind, value }]);
    case 'EndpointSlice':
      return mapValue(projectEndpointSlice(raw), (value) => [{ kind, value }]);
    case 'Endpoints':
      return mapValue(projectEndpoints(raw), (slices) =>
        slices.map((value) => ({ kind: 'EndpointSlice', value })),
      );
    default:
      return mapValue(projectNode(raw), (value) => [{ kind, value }]);
  }
}

function mapValue<T, U>(projection: Projection<T>, change: (value: T) => U): Projection<U> {
  return projection.kind === 'object' ? { ...projection, value: change(projection.value) } : projection;
}
