/** `junction ui`: the page, from the running proxy, manifests, a cluster or a bundle, until Ctrl-C. */
import { flagValue, type ParsedFlags } from '../config/commandLine.ts';
import { parseUiAddress, type UiAddress } from '../config/uiAddress.ts';
import { createLog, type Log } from '../log/log.ts';
import { printableLine } from '../text/printable.ts';
import { systemClock } from '../time/systemClock.ts';
import { makeToken, TokenFile } from '../ui/token.ts';
import type { UiServerOptions } from '../ui/uiServer.ts';
import { UsageError } from './commands.ts';
import type { Output } from './output.ts';
import { OWN_FLAGS } from './ownFlags.ts';
import { type QuestionSource, questionSource } from './questionSource.ts';
import { openPageSource } from './ui/pageSource.ts';
import { servePage } from './ui/serve.ts';

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
  const { token, linkPart } = tokenFor(address, parsed, log);
  const { api, what, close } = await openPageSource(source, parsed, output, log);
  try {
    const server = await servePage({ address, token, api, log });
    isServing = true;
    output.out(`${server.link ?? ''}${linkPart}\n`);
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

interface Admission extends Pick<UiServerOptions, 'token'> {
  /** What is behind the link. No browser sends it, so that no server logs it. */
  readonly linkPart: string;
}

/** A terminal is read by who started this; what else standard output is may be kept and read by others. */
function tokenFor(address: UiAddress, parsed: ParsedFlags, log: Log): Admission {
  const path = flagValue(parsed, OWN_FLAGS.uiTokenFile);
  if (path !== '') {
    const file = new TokenFile({ path, log, clock: systemClock });
    return { token: () => file.current(), linkPart: '' };
  }
  if (address.isLoopback) return { token: undefined, linkPart: '' };
  if (!process.stdout.isTTY)
    throw new UsageError(
      ['--ui-token-file is missing: others can reach this address, and standard output is no terminal'],
      'name a file for the token, or serve the page at 127.0.0.1',
    );
  const token = makeToken();
  return { token: () => token, linkPart: `#token=${token}` };
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
