/** Reads the lines of a snapshot, from a bundle or from the running proxy. Nothing in them is taken on trust. */
import type { SnapshotFamily, SnapshotHeader } from '../explain/snapshot.ts';
import { type Cidr, FAMILIES, type Ip, parseCidr, parseIp } from '../model/ip.ts';
import { MODE_NAMES } from '../model/mode.ts';
import type { EndpointSlice, Node, Service } from '../model/objects.ts';
import { kindOf, nameOf, readName, SUBDOMAIN } from '../model/project/names.ts';
import type { SocketAddress } from '../plan/view.ts';
import { projectKind } from '../sources/manifests/parse.ts';
import type { SourceProblem } from '../sources/source.ts';
import {
  type Cursor,
  isMap,
  printMessage,
  project,
  type Projection,
  readChoice,
  readInteger,
  readPort,
  readText,
} from '../text/cursor.ts';
import type { RawLine } from './lines.ts';

export interface NodeSnapshot {
  readonly header: SnapshotHeader;
  readonly services: readonly Service[];
  readonly slices: readonly EndpointSlice[];
  readonly nodes: readonly Node[];
  /** Objects that cannot be used, or not wholly. */
  readonly problems: readonly SourceProblem[];
}

/** One damaged file may have a problem in every object. */
const MOST_PROBLEMS = 100;

export class SnapshotReader {
  #header: SnapshotHeader | undefined;
  /** What is wrong with the header. */
  problem: string | undefined;
  readonly #services: Service[] = [];
  readonly #slices: EndpointSlice[] = [];
  readonly #nodes: Node[] = [];
  readonly #problems: SourceProblem[] = [];
  readonly #where: string;

  /** `where` stands for the file in problems. */
  constructor(where: string) {
    this.#where = where;
  }

  /** Returns whether the line was one of a snapshot. */
  take(line: RawLine): boolean {
    if (line.kind === 'header') this.#readHeader(line);
    else if (line.kind === 'object') this.#readObject(line['object']);
    else return false;
    return true;
  }

  /** `undefined`: there was no header that could be read; `problem` says why. */
  finish(): NodeSnapshot | undefined {
    if (this.#header === undefined) return undefined;
    return {
      header: this.#header,
      services: this.#services,
      slices: this.#slices,
      nodes: this.#nodes,
      problems: this.#problems,
    };
  }

  #readHeader(line: RawLine): void {
    const read = readHeader(line);
    if (read.kind === 'object') this.#header ??= read.value;
    else if (read.kind === 'invalid') this.problem = read.problems.map(printMessage).join('; ');
  }

  #readObject(raw: unknown): void {
    const kind = kindOf(raw);
    if (kind === undefined) {
      this.#report({ severity: 'warning', message: 'an object of a kind that is not known is left out' });
      return;
    }
    const name = nameOf(kind, raw);
    const object = name === undefined ? kind : `${kind} ${name}`;
    const read = projectKind(kind, raw);
    if (read.kind === 'invalid')
      for (const problem of read.problems)
        this.#report({
          severity: 'error',
          object,
          message: printMessage(problem),
          expected: problem.expected,
        });
    if (read.kind !== 'object') return;
    for (const each of read.value) {
      if (each.kind === 'Service') this.#services.push(each.value);
      else if (each.kind === 'EndpointSlice') this.#slices.push(each.value);
      else this.#nodes.push(each.value);
    }
  }

  #report(problem: Omit<SourceProblem, 'where'>): void {
    if (this.#problems.length < MOST_PROBLEMS) this.#problems.push({ where: this.#where, ...problem });
  }
}

const LATEST = 8_640_000_000_000_000;

function readHeader(line: RawLine): Projection<SnapshotHeader> {
  return project(line, (root) => {
    const config = root.map('config');
    return {
      kind: 'header',
      format: readFormat(root.field('format')),
      version: readText(root.field('version')).slice(0, 100),
      node: readName(root.field('node'), SUBDOMAIN),
      mode: readMode(root.field('mode')),
      takenAt: readInteger(root.field('takenAt'), 0, LATEST, 0),
      config: isMap(config.value) ? config.value : {},
      apiServers: root.maps('apiServers').flatMap(readSocketAddress),
      serviceCidrs: root.list('serviceCidrs').flatMap(readCidr),
      families: root.maps('families', FAMILIES.length).map(readFamily),
    };
  });
}

function readFormat(at: Cursor): 1 {
  if (at.value !== 1) at.refuse('is not known to this version of Junction', '1');
  return 1;
}

function readMode(at: Cursor): SnapshotHeader['mode'] {
  if (at.missing) at.refuse('is missing', MODE_NAMES.join(', '));
  return readChoice(at, MODE_NAMES, 'iptables');
}

function readFamily(at: Cursor): SnapshotFamily {
  const family = at.field('family');
  if (family.missing) family.refuse('is missing', FAMILIES.join(' or '));
  return {
    family: readChoice(family, FAMILIES, 'IPv4'),
    addresses: at.list('addresses').flatMap(readIp),
    refused: at.maps('refused').map((entry) => ({
      servicePort: readText(entry.field('servicePort')),
      error: readText(entry.field('error')),
    })),
  };
}

function readIp(at: Cursor): Ip | readonly [] {
  return parseIp(readText(at)) ?? [];
}

function readCidr(at: Cursor): Cidr | readonly [] {
  return parseCidr(readText(at)) ?? [];
}

function readSocketAddress(at: Cursor): readonly SocketAddress[] {
  const ip = parseIp(readText(at.field('ip')));
  return ip === undefined ? [] : [{ ip, port: readPort(at.field('port')) }];
}
