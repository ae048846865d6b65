/** The demo in a kernel of its own, which has IPVS: this process only shows what happens there. */
import { resolve } from 'node:path';
import { type RunningGuest, runInGuest, whyNoGuest } from '../guest/machine.ts';
import { guestEnvironment } from './inside.ts';
import { hasKeyboard, readKeyboard } from './keyboard.ts';
import type { DemoOptions } from './options.ts';
import { planPage } from './page.ts';
import { DEMO } from './paths.ts';
import { step } from './progress.ts';

const PROGRAMS = ['unshare', 'nsenter', 'setpriv', 'ip', 'modprobe', 'iptables-legacy', 'ip6tables-legacy'];
/** What nothing in the guest asks for by itself. */
const MODULES = ['veth', 'bridge', 'br_netfilter', 'dummy', 'ip_vs', 'ip_vs_rr'];

export interface GuestDemoOptions {
  readonly args: readonly string[];
  readonly options: DemoOptions;
  readonly signal: AbortSignal;
}

export async function runDemoInGuest(guest: GuestDemoOptions): Promise<number> {
  const reason = whyNoGuest(PROGRAMS);
  if (reason !== undefined) throw new Error(`The mode ipvs needs a kernel that has IPVS. ${reason}.`);
  const page = guest.options.once ? undefined : await planPage(guest.options);
  if (page) process.stdout.write(`${page.text}\n`);
  try {
    return await runGuest(guest);
  } finally {
    await page?.stop();
  }
}

async function runGuest({ args, signal }: GuestDemoOptions): Promise<number> {
  const { stdout } = process;
  let onBooted: (guest: RunningGuest) => void = () => {};
  const booted = new Promise<RunningGuest>((done) => {
    onBooted = done;
  });
  const terminal = { isTTY: stdout.isTTY, columns: stdout.columns, hasKeyboard: hasKeyboard() };
  const run = runInGuest(DEMO, {
    modules: MODULES,
    arguments: args,
    environment: guestEnvironment(terminal),
    cwd: resolve('.'),
    signal,
    onBooted,
    onOutput: (text) => stdout.write(text),
  });
  const guest = await step(
    'Booting a Linux that has IPVS (User-mode Linux)',
    () => Promise.race([booted, run.then(({ stderr }) => failed(stderr))]),
    () =>
      'A Linux that has IPVS is up (User-mode Linux); the cluster starts in it, which takes up to a minute',
  );
  const closeKeyboard = readKeyboard((line) => guest.write(`${line}\n`));
  try {
    const { code, stderr } = await run;
    process.stderr.write(stderr);
    return code;
  } finally {
    closeKeyboard();
  }
}

function failed(stderr: string): never {
  throw new Error(`The guest ended before the demo began. ${stderr}`.trim());
}
