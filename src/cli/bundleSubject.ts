/** What questions are answered from where a bundle is the source. */
import { type Bundle, type KernelDump, readBundle } from '../bundle/read.ts';
import type { Subject } from '../explain/subject.ts';
import type { Family } from '../model/ip.ts';
import type { ModeName } from '../model/mode.ts';
import type { KernelReader } from '../modes/kernelReader.ts';
import { readerOfDump } from '../modes/openReader.ts';
import { printSourceProblem } from '../sources/source.ts';
import type { PastInputs } from '../bundle/snapshotReader.ts';
import { type ObjectKey, objectKey } from '../model/objects.ts';
import { UsageError } from './commands.ts';
import type { Output } from './output.ts';
import { snapshotSubject } from './snapshotSubject.ts';

interface OpenedBundle {
  readonly bundle: Bundle;
  readonly subject: Subject;
  /** As it was then. Throws where the bundle does not go back so far. */
  readonly subjectAt: (time: number) => Subject;
}

export async function openBundle(file: string, output: Output): Promise<OpenedBundle> {
  const bundle = await readBundle(file);
  for (const problem of bundle.problems) output.err(`${printSourceProblem(problem)}\n`);
  const { header, changes } = bundle;
  const subject = snapshotSubject(bundle, (family) =>
    dumpReader(header.mode, family, bundle.kernel.get(family)),
  );
  const changesOf: Subject['changesOf'] = (service) =>
    changes.filter((change) => change.service === service).toReversed();
  const now = { ...subject, changesOf };
  return { bundle, subject: now, subjectAt: (time) => pastSubject(bundle, now, time) };
}

/** Services that changed since then are planned from what they were; nothing is known of the kernel. */
function pastSubject(bundle: Bundle, now: Subject, time: number): Subject {
  const families = now.families.flatMap(({ family }) => {
    const since = bundle.status?.families.find((each) => each.family === family)?.history.since;
    if (since === undefined || time < since) {
      const from = since === undefined ? 'it was taken' : new Date(since).toISOString();
      throw new UsageError([`${bundle.path}: what was before ${from} is not in it`]);
    }
    return snapshotSubject({ ...bundle, ...inputsAt(bundle, family, time) }).families.filter(
      (each) => each.family === family,
    );
  });
  return { ...now, families };
}

function inputsAt(
  { services, slices, pasts }: Bundle,
  family: Family,
  time: number,
): Pick<Bundle, 'services' | 'slices'> {
  const then = new Map<ObjectKey, PastInputs>();
  for (const past of pasts)
    if (past.family === family && past.until > time && !then.has(past.service)) then.set(past.service, past);
  const isNow = (namespace: string, name: string): boolean => !then.has(objectKey(namespace, name));
  const before = [...then.values()];
  return {
    services: [
      ...services.filter(({ namespace, name }) => isNow(namespace, name)),
      ...before.flatMap((past) => past.services),
    ],
    slices: [
      ...slices.filter(({ namespace, service }) => isNow(namespace, service)),
      ...before.flatMap((past) => past.slices),
    ],
  };
}

function dumpReader(
  mode: ModeName,
  family: Family,
  kernel: KernelDump | undefined,
): KernelReader | undefined {
  const reader = kernel && readerOfDump(mode, family, kernel.dump);
  if (!reader) return undefined;
  return {
    readAt: kernel.readAt,
    walk: (packet, host) => reader.walk(packet, host),
    compare: (plan) => reader.compare(plan),
    dump: () => reader.dump(),
  };
}
