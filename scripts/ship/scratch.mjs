/**
 * Folders for what is half made. They disappear however the process ends, short of SIGKILL: only what is finished is moved to
 * where it belongs.
 */
import { mkdtempSync, renameSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { Failure } from '../support/run.mjs';

const ENDING = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 };

/** Runs the work with a new folder inside `parent`: the same file system as the destination, so that it can be moved there. */
export async function withScratch(parent, work) {
  const folder = mkdtempSync(join(parent, '.junction-'));
  // A program that was ended with this one may still add a file.
  const remove = () => rmSync(folder, { recursive: true, force: true, maxRetries: 10 });
  const signals = Object.entries(ENDING).map(([signal, code]) => {
    const end = () => process.exit(code);
    process.on(signal, end);
    return () => process.off(signal, end);
  });
  process.on('exit', remove);
  try {
    return await work(folder);
  } catch (error) {
    throw asFailure(error);
  } finally {
    process.off('exit', remove);
    for (const off of signals) off();
    remove();
  }
}

/** Takes the place of what is there by that name. */
export function moveInto(from, to) {
  const old = join(dirname(to), `.old-${process.pid}-${basename(to)}`);
  try {
    renameSync(to, old);
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
  }
  renameSync(from, to);
  rmSync(old, { recursive: true, force: true });
}

/** What a person can do something about, without a stack trace. */
function asFailure(error) {
  // esbuild says it in words, among others.
  const full =
    error instanceof Failure ? undefined : /^.*no space left on device.*$/im.exec(error.message)?.[0];
  if (error.code === 'ENOSPC' || full !== undefined) {
    return new Failure(
      `The disk is full: ${full ?? error.message}. Nothing was left behind; make room and run it again.`,
    );
  }
  if (error.code === 'EROFS' || error.code === 'EACCES')
    return new Failure(`Cannot write: ${error.message}.`);
  return error;
}
