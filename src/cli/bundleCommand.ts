/** `junction bundle`: one file with all that questions about this node are answered from. */
import type { BundleLine } from '../bundle/format.ts';
import { bundleName } from '../bundle/format.ts';
import { readSysctls, readVersions } from '../bundle/machine.ts';
import { knownSecrets, SecretFilter } from '../bundle/secrets.ts';
import { streamBundle, writeBundle } from '../bundle/write.ts';
import { flagValue, type ParsedFlags } from '../config/commandLine.ts';
import type { Settings } from '../config/settings.ts';
import { messageOf } from '../errors.ts';
import type { SnapshotHeader, SnapshotLine } from '../explain/snapshot.ts';
import type { Family } from '../model/ip.ts';
import { openReader } from '../modes/openReader.ts';
import { printableLine } from '../text/printable.ts';
import { counted } from '../text/ages.ts';
import { UsageError } from './commands.ts';
import { OWN_FLAGS } from './ownFlags.ts';
import { doctorReport } from './doctorCommand.ts';
import { askJson, askLines } from './localApi.ts';
import type { Output } from './output.ts';
import { questionSource } from './questionSource.ts';
import { snapshotConfig, snapshotSettings } from './snapshotSubject.ts';

/** To standard output: for a pipe, and for kubectl junction. */
const STDOUT = '-';

export async function bundleCommand(
  parsed: ParsedFlags,
  output: Output,
  families: readonly Family[],
): Promise<number> {
  const source = await questionSource(parsed);
  if (source.kind !== 'live')
    throw new UsageError(['a bundle is of the proxy that runs here: there is no other source of one']);
  const collected = new Collected(parsed, output, families, source.socket);
  const header = await collected.begin();
  const { kubeconfig } = snapshotConfig(header).clientConnection;
  const secrets = new SecretFilter(await knownSecrets({ kubeconfig, env: process.env }));
  const target = flagValue(parsed, OWN_FLAGS.bundleOutput);
  if (target === STDOUT) {
    if (process.stdout.isTTY)
      throw new UsageError(['a bundle is compressed, and nothing for a terminal: name a file with --output']);
    await streamBundle(collected.lines(), secrets, process.stdout);
    return 0;
  }
  const path = target === '' ? bundleName(header.node, header.takenAt) : target;
  const force = flagValue(parsed, OWN_FLAGS.bundleForce);
  const bytes = await writeBundle(collected.lines(), { path, secrets, force });
  const { objects, events, missing } = collected;
  const size =
    bytes < 1024 * 1024 ? `${Math.ceil(bytes / 1024)} KiB` : `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
  output.out(
    `${printableLine(`${path}: ${size}, ${counted(objects, 'object')}, ${counted(events, 'event')}; without secrets`)}\n`,
  );
  for (const line of missing) output.err(`${printableLine(`not in it: ${line}`)}\n`);
  output.out(
    `${printableLine(`Ask it: junction explain NAMESPACE/NAME --bundle ${path}. Look at it: junction ui ${path}`)}\n`,
  );
  return 0;
}

/** Everything, in the order of the file; what cannot be had is named in it. */
class Collected {
  objects = 0;
  events = 0;
  readonly missing: string[] = [];
  readonly #parsed: ParsedFlags;
  readonly #output: Output;
  readonly #families: readonly Family[];
  readonly #socket: string;
  #snapshot: AsyncIterator<SnapshotLine> | undefined;
  #header: SnapshotHeader | undefined;

  constructor(parsed: ParsedFlags, output: Output, families: readonly Family[], socket: string) {
    this.#parsed = parsed;
    this.#output = output;
    this.#families = families;
    this.#socket = socket;
  }

  async begin(): Promise<SnapshotHeader> {
    this.#snapshot = askLines<SnapshotLine>(this.#socket, '/v1/snapshot', {
      timeoutMs: LIMIT_MS,
    })[Symbol.asyncIterator]();
    const { value } = await this.#snapshot.next();
    const header = value as SnapshotLine | undefined;
    if (header?.kind !== 'header') throw new Error('the running proxy sent a snapshot without a header');
    this.#header = header;
    return header;
  }

  async *lines(): AsyncGenerator<BundleLine> {
    const header = this.#header ?? (await this.begin());
    yield header;
    for (;;) {
      const next = await this.#snapshot?.next();
      if (!next || next.done === true) break;
      if (next.value.kind === 'object') this.objects += 1;
      yield next.value;
    }
    const settings = snapshotSettings(header);
    for (const { family } of header.families)
      if (this.#families.includes(family)) yield* this.#kernel(family, settings);
    yield* this.#asked('status', async () => [
      { kind: 'status', status: await askJson(this.#socket, '/v1/status') },
    ]);
    yield* this.#asked('recent events', () => this.#events());
    yield* this.#asked('doctor', async () => [
      { kind: 'doctor', report: await doctorReport(this.#parsed, this.#output, this.#families) },
    ]);
    yield { kind: 'versions', versions: await readVersions() };
    yield { kind: 'sysctls', sysctls: readSysctls(snapshotConfig(header).junction.sysctlRoot) };
  }

  async *#kernel(family: Family, settings: Settings): AsyncGenerator<BundleLine> {
    yield* this.#asked(`what is in the kernel, ${family}`, async () => {
      const reader = await openReader(family, settings);
      if (!reader) throw new Error(`the ${settings.mode} mode cannot be read from here`);
      try {
        return [{ kind: 'kernel', family, readAt: Date.now(), dump: await reader.dump() }];
      } finally {
        await reader.close();
      }
    });
  }

  /** Oldest first. */
  async #events(): Promise<readonly BundleLine[]> {
    const events = await askJson<readonly unknown[]>(this.#socket, '/v1/events');
    this.events = events.length;
    return events.map((event) => ({ kind: 'event', event }));
  }

  async *#asked(what: string, ask: () => Promise<readonly BundleLine[]>): AsyncGenerator<BundleLine> {
    try {
      yield* await ask();
    } catch (error) {
      const reason = messageOf(error);
      this.missing.push(`${what}: ${reason}`);
      yield { kind: 'missing', what, reason };
    }
  }
}

const LIMIT_MS = 120_000;
