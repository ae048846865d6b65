/** `junction run`: the daemon under supervision, or what flags of kube-proxy ask for instead. */
import { writeFileSync } from 'node:fs';
import { type ParsedFlags, flagTexts, printFlags } from '../config/commandLine.ts';
import { type ValidConfig, writeConfig } from '../config/effective.ts';
import { flushMilliseconds, quantityValue } from '../config/kinds.ts';
import type { LoadedConfig } from '../config/load.ts';
import { runDaemon } from '../daemon/start.ts';
import { Supervision } from '../daemon/supervision.ts';
import { messageOf } from '../errors.ts';
import { createLog, type Log } from '../log/log.ts';
import { FAMILIES } from '../model/ip.ts';
import { requireNetAdmin } from '../modes/prerequisites/check.ts';
import { killOrphans, PARENT_VARIABLE, parentMark } from '../system/procfs.ts';
import { UsageError } from './commands.ts';
import type { Output } from './output.ts';

export async function runCommand(
  { config, invocation, notes }: LoadedConfig & { readonly config: ValidConfig },
  parsed: ParsedFlags,
  io: Output,
  { nodeName, reload }: { readonly nodeName: () => string; readonly reload: () => ValidConfig },
): Promise<number> {
  const log = openLog(config, io);
  for (const line of printFlags(parsed)) log.verbose(1, line);
  for (const { severity, message, fields } of notes) {
    if (severity === 'warning') log.warn(message, fields);
    else log.info(message, fields);
  }
  if (invocation.writeConfigTo !== undefined) return writeConfigTo(invocation.writeConfigTo, config, log);
  if (invocation.cleanup) {
    requireNetAdmin();
    const { cleanupCommand, refuseBesideJunction } = await import('./nodeCommands.ts');
    await refuseBesideJunction(io, false);
    const everything = { families: FAMILIES, variant: 'auto', mode: 'all' } as const;
    return cleanupCommand(io, { ...everything, output: 'text', dryRun: false });
  }
  io.onLost?.(({ lines, reason }) => log.warn('Log lines were lost', { lines, reason }));
  const supervision = new Supervision({ log, flush: (milliseconds) => io.flush?.(milliseconds) });
  supervision.start();
  try {
    for (const { pid, command } of killOrphans())
      log.warn('Killed a program that an earlier run left behind', { pid, command });
    // All children inherit it, those of credential plugins too.
    process.env[PARENT_VARIABLE] = parentMark();
    return await runDaemon({
      config,
      nodeName: nodeName(),
      configFile: invocation.configFile,
      reload,
      flags: () => flagTexts(parsed),
      initOnly: invocation.initOnly,
      log,
      supervision,
    });
  } finally {
    supervision.end();
  }
}

function openLog({ logging }: ValidConfig, io: Output): Log {
  const { verbosity, format, vmodule: modules, flushFrequency } = logging;
  const { splitStream, infoBufferSize } = logging.options[format];
  const bytes = quantityValue(infoBufferSize);
  const buffer = bytes > 0 ? { bytes, flushMs: flushMilliseconds(flushFrequency) } : undefined;
  return createLog({
    verbosity,
    format,
    modules,
    write: (line) => io.err(line),
    ...(splitStream && { writeInfo: io.logToStdout?.(buffer) ?? ((line) => io.out(line)) }),
  });
}

function writeConfigTo(path: string, config: ValidConfig, log: Log): number {
  try {
    writeFileSync(path, writeConfig(config));
  } catch (error) {
    throw new UsageError([`cannot write --write-config-to ${path}: ${messageOf(error)}`]);
  }
  log.info('Wrote configuration', { file: path });
  return 0;
}
