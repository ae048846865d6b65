/** What one piece of a manifest file says. Positions are within the piece, so the reading can be kept. */
import { type Kind, kindOf, nameOf, printMessage, quote } from '../../model/project/index.ts';
import type { Problem, Projection } from '../../model/problem.ts';
import type { SourceProblem } from '../source.ts';
import type { WorldObject } from '../world.ts';
import { listedKind, projectKind, withDefaultKind } from './kinds.ts';
import { LineIndex, type Position } from './lines.ts';
import { type ParsedDocument, parseText } from './parse.ts';

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
  readonly objects: readonly WorldObject[];
}

export interface Finding extends Omit<SourceProblem, 'where'> {
  readonly position: Position;
}

export interface ChunkReading {
  readonly definitions: readonly Definition[];
  readonly findings: readonly Finding[];
  /** Something is there that cannot be read so far as to know which object it is. */
  readonly obscure: boolean;
  /** Deployments and the like. */
  readonly otherKinds: number;
}

type Path = readonly (string | number)[];

export function readChunk(text: string): ChunkReading {
  const reader = new ChunkReader(text);
  const { documents, faults } = parseText(text);
  for (const { severity, offset, message } of faults) reader.find({ severity, message }, offset);
  for (const document of documents) if (document.raw !== null) reader.readDocument(document);
  return reader;
}

class ChunkReader implements ChunkReading {
  readonly definitions: Definition[] = [];
  readonly findings: Finding[] = [];
  obscure = false;
  otherKinds = 0;
  readonly #lines: LineIndex;

  constructor(text: string) {
    this.#lines = new LineIndex(text);
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
    const items = (raw as { readonly items?: unknown }).items ?? [];
    if (!Array.isArray(items)) {
      const message = `items is ${quote(items)}`;
      this.find({ severity: 'error', message, expected: 'a list' }, document.offsetOf(['items']));
      return;
    }
    for (const [index, item] of items.entries()) {
      this.#readObject(document, withDefaultKind(item, listed), ['items', index]);
    }
  }

  #readObject(document: ParsedDocument, raw: unknown, path: Path): void {
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
    else if (!this.#refuseOldSlice(document, raw, path)) this.otherKinds += 1;
  }

  #readKnown(document: ParsedDocument, raw: unknown, path: Path, kind: Kind): void {
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
    if (object !== undefined) this.#define(object, this.#lines.position(document.offsetOf(path)), projection);
  }

  #define(id: string, position: Position, projection: Projection<readonly WorldObject[]>): void {
    if (projection.kind === 'object') {
      this.definitions.push({ id, position, state: 'good', objects: projection.value });
    } else if (projection.kind === 'ignored') {
      this.definitions.push({ id, position, state: 'ignored', reason: projection.reason, objects: [] });
    } else {
      this.definitions.push({ id, position, state: 'bad', objects: [] });
    }
  }

  /** The beta has other fields; to read it as if it were v1 would lose the node names without a word. */
  #refuseOldSlice(document: ParsedDocument, raw: unknown, path: Path): boolean {
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
