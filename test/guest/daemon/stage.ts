/** node1 with Junction on it. The tests of a suite share it, because every start takes seconds. */
import { AssertionError } from 'node:assert';
import { inspect, isDeepStrictEqual } from 'node:util';
import type { Host } from '../../../lab/host.ts';
import type { Lab } from '../../../lab/lab.ts';
import type { GuestContext, GuestTest } from '../suite.ts';
import { addForeign, withoutForeign } from './foreign.ts';
import type { Program } from '../../e2e/support/program.ts';
import { GuestDaemon, IPVS_FLAGS } from './guestDaemon.ts';
import { addressesOf, type KernelWords, kernelWords, serversOf } from './kernelWords.ts';
import { Mismatch } from './mismatch.ts';
import { ONE_OF_EACH_KIND } from './oneOfEachKind.ts';

const LAST_LINES = 12;

/** Of ours. */
export const NOTHING: KernelWords = {
  servers: [],
  sets: [],
  addresses: ['no kube-ipvs0'],
  rules: [],
  rules6: [],
};

export class Stage {
  readonly lab: Lab;
  readonly node: Host;
  readonly client: Host;
  readonly daemon: GuestDaemon;
  /** As it was when nobody but others had been there. */
  readonly before: KernelWords;
  #flags: readonly string[] = [];
  #undisturbed: KernelWords | undefined;

  static async build(lab: Lab): Promise<Stage> {
    const node = lab.host('node1');
    await addForeign(node);
    return new Stage(lab, await GuestDaemon.create(node), await kernelWords(node));
  }

  private constructor(lab: Lab, daemon: GuestDaemon, before: KernelWords) {
    this.lab = lab;
    this.node = lab.host('node1');
    this.client = lab.host('client');
    this.daemon = daemon;
    this.before = before;
  }

  /** Junction serves these manifests; it is started only where it does not run like this. */
  async serve(manifests: string, flags: readonly string[] = IPVS_FLAGS): Promise<void> {
    if (this.daemon.isRunning && this.#flags === flags) return this.daemon.apply(manifests);
    const program = await this.launch(manifests, flags);
    await program.serves();
  }

  /** Starts it on these manifests, and does not wait until they are served. */
  async launch(manifests: string, flags: readonly string[]): Promise<Program> {
    await this.daemon.close();
    await this.daemon.write(manifests);
    this.#flags = flags;
    return this.daemon.launch(flags);
  }

  /** Nothing of ours is left, and nothing of ours runs. */
  async clear(): Promise<void> {
    await this.daemon.close();
    if (isDeepStrictEqual(await this.words(), NOTHING)) return;
    const { exitCode, stdout, stderr } = await this.daemon.cleanup();
    if (exitCode !== 0) throw new Error(`junction cleanup ended with ${exitCode}\n${stdout}${stderr}`);
  }

  /** What is ours in the kernel. */
  async words(): Promise<KernelWords> {
    return withoutForeign(await kernelWords(this.node));
  }

  /** What is left of one service of each kind where nobody disturbs it. */
  async undisturbed(flags?: readonly string[]): Promise<KernelWords> {
    if (this.#undisturbed) return this.#undisturbed;
    await this.serve(ONE_OF_EACH_KIND, flags);
    this.#undisturbed = await this.words();
    return this.#undisturbed;
  }

  /** The line of one virtual server, `TCP 10.96.0.1:80`; empty where there is none. */
  async server(name: string): Promise<string> {
    const lines = await serversOf(this.node);
    return lines.find((line) => line.startsWith(`${name} `)) ?? '';
  }

  addresses(): Promise<readonly string[]> {
    return addressesOf(this.node);
  }
}

export type StageTest = (stage: Stage) => Promise<void>;

const stages = new WeakMap<GuestContext, Promise<Stage>>();

export function onStage(
  topic: string,
  tests: Readonly<Record<string, StageTest>>,
): Readonly<Record<string, GuestTest>> {
  return Object.fromEntries(
    Object.entries(tests).map(([name, run]) => [`${topic}: ${name}`, (context) => perform(context, run)]),
  );
}

async function perform(context: GuestContext, run: StageTest): Promise<void> {
  const built = stages.get(context) ?? context.lab().then((lab) => Stage.build(lab));
  stages.set(context, built);
  const stage = await built;
  try {
    await run(stage);
  } catch (error) {
    throw new Mismatch(`${textOf(error)}\nJunction said last:\n${lastWords(stage.daemon.log)}`);
  }
}

/** An assertion says all in its message; of anything else the place matters too. */
function textOf(error: unknown): string {
  return error instanceof AssertionError || error instanceof Mismatch ? error.message : inspect(error);
}

function lastWords(log: string): string {
  const lines = log.split('\n').filter((line) => !/"FLAG: |"Checked"/.test(line));
  return lines.slice(-LAST_LINES).join('\n');
}
