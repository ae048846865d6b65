/** What questions are answered from where a bundle is the source. */
import { changesIn } from '../explain/events.ts';
import { type Bundle, type KernelDump, readBundle } from '../bundle/read.ts';
import type { Subject } from '../explain/subject.ts';
import type { Family } from '../model/ip.ts';
import type { ModeName } from '../model/mode.ts';
import { readerOfDump } from '../modes/openReader.ts';
import type { KernelReader } from '../modes/kernelRules.ts';
import { printSourceProblem } from '../sources/source.ts';
import type { Output } from './output.ts';
import { snapshotSubject } from './snapshotSubject.ts';

interface OpenedBundle {
  readonly bundle: Bundle;
  readonly subject: Subject;
}

export async function openBundle(file: string, output: Output): Promise<OpenedBundle> {
  const bundle = await readBundle(file);
  for (const problem of bundle.problems) output.err(`${printSourceProblem(problem)}\n`);
  const { header, events } = bundle;
  const subject = snapshotSubject(bundle, (family) =>
    dumpReader(header.mode, family, bundle.kernel.get(family)),
  );
  const changesOf: Subject['changesOf'] = (service) => changesIn(events, service);
  return { bundle, subject: { ...subject, changesOf } };
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
