/** Opens a bundle: everything in it checked, and as much of it as there is. */
import { FAMILIES, type Family } from '../model/ip.ts';
import { isMap } from '../text/cursor.ts';
import { type BundleLimits, LIMITS } from './format.ts';
import type { Status } from '../explain/status.ts';
import { inOrder, isKeptEvent, type KeptEvent } from './events.ts';
import { isDoctorReport, isStatus } from './status.ts';
import type { DoctorReport } from '../explain/doctorReport.ts';
import { bundleLines, type RawLine, unreadable } from './lines.ts';
import { type NodeSnapshot, SnapshotReader } from './snapshotReader.ts';

export interface Bundle extends NodeSnapshot {
  readonly path: string;
  /** Oldest first. */
  readonly events: readonly KeptEvent[];
  /** What is in the kernel, by family; the mode's reader checks it. */
  readonly kernel: ReadonlyMap<Family, KernelDump>;
  /** As `/v1/status` answered; unset where no proxy ran. */
  readonly status?: Status;
  readonly doctor?: DoctorReport;
  readonly versions: Readonly<Record<string, string>>;
  readonly sysctls: Readonly<Record<string, string>>;
  /** What could not be collected, and why. */
  readonly missing: readonly string[];
}

export interface KernelDump {
  /** Milliseconds since the epoch. */
  readonly readAt: number;
  readonly dump: unknown;
}

/** Throws `BUNDLE_UNREADABLE`. */
export async function readBundle(path: string, limits: BundleLimits = LIMITS): Promise<Bundle> {
  const snapshot = new SnapshotReader(path);
  const rest = new RestReader();
  let count = 0;
  let isWhole = false;
  for await (const line of bundleLines(path, limits)) {
    count += 1;
    if (count === 1 && line.kind !== 'header')
      throw unreadable(path, 'is no bundle: it begins with no header');
    if (line.kind === 'end') isWhole = line['lines'] === count;
    else if (!snapshot.take(line)) rest.take(line);
  }
  if (count === 0) throw unreadable(path, 'is empty');
  if (!isWhole) throw unreadable(path, 'is cut short');
  const found = snapshot.finish();
  if (found === undefined) throw unreadable(path, `has a header that cannot be read: ${snapshot.problem}`);
  return { ...found, ...rest.finish(), path };
}

class RestReader {
  readonly #events: KeptEvent[] = [];
  readonly #kernel = new Map<Family, KernelDump>();
  readonly #missing: string[] = [];
  #status: Bundle['status'];
  #doctor: Bundle['doctor'];
  #versions: Bundle['versions'] = {};
  #sysctls: Bundle['sysctls'] = {};

  /** What a later version adds is left out. */
  take(line: RawLine): void {
    switch (line.kind) {
      case 'kernel':
        return this.#readKernel(line);
      case 'change':
        return this.#readEvent(isMap(line['change']) ? { kind: 'change', ...line['change'] } : undefined);
      case 'event':
        return this.#readEvent(line['event']);
      case 'status':
        if (isStatus(line['status'])) this.#status = line['status'];
        else this.#missing.push('status: it cannot be read');
        return;
      case 'doctor':
        if (isDoctorReport(line['report'])) this.#doctor = line['report'];
        else this.#missing.push('doctor: its report cannot be read');
        return;
      case 'versions':
        this.#versions = textsOf(line['versions']);
        return;
      case 'sysctls':
        this.#sysctls = textsOf(line['sysctls']);
        return;
      case 'missing':
        this.#missing.push(`${String(line['what'])}: ${String(line['reason'])}`);
    }
  }

  #readEvent(raw: unknown): void {
    if (isKeptEvent(raw)) this.#events.push(raw);
  }

  #readKernel({ family, readAt, dump }: RawLine): void {
    const known = FAMILIES.find((each) => each === family);
    if (known === undefined) return;
    this.#kernel.set(known, { readAt: typeof readAt === 'number' ? readAt : 0, dump });
  }

  finish(): Omit<Bundle, keyof NodeSnapshot | 'path'> {
    return {
      events: inOrder(this.#events),
      kernel: this.#kernel,
      ...(this.#status && { status: this.#status }),
      ...(this.#doctor && { doctor: this.#doctor }),
      versions: this.#versions,
      sysctls: this.#sysctls,
      missing: this.#missing,
    };
  }
}

function textsOf(raw: unknown): Readonly<Record<string, string>> {
  if (!isMap(raw)) return {};
  return Object.fromEntries(
    Object.entries(raw).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}
