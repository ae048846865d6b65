/** What one manifest file says, and what it still says while it is broken. */
import { createHash } from 'node:crypto';
import type { SourceProblem } from '../source.ts';
import type { Position } from '../../text/lines.ts';
import { type ChunkReading, type Definition, readChunk, type ReadingOptions } from './chunkReading.ts';

/** A definition with its place, after the last good version has stepped in for a bad one. */
export interface PlacedDefinition extends Omit<Definition, 'position'> {
  /** `file:line:column` */
  readonly where: string;
  /** From an earlier version of the file: the present one cannot be read so far as to know whether it still holds it. */
  readonly carried: boolean;
}

export interface FileReading {
  /** In the order of the text. */
  readonly definitions: readonly PlacedDefinition[];
  readonly problems: readonly SourceProblem[];
  /** By the hash of the chunk's text: what need not be parsed again. */
  readonly chunks: ReadonlyMap<string, ChunkReading>;
}

/** A field that is newer than this table stands in every object of a dump. */
const MOST_UNKNOWN = 100;

export function readManifest(
  path: string,
  text: string,
  before?: FileReading,
  options: ReadingOptions = {},
): FileReading {
  const chunks = new Map<string, ChunkReading>();
  const definitions: PlacedDefinition[] = [];
  const problems: SourceProblem[] = [];
  const lastGood = goodDefinitions(before);
  let obscure = false;
  let unknown = 0;

  for (const chunk of splitChunks(text)) {
    const hash = createHash('sha1').update(chunk.text).digest('base64');
    const reading = chunks.get(hash) ?? before?.chunks.get(hash) ?? readChunk(detach(chunk.text), options);
    chunks.set(hash, reading);
    const where = ({ line, column }: Position): string => `${path}:${line + chunk.linesAbove}:${column}`;
    for (const { position, ...definition } of reading.definitions) {
      const good = definition.state === 'bad' ? lastGood.get(definition.id) : definition;
      definitions.push({
        ...definition,
        objects: good?.objects ?? [],
        where: where(position),
        carried: false,
      });
    }
    for (const { position, unknown: isUnknown, ...finding } of reading.findings) {
      if (isUnknown) unknown += 1;
      if (!isUnknown || unknown <= MOST_UNKNOWN) problems.push({ ...finding, where: where(position) });
    }
    obscure ||= reading.obscure;
  }

  if (unknown > MOST_UNKNOWN) {
    const message = `has ${unknown - MOST_UNKNOWN} more unknown fields and kinds`;
    problems.push({ severity: options.strict ? 'error' : 'warning', where: path, message });
  }
  if (!obscure) return { definitions, problems, chunks };
  const known = new Set(definitions.map(({ id }) => id));
  const carried = [...lastGood.values()].filter(({ id }) => !known.has(id));
  if (carried.length > 0) problems.push(carriedProblem(path, carried));
  return { definitions: [...definitions, ...carried.map(carry)], problems, chunks };
}

/** A file that is there but cannot be read at all: everything from it stays. */
export function keepReading(problem: SourceProblem, before: FileReading | undefined): FileReading {
  const carried = [...goodDefinitions(before).values()];
  const problems = carried.length > 0 ? [problem, carriedProblem(problem.where, carried)] : [problem];
  return { definitions: carried.map(carry), problems, chunks: before?.chunks ?? new Map() };
}

/** By id; the first of several. */
function goodDefinitions(reading: FileReading | undefined): ReadonlyMap<string, PlacedDefinition> {
  const good = new Map<string, PlacedDefinition>();
  for (const definition of reading?.definitions ?? []) {
    if (definition.objects.length > 0 && !good.has(definition.id)) good.set(definition.id, definition);
  }
  return good;
}

function carry(definition: PlacedDefinition): PlacedDefinition {
  return { ...definition, carried: true };
}

function carriedProblem(where: string, carried: readonly PlacedDefinition[]): SourceProblem {
  const named = carried
    .slice(0, 3)
    .map(({ id }) => id)
    .join(', ');
  const more = carried.length > 3 ? ` and ${carried.length - 3} more` : '';
  const message = `until this is corrected, what it said before stays: ${named}${more}`;
  return { severity: 'warning', where, message };
}

/** A short piece of a long string keeps the long one in memory; the objects that come of it live long. */
export function detach(text: string): string {
  return Buffer.from(text, 'utf16le').toString('utf16le');
}

/**
 * A manifest file cut at its `---` lines.
 *
 * `---` at the start of a line begins a document wherever it stands, even inside a block scalar, so each piece can
 * be parsed alone. A piece whose text did not change need not be parsed again, and a piece that cannot be parsed
 * leaves the others usable.
 */
interface Chunk {
  readonly text: string;
  /** Lines of the file above this piece. */
  readonly linesAbove: number;
}

const DOCUMENT_START = /\n---(?=[ \t\r\n]|$)/g;
/** A `%YAML` or `%TAG` line belongs to the document after the next `---`, so such files stay whole. */
const DIRECTIVE = /(?:^|\n)%/;

export function splitChunks(text: string): readonly Chunk[] {
  if (DIRECTIVE.test(text)) return [{ text, linesAbove: 0 }];
  const starts = [0, ...Array.from(text.matchAll(DOCUMENT_START), ({ index }) => index + 1), text.length];
  const chunks: Chunk[] = [];
  let linesAbove = 0;
  for (let index = 0; index + 1 < starts.length; index++) {
    const piece = text.slice(starts[index], starts[index + 1]);
    if (piece.trim() !== '') chunks.push({ text: piece, linesAbove });
    linesAbove += piece.split('\n').length - 1;
  }
  return chunks;
}
