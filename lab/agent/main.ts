/**
 * The process that is a host of the lab. It is started in a network namespace of its own and is the only thing that
 * keeps that namespace alive; its own life hangs on stdin, which the kernel closes however the lab's owner ends.
 * So nothing has to be cleaned up, not even after kill -9.
 */
import type { Call, Operations, OperationName } from '../protocol.ts';
import { exec, killCommands } from './exec.ts';
import { readLines } from './lines.ts';
import { request } from './request.ts';
import { whyNoSctp } from './sctp.ts';
import { serve, stopServing } from './serve.ts';
import { closeSession, openSession, send } from './session.ts';
import { writeSysctls } from './sysctl.ts';

type Handlers = {
  readonly [Name in OperationName]: (
    input: Operations[Name]['input'],
  ) => Promise<Operations[Name]['output']> | Operations[Name]['output'];
};

const hostName = process.argv.at(-1) ?? '';

const handlers: Handlers = {
  sysctl: writeSysctls,
  serve: (listens) => serve(hostName, listens),
  stopServing,
  whyNoSctp,
  request,
  openSession,
  send,
  closeSession,
  exec,
};

function handle<Name extends OperationName>(name: Name, input: Operations[Name]['input']) {
  return handlers[name](input);
}

async function answer(call: Call): Promise<void> {
  try {
    post({ id: call.id, output: await handle(call.operation, call.input) });
  } catch (error) {
    post({ id: call.id, error: error instanceof Error ? error.message : String(error) });
  }
}

function post(message: object): void {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}

function leave(): void {
  killCommands();
  process.exit(0);
}

// Ctrl-C reaches every process of the terminal. The owner decides when the lab ends, not the keyboard.
process.on('SIGINT', () => {});
process.on('SIGHUP', () => {});
process.stdin.on('close', leave);
process.stdin.on('end', leave);
process.stdin.on('error', leave);
process.stdout.on('error', leave);
readLines(process.stdin, (line) => void answer(JSON.parse(line) as Call));
post({ ready: true });
