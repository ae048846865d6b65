import { spawn } from 'node:child_process';
import { ROOT } from './paths.mjs';

/** A failure that people can read without a stack trace. */
export class Failure extends Error {}

/** Runs a script's work. A failure becomes its message and exit code 1; any other error is a mistake of ours, and keeps its stack. */
export async function endingPlainly(work) {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    console.error(`\n${error.message}`);
    process.exitCode = 1;
  }
}

/** Runs a command in the checkout and keeps what it prints; tells of it only when the command fails. Answers with what it printed. */
export async function runQuietly(argv, { env = {}, cwd = ROOT } = {}) {
  const { code, output } = await capture(argv, env, cwd);
  if (code !== 0) throw new Failure(`${argv.join(' ')} failed${ending(code)}\n\n${output.trimEnd()}\n`);
  return output;
}

/** Runs a command on this terminal and answers with its exit code. */
export function runAloud(argv, { env = {}, cwd = ROOT } = {}) {
  const [command, ...args] = argv;
  const child = spawn(command, args, { cwd, stdio: 'inherit', env: { ...process.env, ...env } });
  const pass = (signal) => void child.kill(signal);
  for (const signal of SIGNALS) process.on(signal, pass);
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => {
      for (const signal of SIGNALS) process.off(signal, pass);
      resolve(code ?? 1);
    });
  });
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'];

function capture([command, ...args], env, cwd) {
  const child = spawn(command, args, {
    cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  });
  let output = '';
  const add = (chunk) => {
    output += chunk;
  };
  child.stdout.on('data', add);
  child.stderr.on('data', add);
  const end = () => void child.kill();
  // First: what else happens at the exit removes the folders that it writes to.
  process.prependOnceListener('exit', end);
  return new Promise((resolve) => {
    child.once('error', (error) => resolve({ code: -1, output: `${output}${error.message}` }));
    child.once('close', (code) => {
      process.off('exit', end);
      resolve({ code, output });
    });
  });
}

function ending(code) {
  if (code === null) return ': a signal ended it';
  return code === -1 ? '' : ` with exit code ${code}`;
}
