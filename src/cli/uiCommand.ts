/** `junction ui`: the page, from the running proxy, manifests, a cluster or a bundle, until Ctrl-C. */
import { randomBytes } from 'node:crypto';
import { flagValue, type ParsedFlags } from '../config/commandLine.ts';
import { createLog } from '../log/log.ts';
import { printableLine } from '../text/printable.ts';
import { parseUiAddress, type UiAddress } from '../ui/address.ts';
import { servePage } from '../ui/serve.ts';
import { UsageError } from './commands.ts';
import type { Output } from './output.ts';
import { OWN_FLAGS } from './ownFlags.ts';
import { type QuestionSource, questionSource } from './questionSource.ts';
import { openPageSource } from './ui/pageSource.ts';

export async function uiCommand(parsed: ParsedFlags, output: Output): Promise<number> {
  const address = addressOf(parsed);
  const source = await sourceOf(parsed);
  let isServing = false;
  const log = createLog({
    verbosity: 0,
    format: 'text',
    // Until then, what is wrong is said by the error that ends the command.
    write: (line) => isServing && output.err(line),
  });
  const token = tokenFor(address);
  const { api, what, close } = await openPageSource(source, parsed, output, log);
  try {
    const server = await servePage({ address, token, api, log });
    isServing = true;
    // No browser sends what is behind #, so that no server logs it.
    output.out(`${server.link}${token === undefined ? '' : `#token=${token}`}\n`);
    output.out(`${printableLine(what)}. Ctrl-C: end.\n`);
    await untilNobodyReads(output);
    await server.stop();
    return 0;
  } finally {
    await close();
  }
}

function addressOf(parsed: ParsedFlags): UiAddress {
  const text = flagValue(parsed, OWN_FLAGS.uiBindAddress);
  const address = parseUiAddress(text);
  if (address) return address;
  throw new UsageError(
    [`--ui-bind-address ${JSON.stringify(text)} is not an address with a port`],
    'say 8080, 127.0.0.1:8080, [::1]:8080, or 0.0.0.0:8080 for every address of this machine',
  );
}

/** A terminal is read by who started this; what else standard output is may be kept and read by others. */
function tokenFor(address: UiAddress): string | undefined {
  if (address.isLoopback) return undefined;
  if (process.stdout.isTTY) return randomBytes(32).toString('base64url');
  throw new UsageError(
    ['others can reach this address, and the link with the token is printed to terminals alone'],
    'start it in a terminal, or serve the page at 127.0.0.1',
  );
}

/** FILE is a bundle; every other source has a flag. */
async function sourceOf(parsed: ParsedFlags): Promise<QuestionSource> {
  const [file] = parsed.arguments;
  const named = ['live', 'manifests', 'kubeconfig', 'master', 'bundle'].find((name) =>
    parsed.values.has(name),
  );
  if (file === undefined) return questionSource(parsed);
  if (named === undefined) return { kind: 'bundle', file };
  throw new UsageError(
    [`${file} is a second source beside --${named}: name one of them`],
    'junction ui --help has examples',
  );
}

/** For as long as the process runs, unless what it prints goes into a pipe that ends. */
function untilNobodyReads({ closed }: Output): Promise<void> {
  return new Promise((resolve) => {
    if (closed?.aborted) resolve();
    else closed?.addEventListener('abort', () => resolve(), { once: true });
  });
}
