import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { readLines } from './agent/lines.ts';
import { agentProgram } from './agentProgram.ts';
import type { FromAgent, OperationName, Operations } from './protocol.ts';
import { toolEnvironment } from './tools.ts';

/** How long an agent may take to end once its stdin is closed. It needs a few milliseconds. */
const EXIT_GRACE_MS = 2000;
/** Where the machine is emulated, seven at once need several seconds, and ten times that beside other work. */
const START_LIMIT_MS = 150_000;

interface Waiting {
  resolve(output: unknown): void;
  reject(error: Error): void;
}

/** The owner's end of an agent: a process in a network namespace of its own. */
export class AgentProcess {
  readonly name: string;
  readonly pid: number;
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #waiting = new Map<number, Waiting>();
  #stderr = '';
  #lastId = 0;
  #ready: (() => void) | undefined;

  static async start(name: string): Promise<AgentProcess> {
    const child = spawn('unshare', ['--net', '--', process.execPath, agentProgram(), name], {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: toolEnvironment(),
    });
    child.on('error', () => {}); // seen by the missing pid below
    if (child.pid === undefined)
      throw new Error(`cannot start ${name}: no unshare command (package util-linux)`);
    const agent = new AgentProcess(name, child.pid, child);
    await agent.#whenReady();
    return agent;
  }

  private constructor(name: string, pid: number, child: ChildProcessByStdio<Writable, Readable, Readable>) {
    this.name = name;
    this.pid = pid;
    this.#child = child;
    readLines(child.stdout, (line) => this.#receive(JSON.parse(line) as FromAgent));
    child.stderr.on('data', (chunk: Buffer) => {
      this.#stderr += chunk.toString();
    });
    child.stdin.on('error', () => {}); // a write to an agent that has gone; its exit says so
    child.on('exit', () => this.#fail());
  }

  call<Name extends OperationName>(
    operation: Name,
    input: Operations[Name]['input'],
  ): Promise<Operations[Name]['output']> {
    if (this.#gone) return Promise.reject(this.#goneError());
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve: (output) => resolve(output as Operations[Name]['output']), reject });
      this.#child.stdin.write(`${JSON.stringify({ id, operation, input })}\n`);
    });
  }

  async close(): Promise<void> {
    if (this.#gone) return;
    const exited = once(this.#child, 'exit');
    this.#child.stdin.end();
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), EXIT_GRACE_MS);
    await exited;
    clearTimeout(timer);
  }

  get #gone(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  #whenReady(): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#child.kill('SIGKILL');
        reject(new Error(`${this.name} did not start in ${START_LIMIT_MS} ms. ${this.#stderr}`));
      }, START_LIMIT_MS);
      this.#ready = () => {
        clearTimeout(timer);
        this.#waiting.delete(0);
        resolve();
      };
      this.#waiting.set(0, {
        resolve: () => {},
        reject: (error) => {
          clearTimeout(timer);
          reject(error);
        },
      });
    });
  }

  #receive(message: FromAgent): void {
    if ('ready' in message) return this.#ready?.();
    const waiting = this.#waiting.get(message.id);
    this.#waiting.delete(message.id);
    if ('error' in message) waiting?.reject(new Error(`${this.name}: ${message.error}`));
    else waiting?.resolve(message.output);
  }

  #fail(): void {
    for (const waiting of this.#waiting.values()) waiting.reject(this.#goneError());
    this.#waiting.clear();
  }

  #goneError(): Error {
    return new Error(`the agent of ${this.name} has ended. ${this.#stderr.trim()}`.trim());
  }
}
