/** A suite's end of Junction on node1. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Lab } from '../../lab/lab.ts';
import type { Family } from '../../src/model/ip.ts';
import type { KernelDifference, WalkResult } from '../../src/modes/kernelRules.ts';
import type { Fate } from '../scenarios/packets.ts';
import type { Scenario } from '../scenarios/scenario.ts';
import type { GuestMode } from './node/proxiers.ts';
import type {
  AskedPacket,
  ContractCall,
  FromNode,
  NodeOperationName,
  NodeOperations,
} from './node/protocol.ts';

/** Beside the bundle that this ends up in: see programs.ts. */
const PROGRAM = fileURLToPath(new URL('./node.js', import.meta.url));

interface Waiting {
  resolve(output: unknown): void;
  reject(error: Error): void;
}

export class GuestNode {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, Waiting>();
  #lastId = 0;
  #complaints = '';

  static async start(lab: Lab, mode: GuestMode, program = PROGRAM): Promise<GuestNode> {
    const child = lab.host('node1').spawn([process.execPath, program, mode], {
      stdio: ['ignore', 'inherit', 'pipe', 'ipc'],
      serialization: 'advanced',
    });
    const node = new GuestNode(child);
    await node.#ready();
    return node;
  }

  private constructor(child: ChildProcess) {
    this.#child = child;
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.#complaints += text));
    child.on('message', (message) => this.#receive(message as FromNode));
    // Not 'exit': by now all that it complained about is here.
    child.stderr?.once('close', () => this.#fail());
    child.once('error', () => this.#fail());
  }

  /** Brings node1 from the scenario before to this one. Answers what should become of each row's packet. */
  apply(scenario: Scenario): Promise<readonly (Fate | undefined)[]> {
    return this.#call('apply', scenario);
  }

  /** What the rules in the kernel do with packets. */
  walk(packets: readonly AskedPacket[]): Promise<readonly WalkResult[]> {
    return this.#call(
      'walk',
      packets.map(({ family, packet }) => ({ family, packet })),
    );
  }

  /** Where the kernel differs from the plan. */
  compare(family: Family): Promise<readonly KernelDifference[]> {
    return this.#call('compare', family);
  }

  /** What rules and elements have counted, by their text. */
  counters(family: Family): Promise<ReadonlyMap<string, number>> {
    return this.#call('counters', family);
  }

  /** Reads the kernel, and mends what differs. */
  async resync(): Promise<void> {
    await this.#call('resync', null);
  }

  /** A step of the contract. */
  contract(...call: ContractCall): Promise<unknown> {
    return this.#call('contract', call);
  }

  async close(): Promise<void> {
    if (!this.#child.connected) return;
    const exited = once(this.#child, 'exit');
    this.#child.disconnect();
    await exited;
  }

  #ready(): Promise<unknown> {
    return new Promise((resolve, reject) => this.#waiting.set(0, { resolve, reject }));
  }

  #call<Name extends NodeOperationName>(
    operation: Name,
    input: NodeOperations[Name]['input'],
  ): Promise<NodeOperations[Name]['output']> {
    if (!this.#child.connected) return Promise.reject(this.#gone());
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, {
        resolve: (output) => resolve(output as NodeOperations[Name]['output']),
        reject,
      });
      this.#child.send({ id, operation, input });
    });
  }

  #receive(message: FromNode): void {
    const id = 'ready' in message ? 0 : message.id;
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if ('error' in message) waiting?.reject(new Error(`Junction on node1: ${message.error}`));
    else waiting?.resolve('ready' in message ? undefined : message.output);
  }

  #fail(): void {
    for (const waiting of this.#waiting.values()) waiting.reject(this.#gone());
    this.#waiting.clear();
  }

  #gone(): Error {
    return new Error(`Junction on node1 has ended. ${this.#complaints.trim()}`.trim());
  }
}
