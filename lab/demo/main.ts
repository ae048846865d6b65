/** `npm start`: makes sure of the rights that the lab needs, and runs the demo. */
import { labAccess, reexecInUserNamespace, whyNoLab } from '../privileges.ts';
import { runDemo } from './demo.ts';
import { runDemoInGuest } from './guestDemo.ts';
import { copyManifests } from './guestManifests.ts';
import {
  takeOverTerminal,
  hasLostOwner,
  isInGuest,
  isInUserNamespace,
  userNamespaceEnvironment,
} from './inside.ts';
import { type DemoOptions, HELP, parseOptions } from './options.ts';
import { DEMO } from './paths.ts';

const GOODBYE = '\nGoodbye. Junction, the cluster and its networks are gone.\n';
/** In a user namespace one Ctrl-C arrives twice: from the terminal and passed on from outside. */
const SAME_SIGNAL_MS = 500;

async function main(args: readonly string[]): Promise<number> {
  const parsed = parseOptions(args);
  if (parsed.kind === 'help') {
    process.stdout.write(HELP);
    return 0;
  }
  if (parsed.kind === 'mistake') {
    process.stderr.write(`${parsed.message}\nnpm start -- --help lists the options.\n`);
    return 2;
  }
  const { options } = parsed;
  if (isInGuest()) {
    takeOverTerminal();
    const manifests = await copyManifests(options.manifests);
    return runUntilSignalled(options, (signal) => runDemo({ options: { ...options, manifests }, signal }));
  }
  if (hasLostOwner()) return 1;
  if (options.mode === 'ipvs')
    return runUntilSignalled(options, (signal) => runDemoInGuest({ args, options, signal }));
  if (options.image !== undefined && process.getuid?.() !== 0) {
    process.stderr.write('--image needs root: sudo npm start -- --image …\n');
    return 1;
  }
  const access = labAccess();
  if (access.kind === 'user-namespace' && !isInUserNamespace()) return reexec(args);
  if (access.kind !== 'direct') {
    process.stderr.write(`${whyNoLab(access) ?? ''}\n`);
    return 1;
  }
  return runUntilSignalled(options, (signal) => runDemo({ options, signal }));
}

/** In the machine's network: the lab's hosts have their own anyway. It dies with this process, however that ends. */
function reexec(args: readonly string[]): Promise<number> {
  Object.assign(process.env, userNamespaceEnvironment());
  const self = [process.execPath, DEMO, ...args];
  return reexecInUserNamespace(['setpriv', '--pdeathsig', 'KILL', '--', ...self], { network: 'machine' });
}

async function runUntilSignalled(
  options: DemoOptions,
  run: (signal: AbortSignal) => Promise<number>,
): Promise<number> {
  const controller = new AbortController();
  let signalledAt: number | undefined;
  const end = (): void => {
    const isSecond = signalledAt !== undefined && performance.now() - signalledAt > SAME_SIGNAL_MS;
    if (isSecond) process.exit(1); // the lab's hosts notice, and Junction is killed by the kernel
    signalledAt ??= performance.now();
    controller.abort();
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, end);
  try {
    const exitCode = await run(controller.signal);
    if (!options.once && (isInGuest() || options.mode !== 'ipvs')) process.stdout.write(GOODBYE);
    return exitCode;
  } catch (error) {
    if (controller.signal.aborted) {
      process.stdout.write(GOODBYE);
      return options.once ? 1 : 0;
    }
    process.stderr.write(`\n${error instanceof Error ? error.message : String(error)}\n`);
    return 1;
  }
}

// Whoever read what we print is gone, a pager that was quit or a terminal that was closed.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => process.exit(1));
process.exit(await main(process.argv.slice(2)));
